"""A run's link certificate: two probes, before and after the cells, and what they say of the channel."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from analysis import certificate
from analysis.certificate import FAILED, NOT_CHECKED
from testbed.cell import Channel, derive_seed
from testbed.pcapng import Interface, bring_together
from testbed.plan import Plan
from testbed.probe import Probe
from testbed.workers import Runtime, Task, run_all

MOMENTS = ("before", "after")


def why_not(channel: Channel, runtime: str) -> str | None:
    """Why a channel is not probed; None if it is."""
    if not channel.netem.shapes:
        return "an unshaped link has nothing to check"
    if runtime == "docker":
        return "containers have no probe yet; each cell's netem is read back, and watched while it runs"
    return None


def probe(plan: Plan, moment: str, real: bool) -> Probe:
    """A look at the channel of a plan's cells, with the limits of a cell."""
    cell = plan.cells[0]
    name = f"{plan.profile.name}-certificate-{moment}"
    seed = derive_seed(plan.seed, plan.profile.name, name)
    return Probe(name, seed, cell.channel, cell.tcp, cell.stall_limit, cell.wall_limit, real)


@dataclass
class Certificate:
    """What the probes of one run say; kept in `folder` and in the manifest."""

    plan: Plan
    runtime: str
    folder: Path
    moments: list[dict[str, Any]] = field(default_factory=list)

    @property
    def channel(self) -> Channel:
        """The channel that all cells of a plan have."""
        return self.plan.cells[0].channel

    @property
    def real(self) -> bool:
        """Whether time passes as it does on the wall."""
        return self.runtime != "virtual"

    def probes(self) -> list[Probe]:
        """The probes to run, the first before the cells and the last after them; none if the channel is not checked."""
        if why_not(self.channel, self.runtime):
            return []
        return [probe(self.plan, moment, self.real) for moment in MOMENTS]

    def place(self, probe: Task) -> Path:
        """Where a probe's captures go."""
        return self.folder / probe.id.split("-")[-1]

    def finish(self, probe: Probe, status: str, wall_s: float, error: str = "") -> dict[str, Any]:
        """Judge what a probe left, whatever became of it; returns its moment for the manifest."""
        written = self.place(probe) / "cell.json"
        facts: dict[str, Any] = json.loads(written.read_text()) if written.exists() else {}
        moment: dict[str, Any] = {"moment": self.place(probe).name, "seed": probe.seed, "wall_s": round(wall_s, 3)}
        if status != "ok":
            ended = NOT_CHECKED if status == "interrupted" else FAILED
            moment |= {"verdict": ended, "reason": error or facts.get("error", status), "checks": []}
        else:
            checks = self._judge(probe, facts)
            moment |= {"verdict": certificate.verdict(checks), "reason": "", "checks": [asdict(one) for one in checks]}
            moment |= {"channel": facts["channel"], "sent": facts["sent"], "capture": facts["capture"]}
        self.moments.append(moment)
        return moment

    def _judge(self, probe: Probe, facts: dict[str, Any]) -> list[certificate.Check]:
        raws = {(side, name): Path(raw) for side, some in facts["sources"].items() for name, _, raw in some}
        seen = certificate.observe(self.channel, raws)
        for side, some in facts["sources"].items():
            sources = [(Interface(name, shows), Path(raw)) for name, shows, raw in some]
            comment = f"{probe.id}, seed {probe.seed}, {side}"
            bring_together(sources, self.place(probe) / f"{side}.pcap", comment)
        for raw in raws.values():
            raw.unlink()
        return certificate.judge(self.channel, seen, probe.real, looks=len(MOMENTS))

    @property
    def verdict(self) -> str:
        """`failed` if one probe did; `passed` if all that belong to the certificate did; else `not checked`."""
        found = [moment["verdict"] for moment in self.moments]
        if FAILED in found:
            return FAILED
        return certificate.PASSED if found == [certificate.PASSED] * len(MOMENTS) else NOT_CHECKED

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        reason = why_not(self.channel, self.runtime)
        if reason is None and self.verdict == NOT_CHECKED:
            reason = "a probe was interrupted"
        return {
            "verdict": self.verdict,
            "reason": reason or "",
            "confidence": certificate.CONFIDENCE,
            "false_alarms": certificate.FALSE_ALARMS,
            "tolerance": asdict(certificate.REAL if self.real else certificate.VIRTUAL),
            "moments": sorted(self.moments, key=lambda moment: MOMENTS.index(moment["moment"])),
        }


def run_all_certificates(runtime: Runtime, plans: list[Plan], folder: Path) -> list[Certificate]:
    """The certificates of plans without their cells; each is written to `folder`/<profile>/certificate.json."""
    found = {plan.profile.name: Certificate(plan, runtime.name, folder / plan.profile.name) for plan in plans}
    owner = {probe.id: one for one in found.values() for probe in one.probes()}
    tasks = [probe for one in found.values() for probe in one.probes()]
    for done in run_all(runtime, tasks, lambda task: owner[task.id].place(task), lambda event: None):
        assert isinstance(done.task, Probe)
        owner[done.task.id].finish(done.task, done.status, done.wall_s, done.error)
    for name, one in found.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "certificate.json").write_text(json.dumps(one.to_json(), indent=1))
    return list(found.values())
