"""From messages.csv to a cell's measures. Loss counts messages not delivered by the end of the drain."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MEASURES = (
    "sent",
    "delivered",
    "loss_pct",
    "duplicates",
    "out_of_order",
    "delay_mean_ms",
    "delay_median_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "delay_max_ms",
    "delay_iqr_ms",
    "jitter_mean_ms",
)


def read(path: Path) -> pd.DataFrame:
    """messages.csv with `delay_ms`, from the scheduled send time to the first copy's arrival; NaN if it was lost."""
    messages = pd.read_csv(path, dtype={"received_ns": "Int64"})
    messages["delay_ms"] = ((messages["received_ns"] - messages["scheduled_ns"]) / 1e6).astype("Float64").astype(float)
    return messages


def jitter_ms(messages: pd.DataFrame) -> float:
    """Mean absolute difference of consecutive delays of each pair, in ms (a pair's delivered messages, by number)."""
    delivered = messages.dropna(subset="delay_ms").sort_values(["publisher", "subscriber", "seq"])
    steps = delivered.groupby(["publisher", "subscriber"])["delay_ms"].diff().abs()
    return float(steps.mean())


def out_of_order(messages: pd.DataFrame) -> int:
    """Messages that arrived after a later one of the same pair."""
    delivered = messages.dropna(subset="received_ns").sort_values(["publisher", "subscriber", "received_ns", "seq"])
    latest = delivered.groupby(["publisher", "subscriber"])["seq"].cummax()
    return int((delivered["seq"] < latest).sum())


def measures(messages: pd.DataFrame) -> dict[str, Any]:
    """MEASURES of one cell; delays are NaN where nothing arrived."""
    delays = messages["delay_ms"].dropna().to_numpy()
    sent, delivered = len(messages), len(delays)
    row: dict[str, Any] = {
        "sent": sent,
        "delivered": delivered,
        "loss_pct": 100 * (sent - delivered) / sent if sent else float("nan"),
        "duplicates": int((messages["copies"] - 1).clip(lower=0).sum()),
        "out_of_order": out_of_order(messages),
    }
    percentiles = (
        dict(zip((25, 50, 75, 95, 99), np.percentile(delays, [25, 50, 75, 95, 99]), strict=True)) if delivered else {}
    )
    nan = float("nan")
    row["delay_mean_ms"] = float(delays.mean()) if delivered else nan
    row["delay_median_ms"] = percentiles.get(50, nan)
    row["delay_p95_ms"] = percentiles.get(95, nan)
    row["delay_p99_ms"] = percentiles.get(99, nan)
    row["delay_max_ms"] = float(delays.max()) if delivered else nan
    row["delay_iqr_ms"] = percentiles.get(75, nan) - percentiles.get(25, nan)
    row["jitter_mean_ms"] = jitter_ms(messages)
    return row
