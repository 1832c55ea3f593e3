"""Published figures, as data with their citation, to be put beside ours."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent


@cache
def figures(study: str) -> dict[str, Any]:
    """What was published for a study (a file lists the `studies` that repeat it); empty if nothing is known."""
    for path in sorted(_FOLDER.glob("*.yaml")):
        found = dict(yaml.safe_load(path.read_text()))
        if study in found["studies"]:
            return found
    return {}


def loss_pct(study: str, profile: str, payload: str, protocol: str, qos: int | None) -> float | None:
    """The published loss of a cell in per cent; None if it was not tested or not published."""
    found: Any = figures(study).get("loss_pct", {}).get(profile, {}).get(payload, {}).get(protocol)
    if isinstance(found, dict):
        found = found.get(qos)
    return None if found is None else float(found)


def of_series(series: Any) -> float | None:
    """The published loss of a series of a run (analysis.run.Series) in per cent."""
    plan = series.cells[0].plan
    return loss_pct(plan["study"], plan["profile"], series.payload, series.protocol, series.qos)
