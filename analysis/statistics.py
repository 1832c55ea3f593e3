"""Which figures stand for a set of delays, and how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.run import Floats

ALPHA = 0.05
"""Below this p-value an assumption is taken as violated."""
CONFIDENCE = 0.95
RESAMPLES = 9999
_BOOTSTRAP_SEED = 0
_SHAPIRO_MOST = 5000
"""Royston's p-values (Applied Statistics AS R94, 1995) hold up to this many values."""


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, at CONFIDENCE."""

    low: float
    high: float


@dataclass(frozen=True)
class Headline:
    """Whether mean and standard deviation may stand for the groups, or median and interquartile range must."""

    use_mean: bool
    reason: str
    shapiro_p: dict[str, float | None]
    """p-value of each group; None where it cannot be tested: fewer than 3 values, or all alike."""
    levene_p: float | None


def _shapiro(values: Floats) -> float | None:
    if len(values) < 3 or np.ptp(values) == 0:
        return None
    every = -(-len(values) // _SHAPIRO_MOST)  # rounded up
    return float(stats.shapiro(values[::every]).pvalue)


def _levene(groups: list[Floats]) -> float | None:
    """Levene's test in the form of Brown and Forsythe (1974): around the medians."""
    tested = [values for values in groups if len(values) >= 3]
    if len(tested) < 2 or all(np.ptp(values) == 0 for values in tested):
        return None
    return float(stats.levene(*tested, center="median").pvalue)


def headline(groups: dict[str, Floats]) -> Headline:
    """Choose for groups of delays (ms) that are to be compared, so that all are described alike.

    Mean and standard deviation only if no group fails Shapiro and Wilk's test of normality (1965) and the groups' variances
    do not fail Levene's (1960); else, and where that cannot be tested, median and IQR, which outliers do not move.
    """
    shapiro = {name: _shapiro(values) for name, values in groups.items() if len(values)}
    levene = _levene(list(groups.values()))
    untested = [name for name, p in shapiro.items() if p is None]
    violated = [name for name, p in shapiro.items() if p is not None and p < ALPHA]
    if not shapiro:
        reason = "nothing arrived"
    elif violated:
        reason = f"not normally distributed (Shapiro-Wilk, p < {ALPHA:g}): {', '.join(violated)}"
    elif untested:
        reason = f"normality cannot be tested (too few values, or all alike): {', '.join(untested)}"
    elif levene is not None and levene < ALPHA:
        reason = f"variances differ between the groups (Levene, p = {levene:.2g})"
    else:
        reason = f"neither Shapiro-Wilk nor Levene speaks against it (p ≥ {ALPHA:g})"
        return Headline(True, reason, shapiro, levene)
    return Headline(False, reason, shapiro, levene)


def loss_interval(lost: int, sent: int) -> Interval | None:
    """Wilson's score interval (1927) of a loss, in per cent; None if nothing was sent."""
    if not sent:
        return None
    interval = stats.binomtest(lost, sent).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(100 * float(interval.low), 100 * float(interval.high))


def repeats_interval(values: Sequence[float]) -> Interval | None:
    """Percentile bootstrap (Efron 1979) of the mean over repeats, in the values' unit; None for fewer than two.

    Its random numbers have a fixed seed: the same results give the same interval.
    """
    if len(values) < 2:
        return None
    if min(values) == max(values):
        return Interval(values[0], values[0])
    drawn = stats.bootstrap(
        (np.asarray(values),),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(_BOOTSTRAP_SEED),
    )
    return Interval(float(drawn.confidence_interval.low), float(drawn.confidence_interval.high))


def loss_difference(lost: int, sent: int, lost_before: int, sent_before: int) -> Interval | None:
    """Of two losses, in percentage points: Newcombe's hybrid score interval (1998, method 10), from Wilson's of each."""
    now, before = loss_interval(lost, sent), loss_interval(lost_before, sent_before)
    if now is None or before is None:
        return None
    share, share_before = 100 * lost / sent, 100 * lost_before / sent_before
    step = share - share_before
    down, up = (
        np.hypot(share - now.low, before.high - share_before),
        np.hypot(now.high - share, share_before - before.low),
    )
    return Interval(float(step - down), float(step + up))


def mean_difference(values: Floats, before: Floats) -> Interval | None:
    """Of the means of `values` and `before`, in their unit: Welch's t interval (1947); None for fewer than two values."""
    if len(values) < 2 or len(before) < 2:
        return None
    step = float(values.mean() - before.mean())
    if not np.ptp(values) and not np.ptp(before):
        return Interval(step, step)
    interval = stats.ttest_ind(values, before, equal_var=False).confidence_interval(CONFIDENCE)
    return Interval(float(interval.low), float(interval.high))


def percentiles(values: Floats, *wanted: float) -> list[float | None]:
    """Percentiles in the values' unit; None where there are no values."""
    return [float(value) for value in np.percentile(values, wanted)] if len(values) else [None for _ in wanted]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None where there are no values."""
    return float(np.mean(values)) if len(values) else None
