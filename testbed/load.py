"""How busy this machine's processors are."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cpu:
    """Time that all processors of the machine spent since its start, in ticks."""

    idle: int
    total: int

    @classmethod
    def now(cls) -> "Cpu":
        """From the first line of /proc/stat (proc(5)), which containers see as it is; waiting for a disk is idle."""
        _cpu, *words = Path("/proc/stat").read_text().splitlines()[0].split()
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, words[:8])  # guests' time is in user and nice
        return cls(idle + iowait, user + nice + system + idle + iowait + irq + softirq + steal)

    def idle_pct_since(self, before: "Cpu") -> float | None:
        """The share that was idle since `before`, in per cent; None if no tick went by."""
        passed = self.total - before.total
        return round(100 * (self.idle - before.idle) / passed, 1) if passed else None
