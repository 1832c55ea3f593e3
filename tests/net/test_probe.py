"""The link certificate against real netem: it passes a channel that does what it was told, and no other."""

import dataclasses

import pytest

from analysis.certificate import judge, observe, verdict
from testbed import commands, profile, study, trial
from testbed.cell import Channel
from testbed.netem import Netem
from testbed.plan import Choice, resolve
from testbed.probe import Probe, run_probe

PERCENT = 10**6
ALL_WORDS = {
    "gemodel": Netem(
        limit=10**5,
        rate=2_000_000,
        delay=10**8,
        jitter=10**7,
        distribution="normal",
        loss_gemodel={"p": 2 * PERCENT, "r": 20 * PERCENT, "1-h": 90 * PERCENT, "1-k": PERCENT // 10},
        duplicate=5 * PERCENT,
        corrupt=3 * PERCENT,
    ),
    "state": Netem(
        limit=1000,
        rate=9_600,
        delay=10**8,
        loss_state={
            "p13": 2 * PERCENT,
            "p31": 20 * PERCENT,
            "p32": 10 * PERCENT,
            "p23": 30 * PERCENT,
            "p14": PERCENT,
        },
    ),
    "reorder": Netem(
        limit=1000,
        delay=10**8,
        loss=20 * PERCENT,
        loss_correlation=25 * PERCENT,
        reorder=25 * PERCENT,
        reorder_correlation=50 * PERCENT,
        gap=5,
        duplicate=20 * PERCENT,
        duplicate_correlation=30 * PERCENT,
    ),
}


def probed(folder, netem, direction="uplink", duplex="full"):
    """What a probe sees of a channel."""
    channel = Channel("shared", direction, duplex, netem)
    (folder / "logs").mkdir(parents=True)
    probe = Probe("probe", 7, channel, {}, 60 * 10**9, 60 * 10**9, real=False)
    facts = run_probe(probe, folder, lambda event: None)
    raws = {(side, name): raw for side, some in facts["sources"].items() for name, _, raw in some}
    return channel, observe(channel, {point: folder / raw for point, raw in raws.items()})


def failed(channel, seen):
    return {check.what for check in judge(channel, seen, real=False, looks=1) if check.passed is False}


@pytest.mark.parametrize("name", ALL_WORDS)
def test_a_channel_with_every_word_of_netem_passes(name, tmp_path):
    checks = judge(*probed(tmp_path, ALL_WORDS[name]), real=False, looks=1)
    assert verdict(checks) == "passed", [check for check in checks if check.passed is False]
    made = {check.what for check in checks if check.passed is not None}
    assert made >= {"delay", "loss", "duplicates", "corruption"}


def test_a_channel_that_is_not_the_profiles_fails_where_it_differs(tmp_path):
    netem = profile.load("tactical-broadband").netem
    channel, seen = probed(tmp_path, netem, "both", "half")
    assert failed(channel, seen) == set()
    for what, other in {
        "delay": {"delay": netem.delay + 60_000},
        "rate": {"rate": 2_024_000},
        "loss": {"loss": 3 * PERCENT},
        "duplicates": {"duplicate": PERCENT},
        "corruption": {"corrupt": PERCENT},
        "reordering": {"reorder": 2 * PERCENT},
    }.items():
        wrong = dataclasses.replace(channel, netem=dataclasses.replace(netem, **other))
        found = failed(wrong, seen)
        assert what in found, what
        assert found <= {what, "delay"}  # a rate that is off shows in the delay of a large packet as well


TINY = Choice(protocol="mqtt", qos="0", payload="gps", clients=1, messages=3)
SATCOM = "netem limit 100000 delay 550ms rate 250kbit"


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (
            [f"tc qdisc change dev ifb-up root {SATCOM} loss 1%", f"tc qdisc change dev ifb-up root {SATCOM}"],
            "qdisc set",
        ),
        (["tc qdisc del dev ifb-up root"], "qdisc removed"),
        (["tc filter del dev eth0 ingress"], "filter removed"),
        (["ip link set ifb-up down"], "taken down"),
    ],
)
def test_a_channel_that_is_changed_while_a_cell_runs_fails_the_cell(tamper, reason, tmp_path, monkeypatch):
    links = []
    put_up = trial.medium

    def remembered(server, channel, seed):
        links.append(server)
        return put_up(server, channel, seed)

    monkeypatch.setattr(trial, "medium", remembered)
    name, file = study.load("ffi-2022")
    (cell,) = resolve(name, file, name, profile.load("satcom"), TINY).cells
    (tmp_path / "logs").mkdir()
    trial.write_configurations(cell, tmp_path)

    def meddle(event):
        if event["phase"] == "publish" and tamper:
            with links[0].entered():
                for words in tamper:
                    commands.run(words.split())
            tamper.clear()

    facts = trial.run_safely(trial.run_cell, cell, tmp_path, meddle)
    assert facts["status"] == "failed"
    assert reason in facts["error"]
