"""What a report warns of."""

import pandas as pd
import pytest

from analysis import warnings
from analysis.run import CellResult

RATE, DELAY = 250_000, 550 * 10**6  # SATCOM: 17,188 bytes are on their way


def cell(backlog, rate=RATE):
    plan = {"channel": {"netem": {"rate": rate, "delay": DELAY, "jitter": 0}}}
    facts = {"channel": {"after": {"ifb-up": {"qlen": backlog // 78, "backlog": backlog}}}}
    return CellResult(plan, {}, facts, pd.DataFrame(), {})


@pytest.mark.parametrize(
    ("backlog", "found"), [(0, False), (234, False), (17_187 + 1514, False), (17_188 + 1600, True), (10**6, True)]
)
def test_a_link_is_saturated_when_more_is_queued_than_is_on_its_way(backlog, found):
    assert bool(list(warnings._saturated(cell(backlog)))) == found


def test_a_link_without_a_rate_is_never_saturated():
    assert not list(warnings._saturated(cell(10**6, rate=0)))
