"""What a paper's text says of the delays, as checks on a run: each holds, does not hold, or could not be checked.

A check is data in published/*.yaml: `kind` names a function below, `who` the series it is about ("mqtt", "mqtt/2", "*"),
the rest are the function's arguments. Compared are mean delays in ms of delivered messages, which is what is plotted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysis import published
from analysis.run import Run, Series

Verdict = tuple[bool, str] | None
"""Whether it holds, and the figures that say so; None if what it is about was not run, or did not arrive."""


@dataclass(frozen=True)
class Checked:
    """A statement on a payload's delays, and what this run says to it."""

    payload: str
    says: str
    holds: bool | None
    figures: str
    bounds: str


def _matches(series: Series, words: list[str]) -> bool:
    names = {"*", series.protocol, f"{series.protocol}/{series.qos}"}
    return bool(names & set(words))


@dataclass(frozen=True)
class _Means:
    """Mean delays (ms) by label, of a payload of a run."""

    run: Run
    payload: str

    def of(self, words: list[str], but: list[str] | None = None) -> dict[str, float]:
        return {
            series.label: series.mean_ms
            for series in self.run.of_payload(self.payload)
            if _matches(series, words) and not _matches(series, but or []) and series.mean_ms is not None
        }

    def growth(self, words: list[str], since: str) -> dict[str, float]:
        """How many times the delay with the payload `since` it is."""
        before = _Means(self.run, since).of(words)
        return {label: mean / before[label] for label, mean in self.of(words).items() if before.get(label)}


def _told(values: dict[str, float], unit: str = "ms") -> str:
    return ", ".join(f"{label} {value:,.{1 if unit == 'ms' else 2}f} {unit}" for label, value in values.items())


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def most_between(
    means: _Means,
    who: list[str],
    but: list[str] | None = None,
    low_ms: float | None = None,
    high_ms: float | None = None,
) -> Verdict:
    """More than half of the means are in the range."""
    found = means.of(who, but)
    inside = [value for value in found.values() if _within(value, low_ms, high_ms)]
    return (2 * len(inside) > len(found), _told(found)) if found else None


def all_between(means: _Means, who: list[str], low_ms: float | None = None, high_ms: float | None = None) -> Verdict:
    """All means are in the range."""
    found = means.of(who)
    return (all(_within(value, low_ms, high_ms) for value in found.values()), _told(found)) if found else None


def alike(means: _Means, who: list[str], most: float, but: list[str] | None = None) -> Verdict:
    """The greatest mean is at most `most` times the smallest."""
    found = means.of(who, but)
    return (max(found.values()) <= most * min(found.values()), _told(found)) if len(found) > 1 else None


def levels_alike(means: _Means, who: list[str], most: float) -> Verdict:
    """For each protocol, the greatest mean of its QoS levels is at most `most` times the smallest."""
    protocols = dict.fromkeys(
        series.protocol for series in means.run.of_payload(means.payload) if series.qos is not None
    )
    verdicts = [alike(means, [name], most) for name in protocols if "*" in who or name in who]
    known = [verdict for verdict in verdicts if verdict is not None]
    return (all(holds for holds, _ in known), "; ".join(told for _, told in known)) if known else None


def ratio(
    means: _Means, who: list[str], than: list[str], least: float | None = None, most: float | None = None
) -> Verdict:
    """Each mean of `who` is within `least` and `most` times every mean of `than`."""
    ours, theirs = means.of(who), means.of(than, but=who)
    if not ours or not theirs:
        return None
    ratios = [mine / other for mine in ours.values() for other in theirs.values()]
    return all(_within(value, least, most) for value in ratios), _told(ours | theirs)


def growth(means: _Means, who: list[str], since: str, least: float | None = None, most: float | None = None) -> Verdict:
    """Each mean is within `least` and `most` times its mean with the payload `since`."""
    found = means.growth(who, since)
    return (all(_within(value, least, most) for value in found.values()), _told(found, "times")) if found else None


def grew_most(means: _Means, who: list[str], among: list[str], since: str) -> Verdict:
    """The means of `who` grew by more ms since the payload `since` than those of `among`."""
    before = _Means(means.run, since)

    def steps(words: list[str]) -> dict[str, float]:
        old = before.of(words)
        return {label: mean - old[label] for label, mean in means.of(words).items() if label in old}

    ours, theirs = steps(who), steps(among)
    if not ours or not theirs:
        return None
    return min(ours.values()) > max(theirs.values()), "grew by " + _told(ours | theirs)


def lost(means: _Means, who: list[str], least_pct: float) -> Verdict:
    """Every loss is at least `least_pct`."""
    losses = {
        series.label: series.loss_pct
        for series in means.run.of_payload(means.payload)
        if _matches(series, who) and series.loss_pct is not None
    }
    return (all(value >= least_pct for value in losses.values()), "lost: " + _told(losses, "%")) if losses else None


KINDS: dict[str, Callable[..., Verdict]] = {
    each.__name__: each for each in (most_between, all_between, alike, levels_alike, ratio, growth, grew_most, lost)
}

_BOUNDS = {
    "low_ms": "from {} ms",
    "high_ms": "to {} ms",
    "least": "at least {} times",
    "most": "at most {} times",
    "least_pct": "at least {} %",
}


def check(run: Run) -> list[Checked]:
    """All statements on the run's profile whose payload was run."""
    plan = run.plan
    checked = []
    for statement in published.figures(plan["study"]).get("delay_statements", []):
        if statement["network"] != plan["profile"]["name"] or statement["payload"] not in run.payloads:
            continue
        for one in statement["checks"]:
            given: dict[str, Any] = {key: value for key, value in one.items() if key not in ("says", "kind")}
            verdict = KINDS[one["kind"]](_Means(run, statement["payload"]), **given)
            bounds = ", ".join(_BOUNDS[key].format(f"{given[key]:g}") for key in _BOUNDS if key in given)
            holds, figures = (
                verdict if verdict is not None else (None, "what it compares was not run, or never arrived")
            )
            checked.append(Checked(statement["payload"], one["says"], holds, figures, bounds))
    return checked
