"""Pairs that fared worse, the sentences on what was found, and runs side by side, on made-up series."""

import numpy as np
import pandas as pd
import pytest

from analysis import compare, findings, pairs
from analysis.run import CellResult, Run, Series
from testbed.errors import UserError


def series(delays, protocol="mqtt", qos=1, payload="gps"):
    """`delays` of each publisher in ms, NaN for a lost message."""
    rows = [(f"publisher-{n:02d}", 10.0 * k, delay) for n, some in enumerate(delays, 1) for k, delay in enumerate(some)]
    messages = pd.DataFrame(rows, columns=["publisher", "at_s", "delay_ms"])
    return Series(protocol, qos, payload, [CellResult({}, {"status": "ok"}, {}, messages, {})])


def run(tmp_path, *all_series):
    return Run(tmp_path, {"plan": {"profile": {"name": "satcom"}, "cells": []}}, list(all_series))


STEADY = [100.0 + k for k in range(20)]
LOST = float("nan")


def test_like_pairs_are_not_called_worse():
    assert pairs.worse(series([STEADY] * 9)) == []


def test_the_pair_that_lost_more_is_named():
    (found,) = pairs.worse(series([STEADY] * 8 + [[LOST] * 10 + STEADY[:10]]))
    assert (found.publisher, found.figures) == ("publisher-09", "lost 50.0 %, the others 0.0 %")


def test_the_slower_pair_is_named():
    (found,) = pairs.worse(series([STEADY] * 8 + [[delay * 1.5 for delay in STEADY]]))
    assert found.publisher == "publisher-09"
    assert found.figures.startswith("median 164.2 ms, of all ")


def test_a_difference_that_is_sure_but_small_is_not_named():
    assert pairs.worse(series([[100.0] * 20] * 8 + [[101.0] * 20])) == []


@pytest.mark.parametrize("delays", [[], [[LOST] * 5] * 3, [STEADY]])
def test_nothing_to_compare_names_nobody_and_still_draws(delays):
    assert pairs.worse(series(delays)) == []
    _, alt = pairs.plot([series(delays)], {})
    assert alt.endswith("none.")


def test_findings_name_the_quickest_the_slowest_and_who_lost(tmp_path):
    slow = series([[1671.0] * 20], qos=2)
    lossy = series([[557.6] * 15 + [LOST] * 5], protocol="zmq-pgm", qos=None)
    delay, loss = findings.sentences(run(tmp_path, slow, lossy))
    assert delay == "With gps, mean delays went from 557.6 ms (zmq-pgm) to 1,671.0 ms (mqtt QoS 2)."
    assert loss == "With gps, zmq-pgm lost most, 25 % of its messages, and 1 of 2 lost nothing."


def test_findings_say_what_both_payloads_have_in_common(tmp_path):
    both = [series([[100.0] * 5], payload=payload) for payload in ("gps", "image")]
    assert findings.sentences(run(tmp_path, *both)) == [
        "With every payload, mqtt QoS 1 took 100.0 ms on average.",
        "With every payload, nothing was lost.",
    ]


def test_findings_where_nothing_arrived(tmp_path):
    told = findings.sentences(run(tmp_path, series([[LOST] * 5])))
    assert told == ["With gps, nothing arrived.", "With gps, mqtt QoS 1 lost 100 % of its messages."]


def test_a_step_from_one_run_to_another():
    row = compare.Row(
        ("gps", "mqtt", 1), [series([STEADY]), series([[delay + 50 for delay in STEADY[:10]] + [LOST] * 10])]
    )
    delay, loss = row.delay_step(1), row.loss_step(1)
    assert (delay.size, loss.size) == (45, 50)  # the ten that arrived are the first, 5 ms quicker than all
    assert delay.sure
    assert loss.sure
    assert delay.interval.low < 45 < delay.interval.high
    assert compare.Row(("gps", "mqtt", 1), [series([STEADY]), None]).delay_step(1) is None


def test_a_run_is_found_by_path_name_or_profile(tmp_path):
    for name in ("20260101-000000-satcom-7", "20260102-000000-satcom-9", "20260103-000000-cnr-10-5"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.csv").touch()
    assert compare.find_run("satcom", tmp_path).name == "20260102-000000-satcom-9"
    assert compare.find_run("20260101-000000-satcom-7", tmp_path).name == "20260101-000000-satcom-7"
    assert compare.find_run(str(tmp_path / "20260103-000000-cnr-10-5"), tmp_path).name == "20260103-000000-cnr-10-5"
    with pytest.raises(UserError, match="RUNS: 'nbwf'"):
        compare.find_run("nbwf", tmp_path)


def test_medians_are_those_of_each_pair():
    table = pairs.table(series([[1.0, 2.0, 3.0], [LOST, 4.0, 6.0]]))
    assert table["median_ms"].tolist() == [2.0, 5.0]
    assert np.allclose(table["loss_pct"], [0, 100 / 3])
