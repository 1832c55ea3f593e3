"""What the guest's init runs: the cells of one job, one after the other, telling the host of each step on stdout."""

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from testbed.plan import cell_from_json
from testbed.trial import run_cell_safely

EPOCH = 1_700_000_000 * 10**9
"""Every cell starts at this virtual instant, 2023-11-14 22:13:20 UTC: its stamps do not depend on the cells before it."""

_ALIGN = 10 * 10**9


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def _align_clock() -> None:
    """Start on a whole step of the monotonic clock, so that the kernel's timer ticks lie alike in every cell, at EPOCH."""
    due = (time.monotonic_ns() // _ALIGN + 1) * _ALIGN
    until = _Timespec(*divmod(due, 10**9))
    libc = ctypes.CDLL(None)
    libc.clock_nanosleep(time.CLOCK_MONOTONIC, 1, ctypes.byref(until), None)  # 1: TIMER_ABSTIME
    time.clock_settime_ns(time.CLOCK_REALTIME, EPOCH)


def main(job_file: str) -> None:
    """Run every cell of the job; `job_file` holds a list of {cell, folder}."""
    for item in json.loads(Path(job_file).read_text()):
        cell = cell_from_json(item["cell"])

        def report(event: dict[str, Any], cell_id: str = cell.id) -> None:
            print(json.dumps({"cell": cell_id, **event}), flush=True)

        _align_clock()
        report({"phase": "start"})
        facts = run_cell_safely(cell, Path(item["folder"]), report)
        os.sync()
        report({"phase": "done", "status": facts["status"]})


if __name__ == "__main__":
    main(sys.argv[1])
