"""What a run found, in two sentences made from its figures: one on delay, one on loss."""

from analysis.plots import show_ms
from analysis.run import Run, Series

_ALIKE = 1.05
"""Up to this ratio of the greatest mean delay to the smallest, they are said to be alike."""


def _delay(all_series: list[Series]) -> str:
    means = {series.label: series.mean_ms for series in all_series if series.mean_ms is not None}
    if not means:
        return "nothing arrived"
    quick, slow = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if len(means) == 1:
        return f"{quick} took {show_ms(means[quick])} on average"
    if means[slow] <= _ALIKE * means[quick]:
        return f"all took about the same on average, {show_ms(means[quick])} to {show_ms(means[slow])}"
    return f"mean delays went from {show_ms(means[quick])} ({quick}) to {show_ms(means[slow])} ({slow})"


def _loss(all_series: list[Series]) -> str:
    losses = {series.label: series.loss_pct for series in all_series if series.loss_pct is not None}
    if not losses:
        return "nothing was measured"
    if not any(losses.values()):
        return "nothing was lost"
    most, whole = max(losses, key=losses.__getitem__), sum(not loss for loss in losses.values())
    if len(losses) == 1:
        return f"{most} lost {losses[most]:.3g} % of its messages"
    rest = f"{whole} of {len(losses)} lost nothing" if whole else f"the least was {min(losses.values()):.3g} %"
    return f"{most} lost most, {losses[most]:.3g} % of its messages, and {rest}"


def sentences(run: Run) -> list[str]:
    """The two sentences; each says something of every payload."""

    def sentence(clauses: list[str]) -> str:
        names = ["every payload"] if len(run.payloads) > 1 and len(set(clauses)) == 1 else run.payloads
        told = "; ".join(f"with {name}, {clause}" for name, clause in zip(names, clauses, strict=False))
        return f"{told[:1].upper()}{told[1:]}."

    return [sentence([look(run.of_payload(payload)) for payload in run.payloads]) for look in (_delay, _loss)]
