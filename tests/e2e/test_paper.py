"""make reproduce and make fit, as small as they get."""

import subprocess

import pandas as pd
import pytest
from runs import run

from testbed import study
from testbed.fit import losses
from testbed.places import PROJECT

TINY = ("CLIENTS=1", "MESSAGES=1")


def make(*words):
    done = subprocess.run(["make", *words], cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def reproduced(out):
    code, output = make("reproduce", "PROFILE=satcom", *TINY, f"OUT={out}")
    assert code == 0, output
    return output


def test_every_cell_and_statement_of_the_paper_is_there(out, reproduced):
    table = pd.read_csv(out / "reproduction.csv")
    assert len(table[table.published.notna()]) == 42
    run_here = table[table.holds.notna()]
    assert set(run_here.network) == {"satcom"}
    assert len(run_here[run_here.published.notna()]) == 14
    assert len(run_here[run_here.published.isna()]) == 6
    assert "cells of the tables: 14 of 14 hold, 28 not tested by these runs" in reproduced
    page = (out / "reproduction.html").read_text()
    assert page.count("not tested") > 28
    assert "mqtt QoS 2 takes almost two seconds" in page


def test_what_is_done_is_not_done_again(out, reproduced):
    code, output = make("reproduce", "PROFILE=satcom", *TINY, f"OUT={out}")
    assert code == 0, output
    assert "satcom: already in" in output
    assert len(list(out.glob("*-satcom-*"))) == 1


def test_a_profile_that_the_paper_has_no_tables_of_is_a_user_error(tmp_path):
    code, output = make("reproduce", "PROFILE=nbwf", f"OUT={tmp_path}")
    assert code == 2
    assert "PROFILE: 'nbwf': allowed are 5g, satcom, cnr-10" in output


def test_fit_leaves_its_trace_and_a_study(tmp_path):
    code, output = make("fit", "CHANNEL=uplink", "PAYLOAD=gps", "INTERVAL=5s", *TINY, f"OUT={tmp_path}")
    assert code == 0, output
    (folder,) = tmp_path.iterdir()
    trace = pd.read_csv(folder / "fit.csv")
    assert len(trace) == 8 * trace.drain.nunique()
    (folder / "ffi-2022.yaml").write_text((study.FOLDER / "ffi-2022.yaml").read_text())
    _, found = study.load(str(folder / "ffi-2022-fitted.yaml"))
    assert found.payloads["gps"].interval == 5 * 10**9
    assert not list(folder.rglob("*.pcap"))


def test_a_cell_with_a_long_drain_holds_the_one_with_a_short_drain(tmp_path):
    """What the search rests on."""
    saturated = {"profile": "cnr-10", "protocol": "mqtt", "qos": 2, "payload": "gps", "messages": 4, "interval": "1s"}
    long = run(tmp_path / "long", **saturated, drain="60s").cell("qos2")
    short = run(tmp_path / "short", **saturated, drain="20s")
    assert 0 < short.summary.loss_pct[0] == pytest.approx(losses(long, ("20s",))["20s"])
