"""A cell's captures, analysed: what its packets were for, and where the time of its messages went.

Each packet is taken once, as it was sent (see crossings), dissected by one run of tshark (dissect), counted (overhead), and
its messages are followed over the channel (legs, delays). The results stand beside the captures: packets.json, wire.csv.
"""

import gc
import json
import os
import signal
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import messages
from analysis.pcap import cells, overhead
from analysis.pcap.delays import Delays, means_ms
from analysis.pcap.dissect import dissect
from analysis.pcap.legs import Legs, Packet
from testbed.errors import SetupError, UserError
from testbed.pcapng import write_pcap

SUMMARY, TABLE = "packets.json", "wire.csv"
_FORMAT = 1
"""What packets.json is laid out like; one of another format is made anew."""


def packets(cell: cells.Recorded) -> list[Packet]:
    """The IPv4 packets of a cell in the order in which they were sent."""
    crossed = cell.crossings()
    with tempfile.TemporaryDirectory(prefix="testbed-") as scratch:
        sent = Path(scratch, "sent.pcap")
        write_pcap(sent, (one.packet for one in crossed))
        return [Packet(*pair) for pair in zip(crossed, dissect(sent, cell.protocol), strict=True)]


def _traffic(told: pd.DataFrame, size: int, go: int, wire_bytes: int) -> dict[str, float | None]:
    """Goodput from *go* to the last delivery, and bytes on the wire for each byte of payload that was delivered."""
    delivered = told["received_ns"].dropna()
    payload = len(delivered) * size
    if not payload:
        return {"goodput_bit_s": 0.0, "wire_bytes_per_payload_byte": None}
    seconds = (int(delivered.max()) - go) / 1e9
    return {"goodput_bit_s": 8 * payload / seconds, "wire_bytes_per_payload_byte": wire_bytes / payload}


def analyse(folder: Path) -> dict[str, Any]:
    """Analyse a cell's captures; writes packets.json and wire.csv beside them, and returns what the first holds."""
    cell = cells.load(folder)
    plan, found = cell.plan, packets(cell)
    pair_of = {address: int(name.rsplit("-")[-1]) for name, address in cell.addresses.items() if name != cells.SERVER}
    legs = Legs(found, plan.run_tag, plan.size, pair_of)
    told = messages.read(folder / "messages.csv")
    table = Delays(plan, legs, cell.addresses).table(told)
    counted = overhead.count(found, plan.run_tag, plan.size, cell.go)
    counted["tcp"]["out_of_order"] = legs.streams.out_of_order
    result = {
        "format": _FORMAT,
        **counted,
        **_traffic(told, plan.size, cell.go, counted["wire_bytes_from_go"]),
        "delay": {"delivered": int(told["received_ns"].notna().sum()), **means_ms(table, told)},
    }
    table.to_csv(folder / TABLE, index=False, lineterminator="\n")
    (folder / SUMMARY).write_text(json.dumps(result, indent=1))
    return result


def known(folder: Path) -> dict[str, Any]:
    """What packets.json of a cell's folder holds; empty if there is none, or one of another format.

    Keys: `packets`, `wire_bytes`, `wire_bytes_from_go`, `not_arrived`; `kinds` (packets and bytes of each), `names` (the
    protocol's messages), `layers` (bytes); `duplicates`; `tcp` (segments, retransmissions, out_of_order); `goodput_bit_s`,
    `wire_bytes_per_payload_byte`; `delay` (delivered, messages, application_ms, wire_ms, stages_ms: means over `messages`).
    Or `problem`: why the captures could not be analysed.
    """
    written = folder / SUMMARY
    found: dict[str, Any] = json.loads(written.read_text()) if written.exists() else {}
    return found if found.get("format") == _FORMAT else {}


def summary(folder: Path) -> dict[str, Any]:
    """As known(), but analysed first if that has not been done."""
    found = known(folder)
    return found if found and "problem" not in found else analyse(folder)


def _summary_or_problem(folder: Path) -> None:
    try:
        summary(folder)
    except (SetupError, UserError, OSError, ValueError, KeyError) as error:
        problem = {"format": _FORMAT, "problem": f"{type(error).__name__}: {error}"}
        (folder / SUMMARY).write_text(json.dumps(problem, indent=1))


def analyse_run(run: Path) -> None:
    """Analyse those cells of a run that came to their end and have not been, on all cores.

    A problem is noted in packets.json, not raised.
    """
    folders = [file.parent for file in sorted(run.glob("cells/*/cell.json"))]
    missing = [folder for folder in folders if (folder / "messages.csv").exists() and "kinds" not in known(folder)]
    if missing:
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("fork"), _begin) as pool:
            list(pool.map(_summary_or_problem, missing))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends its pool
    gc.disable()  # to look for cycles (there are none) among a packet's many small objects took a seventh of the time
