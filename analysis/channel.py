"""What the channel really did to packets, from netem's own counters (`tc -s qdisc`) before *go* and after the drain."""

from typing import Any

import scipy  # its parts are loaded when first used

CONFIDENCE = 0.99


def loss(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Packets that entered one IFB and that it dropped, the loss in per cent, and its 99 % interval (Clopper-Pearson).

    `before` and `after` are entries of `tc -j -s qdisc show`. netem drops a packet as it enters, so those that are still
    queued have passed that test: without them a saturated link would seem to lose more than it does.
    """
    dropped = after["drops"] - before["drops"]
    passed = after["packets"] - before["packets"] + after.get("qlen", 0) - before.get("qlen", 0)
    entered = dropped + passed
    if not entered:
        return {"packets": 0, "dropped": 0, "loss_pct": None, "loss_99_pct": None}
    interval = scipy.stats.binomtest(dropped, entered).proportion_ci(CONFIDENCE, method="exact")
    return {
        "packets": entered,
        "dropped": dropped,
        "loss_pct": 100 * dropped / entered,
        "loss_99_pct": [100 * interval.low, 100 * interval.high],
    }
