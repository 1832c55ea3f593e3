import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import statistics
from analysis.statistics import headline, loss_interval, repeats_interval

RANDOM = np.random.default_rng(1)
NORMAL = {name: RANDOM.normal(500, 20, 200) for name in ("a", "b")}


def test_normal_groups_of_one_variance_are_described_by_their_mean():
    found = headline(NORMAL)
    assert found.use_mean
    assert all(p > 0.05 for p in found.shapiro_p.values())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (RANDOM.exponential(500, 200), "not normally distributed"),
        (RANDOM.normal(500, 200, 200), "variances differ"),
        (np.full(200, 557.6), "cannot be tested"),
        (np.array([1.0, 2.0]), "cannot be tested"),
    ],
)
def test_any_violated_assumption_leads_to_the_median(other, reason):
    found = headline({**NORMAL, "c": other})
    assert not found.use_mean
    assert reason in found.reason


def test_groups_without_a_message_are_passed_over():
    assert headline({**NORMAL, "c": np.array([])}).use_mean
    assert headline({"a": np.array([])}).reason == "nothing arrived"


def test_more_values_than_the_test_is_made_for_are_thinned():
    assert headline({"a": RANDOM.normal(0, 1, 20_001)}).shapiro_p["a"] is not None


def test_wilson_of_a_textbook_example():
    """3 of 10: 0.1078 to 0.6032, as R's binom.confint(3, 10, method='wilson') gives."""
    interval = loss_interval(3, 10)
    assert (interval.low, interval.high) == (pytest.approx(10.78, abs=0.01), pytest.approx(60.32, abs=0.01))


@given(st.integers(1, 1000).flatmap(lambda sent: st.tuples(st.integers(0, sent), st.just(sent))))
def test_wilson_holds_the_loss_and_stays_within_0_and_100(loss):
    lost, sent = loss
    interval = loss_interval(lost, sent)
    assert 0 <= interval.low <= 100 * lost / sent + 1e-9
    assert 100 * lost / sent - 1e-9 <= interval.high <= 100 + 1e-9


def test_nothing_sent_has_no_interval():
    assert loss_interval(0, 0) is None


def test_bootstrap_over_repeats_is_repeatable_and_holds_the_mean():
    interval = repeats_interval([10.0, 12.0, 11.0, 15.0])
    assert interval == repeats_interval([10.0, 12.0, 11.0, 15.0])
    assert 10 <= interval.low < 12 < interval.high <= 15
    assert repeats_interval([5.0]) is None
    assert repeats_interval([5.0, 5.0]).high == 5.0


def test_difference_of_losses_is_newcombes():
    """Newcombe (Statistics in Medicine 17, 1998), table II, method 10: 56/70 and 48/80."""
    interval = statistics.loss_difference(56, 70, 48, 80)
    assert (interval.low, interval.high) == pytest.approx((5.24, 33.39), abs=0.005)
    assert statistics.loss_difference(0, 0, 1, 2) is None


def test_difference_of_means_is_welchs():
    interval = statistics.mean_difference(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert (interval.low, interval.high) == pytest.approx(
        (-2.73, 1.73), abs=0.01
    )  # -0.5 ± 0.866 · t with 4.96 degrees of freedom
    assert statistics.mean_difference(np.array([5.0, 5.0]), np.array([2.0, 2.0])) == statistics.Interval(3, 3)
    assert statistics.mean_difference(np.array([5.0]), np.array([2.0, 2.0])) is None
