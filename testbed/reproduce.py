"""What a paper measured, as plans: exactly the cells of its tables, with its number of clients for each protocol."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from analysis import published
from testbed import profile
from testbed.errors import UserError
from testbed.plan import Choice, Plan, resolve
from testbed.study import StudyFile


def profiles(study: str) -> list[str]:
    """The profiles that a study's paper has tables of. Raises UserError if nothing was published for it."""
    tables = published.figures(study).get("loss_pct", {})
    if not tables:
        raise UserError(f"STUDY: {study!r}: nothing published is known of it; allowed is one like ffi-2022")
    return list(tables)


def _levels(tested: Any) -> list[int | None]:
    """QoS levels of a protocol that the paper tested: a mapping by QoS, or one figure for a protocol without."""
    if isinstance(tested, dict):
        return [qos for qos, loss in tested.items() if loss is not None]
    return [] if tested is None else [None]


def plan(name: str, study: StudyFile, where: str, link: str, choice: Choice) -> Plan:
    """The cells of the paper's tables for one profile, with `choice` put over the study."""
    paper, made = published.figures(name), []
    for payload, protocols in paper["loss_pct"][link].items():
        for protocol, tested in protocols.items():
            levels = _levels(tested)
            if not levels:
                continue
            wanted = dataclasses.replace(
                choice,
                payload=payload,
                protocol=protocol,
                qos=None if levels == [None] else ",".join(map(str, levels)),
                clients=choice.clients if choice.clients is not None else paper["clients"][protocol],
            )
            made.append(resolve(name, study, where, profile.load(link), wanted))
    return dataclasses.replace(made[0], cells=[cell for one in made for cell in one.cells])


def finished(wanted: Plan, folder: Path) -> Path | None:
    """The run below `folder` that did this very plan to its end; None if there is none."""
    told = json.loads(json.dumps(wanted.to_json()))
    for written in sorted(folder.glob("*/manifest.json"), reverse=True):
        manifest = json.loads(written.read_text())
        facts = manifest["cells"]
        done = all(facts.get(cell.id, {}).get("status") in ("ok", "timeout") for cell in wanted.cells)
        if done and manifest["plan"] == told and manifest["runtime"] == "virtual":
            return written.parent
    return None
