"""A run's link certificate: in its manifest and report, and the run fails with it."""

import dataclasses
import json

import pytest
import typer
from runs import run

from testbed import certify, cli

TINY = {"protocol": "mqtt", "qos": 0, "payload": "gps", "clients": 1, "messages": 1, "drain": "2s"}


def test_a_certificate_is_in_the_manifest_and_the_report(out):
    done = run(out, profile="cnr-10", **TINY)
    assert done.code == 0, done.output
    certificate = done.manifest["certificate"]
    assert certificate["verdict"] == "passed"
    for moment in certificate["moments"]:
        measured = {check["what"]: check for check in moment["checks"]}
        assert abs(measured["delay"]["measured"] - 100) < 0.05
        assert abs(measured["rate"]["measured"] - 9.6) < 0.096
        assert measured["loss"]["low"] < 10 < measured["loss"]["high"]
    assert {moment["moment"] for moment in certificate["moments"]} == {"before", "after"}
    seeds = {moment["channel"]["seeds"]["ifb-up"] for moment in certificate["moments"]}
    assert len(seeds) == 2
    assert (done.folder / "certificate/after/server-side.pcap").stat().st_size > 10_000
    assert "link certificate: passed: 12 of 12" in done.output
    assert "100 ms: 0." in (done.folder / "report.html").read_text()


def test_an_unshaped_link_is_not_checked(out):
    done = run(out, profile="lan", **TINY)
    assert done.code == 0, done.output
    assert done.manifest["certificate"]["verdict"] == "not checked"
    assert "unshaped" in done.manifest["certificate"]["reason"]


def test_a_channel_that_is_not_the_profiles_fails_the_run(tmp_path, monkeypatch):
    made = certify.probe

    def wrong(plan, moment, real):
        probe = made(plan, moment, real)
        netem = dataclasses.replace(probe.channel.netem, delay=probe.channel.netem.delay + 100_000)
        return dataclasses.replace(probe, channel=dataclasses.replace(probe.channel, netem=netem))

    monkeypatch.setattr(certify, "probe", wrong)
    words = {name: str(value) for name, value in TINY.items()}
    with pytest.raises(typer.Exit) as ended:
        cli.run("satcom", out=tmp_path, runtime="virtual", **words)
    assert ended.value.exit_code == 1
    manifest = json.loads((tmp_path / "latest" / "manifest.json").read_text())
    assert [facts["status"] for facts in manifest["cells"].values()] == ["ok"]
    failed = [
        check["what"]
        for moment in manifest["certificate"]["moments"]
        for check in moment["checks"]
        if not check["passed"]
    ]
    assert failed == ["delay", "delay"]
