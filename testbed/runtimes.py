"""Which runtime carries a plan, and why: what was asked for, or what this machine can do."""

import dataclasses
from collections.abc import Mapping

from compose import engine, image, images
from compose.project import OWN_IMAGE
from guest import kernel
from testbed import host
from testbed.errors import SetupError, UserError
from testbed.plan import CONGESTION, Plan
from testbed.workers import Docker, Netns, Runtime, Virtual

NAMES = ("auto", "virtual", "docker", "netns")

_UNRESTRICTED = "reno"  # the one congestion control that Linux lets every namespace use (net/ipv4/tcp_cong.c, tcp_reno)


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The runtime, why it was taken, and the plan as it can be had there (`Plan.deviations`)."""

    runtime: Runtime
    reason: str
    plan: Plan


@dataclasses.dataclass(frozen=True)
class Given:
    """What the command line says that only some runtimes can honour: servers' images by variable, congestion control."""

    images: Mapping[str, str]
    congestion: str | None


NOTHING = Given({}, None)


def choose(name: str, plan: Plan, given: Given) -> Chosen:
    """The runtime called `name`, or for `auto` docker if it can run the plan right now, else virtual.

    Raises UserError or SetupError before anything is started.
    """
    if name not in NAMES:
        raise UserError(f"RUNTIME: {name!r}: allowed are {', '.join(NAMES)}")
    if name == "auto":
        lacks = images.problem(plan.cells, given.images) or engine.auto_problem(plan.cells[0].tcp)
        if lacks is None:
            return _docker(plan, given, "a Docker engine answers and its kernel has netem and ifb; real time")
        reason = f"it needs neither Docker nor netem in this machine's kernel; not docker: {lacks}"
        return _without_containers(virtual(), reason, plan, given)
    if name == "docker":
        return _docker(plan, given, "as asked; real time, containers of the Docker engine")
    if name == "virtual":
        return _without_containers(virtual(), "as asked", plan, given)
    problem = host.netns_problem(plan.profile.netem.shapes)
    if problem:
        raise SetupError(f"{problem}; see make doctor")
    return _without_containers(Netns(), "as asked; real time, on this machine's kernel", plan, given)


def virtual() -> Runtime:
    """The guest. Raises SetupError if its kernel is not built."""
    built = kernel.cached()
    if built is None:
        raise SetupError(
            "RUNTIME=virtual needs the guest's kernel, which is not built yet: make setup (see make doctor)"
        )
    return Virtual(built)


def _without_containers(runtime: Runtime, reason: str, plan: Plan, given: Given) -> Chosen:
    for variable, text in given.images.items():
        raise UserError(f"{variable}: {text!r}: allowed with RUNTIME=docker only (this is {runtime.name}: {reason})")
    host.check_servers(plan.cells)
    return Chosen(runtime, reason, plan)


def _docker(plan: Plan, given: Given, reason: str) -> Chosen:
    wrong = images.problem(plan.cells, given.images)
    if wrong:
        raise UserError(f"RUNTIME=docker: {wrong}")
    problem = engine.engine_problem()
    if problem:
        raise SetupError(f"RUNTIME=docker: {problem}; or use RUNTIME=virtual, which needs no Docker")
    built = image.build()
    problem = engine.shaping_problem(built) if plan.profile.netem.shapes else None
    if problem:
        raise SetupError(f"RUNTIME=docker: {problem}")
    plan = _with_allowed_tcp(built, plan, given.congestion)
    chosen, missed = images.choose(plan.cells, given.images)
    engine.remove_orphans(kept_too=False)
    return Chosen(
        Docker({OWN_IMAGE: built, **chosen}), reason, dataclasses.replace(plan, deviations=[*plan.deviations, *missed])
    )


def _with_allowed_tcp(image_name: str, plan: Plan, asked: str | None) -> Plan:
    """The plan with a congestion control that containers may use; one that was asked for is never replaced."""
    tcp = plan.cells[0].tcp
    problem = engine.tcp_problem(image_name, tcp)
    if problem is None:
        return plan
    instead = tcp | {CONGESTION: _UNRESTRICTED}
    if asked is not None or CONGESTION not in tcp or engine.tcp_problem(image_name, instead):
        raise SetupError(f"RUNTIME=docker: {problem}")
    sentence = (
        f"TCP congestion control {_UNRESTRICTED} instead of the study's {tcp[CONGESTION]}: this kernel allows containers "
        f"{engine.allowed_congestion()} (sudo sysctl -w net.ipv4.tcp_allowed_congestion_control='reno {tcp[CONGESTION]}')"
    )
    cells = [dataclasses.replace(cell, tcp=instead) for cell in plan.cells]
    return dataclasses.replace(plan, cells=cells, deviations=[*plan.deviations, sentence])
