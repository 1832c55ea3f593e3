"""What the channel really did to packets, from netem's own counters (`tc -s qdisc`) before *go* and after the drain."""

from typing import Any

from scipy.stats import binomtest

CONFIDENCE = 0.99


def loss(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Packets that entered one IFB and that it dropped, the loss in per cent, and its 99 % interval (Clopper-Pearson).

    `before` and `after` are entries of `tc -j -s qdisc show`. Packets still queued are not counted.
    """
    dropped = after["drops"] - before["drops"]
    passed = after["packets"] - before["packets"]
    entered = dropped + passed
    if not entered:
        return {"packets": 0, "dropped": 0, "loss_pct": None, "loss_99_pct": None}
    interval = binomtest(dropped, entered).proportion_ci(CONFIDENCE, method="exact")
    return {
        "packets": entered,
        "dropped": dropped,
        "loss_pct": 100 * dropped / entered,
        "loss_99_pct": [100 * interval.low, 100 * interval.high],
    }
