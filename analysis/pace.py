"""Whether the machine, and not the channel, set a cell's pace; of interest in real time only."""

import pandas as pd

LATE_LIMIT_MS, IDLE_LIMIT_PCT = 5.0, 10.0
"""A cell is host-limited if the 99th percentile of late publishes is above, or the processors' idle share below."""


def late_p99_ms(messages: pd.DataFrame) -> float | None:
    """99th percentile of how much later than scheduled messages were handed to the protocol, in ms; None without any."""
    if messages.empty:
        return None
    return round(float(((messages["sent_ns"] - messages["scheduled_ns"]) / 1e6).quantile(0.99)), 3)


def is_host_limited(late_ms: float | None, idle_pct: float | None) -> bool:
    """Whether either figure is beyond its limit; None: not known."""
    return (late_ms is not None and late_ms > LATE_LIMIT_MS) or (idle_pct is not None and idle_pct < IDLE_LIMIT_PCT)
