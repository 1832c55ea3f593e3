import pandas as pd
import pytest

from analysis.pace import is_host_limited, late_p99_ms
from testbed import estimate, profile, study
from testbed.load import Cpu
from testbed.plan import Choice, resolve


def messages(*late_ms):
    return pd.DataFrame({"scheduled_ns": 10**9, "sent_ns": [10**9 + int(late * 1e6) for late in late_ms]})


def test_lateness_is_the_99th_percentile_of_sent_minus_scheduled():
    assert late_p99_ms(messages(*range(101))) == 99
    assert late_p99_ms(messages()) is None


@pytest.mark.parametrize(
    ("late", "idle", "limited"),
    [(4.9, 10.1, False), (5.1, 90, True), (0.1, 9.9, True), (None, None, False), (None, 9.9, True), (5.1, None, True)],
)
def test_a_cell_is_host_limited_if_publishes_are_late_or_no_processor_time_is_left(late, idle, limited):
    assert is_host_limited(late, idle) is limited


def test_the_idle_share_counts_what_went_by_since():
    assert Cpu(idle=160, total=400).idle_pct_since(Cpu(idle=100, total=200)) == 30
    assert Cpu(idle=100, total=200).idle_pct_since(Cpu(idle=100, total=200)) is None


def test_the_machines_processors_are_read():
    begin = Cpu.now()
    while (share := Cpu.now().idle_pct_since(begin)) is None:
        pass
    assert 0 <= share <= 100


def cells(**choice):
    name, file = study.load("ffi-2022")
    return resolve(name, file, name, profile.load("lan"), Choice(payload="gps", **choice)).cells


def test_real_time_is_the_cells_schedules_one_after_the_other():
    chosen = cells(protocol="mqtt", qos="0,1", clients=5, messages=3, interval="10s", drain="20s")
    assert estimate.real_s(chosen, containers=False) == 2 * (10 * 0.2 + 30 + 20)
    assert estimate.real_s(chosen, containers=True) > estimate.real_s(chosen, containers=False)
    assert estimate.virtual_s(chosen) < 10


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")])
def test_times_are_told_in_a_unit_that_fits(seconds, words):
    assert estimate.words(seconds) == words
