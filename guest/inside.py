"""What the guest's init runs: the cells of one job, each starting at the same virtual instant."""

import ctypes
import sys
import time
from functools import partial

from testbed import job
from testbed.trial import run_cell

EPOCH = 1_700_000_000 * 10**9
"""Every cell starts at this virtual instant, 2023-11-14 22:13:20 UTC: its stamps do not depend on the cells before it."""

_ALIGN = 10 * 10**9
_TIMER_ABSTIME = 1


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def align_clock() -> None:
    """Start on a whole step of the monotonic clock, so that the kernel's timer ticks lie alike in every cell, at EPOCH."""
    due = (time.monotonic_ns() // _ALIGN + 1) * _ALIGN
    until = _Timespec(*divmod(due, 10**9))
    ctypes.CDLL(None).clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(until), None)
    time.clock_settime_ns(time.CLOCK_REALTIME, EPOCH)


if __name__ == "__main__":
    job.run(sys.argv[1], before_each=align_clock, run_one=partial(run_cell, clock="virtual"))
