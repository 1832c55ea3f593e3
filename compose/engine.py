"""The Docker engine: whether it can run cells, and clean-up of what carries our labels, never by a pattern of names."""

import fcntl
import functools
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compose import image
from testbed import commands
from testbed.commands import CommandError
from testbed.errors import SetupError
from testbed.host import TRY_NETEM
from testbed.places import CACHE

RUN, OWNER = "pubsub-testbed.run", "pubsub-testbed.owner"
"""Labels: the run that containers and networks belong to, and the process that will remove them (empty: `make down`)."""

_AT_ONCE = 8
"""Containers to remove in one command: asked for 56 at once, a loaded engine lost count of a network's endpoints."""

_REMOVE_LIMIT = 5.0
"""Seconds of wall time for a network to be free of its removed containers."""

RANGE = "198.18"
"""RFC 2544's benchmarking range: each cell takes a free /24 of it."""


def engine_problem() -> str | None:
    """Why there is no engine to use; None if there is one."""
    if not shutil.which("docker"):
        return "there is no docker command (Debian: sudo apt-get install docker.io docker-compose)"
    try:
        commands.run(["docker", "version", "--format", "{{.Server.Version}}"], timeout=20)
    except CommandError as error:
        lines = error.output.splitlines() or [str(error)]
        return f"no Docker engine answers ({lines[-1]}); start it: sudo systemctl start docker"
    try:
        compose()
    except SetupError as error:
        return str(error)
    return None


@functools.cache
def compose() -> tuple[str, ...]:
    """Compose as this machine has it: v2, a plug-in, or the stand-alone docker-compose. Raises SetupError."""
    for words in (("docker", "compose"), ("docker-compose",)):
        try:
            commands.run([*words, "version"], timeout=20)
        except CommandError:
            continue
        return words
    raise SetupError("there is no Docker Compose (Debian: sudo apt-get install docker-compose)")


def netem_problem(image_name: str) -> str | None:
    """Why the engine's kernel cannot emulate a link, tried in a container; None if it can."""
    words = ["docker", "run", "--rm", "--network=none", "--user=0:0", "--cap-drop=ALL", "--cap-add=NET_ADMIN"]
    try:
        commands.run([*words, image_name, "sh", "-ec", TRY_NETEM], timeout=60)
    except CommandError as error:
        return error.output.splitlines()[0] if error.output else str(error)
    return None


def shaping_problem(image_name: str) -> str | None:
    """Why a profile that shapes cannot run in containers, and what to do; None if it can."""
    problem = netem_problem(image_name)
    if problem is None:
        return None
    return (
        f"it needs netem and ifb in the engine's kernel for this profile, {platform.release()} has not "
        f"({problem}); install them (Debian: linux-image-amd64; Ubuntu: linux-modules-extra-$(uname -r); Fedora: "
        "kernel-modules-extra; WSL2: a kernel with CONFIG_NET_SCH_NETEM and CONFIG_IFB), or use RUNTIME=virtual, "
        "which needs neither; PROFILE=lan needs no netem"
    )


def tcp_problem(image_name: str, sysctls: dict[str, str]) -> str | None:
    """Why containers cannot have a study's TCP settings, tried in one; None if they can.

    A network namespace may use just those congestion controls that the kernel's owner allows (ip-sysctl, tcp_allowed_…).
    """
    words = ["docker", "run", "--rm", "--network=none", "--cap-drop=ALL"]
    words += [f"--sysctl={key}={value}" for key, value in sysctls.items()]
    try:
        commands.run([*words, image_name, "true"], timeout=60)
    except CommandError as error:
        lines = [line for line in error.output.splitlines() if "/proc/sys" in line] or [str(error)]
        settings = ", ".join(f"{key}={value}" for key, value in sysctls.items())
        return (
            f"the engine's kernel refuses containers {settings} ({lines[0]}); if it is the congestion "
            "control, allow it (sudo sysctl -w net.ipv4.tcp_allowed_congestion_control='reno cubic'), choose one that is "
            f"allowed ({allowed_congestion()}) with CONGESTION=…, or use RUNTIME=virtual"
        )
    return None


def allowed_congestion() -> str:
    """The congestion controls that containers may use, as far as this machine is the engine's."""
    path = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    return path.read_text().strip() if path.exists() else "see sysctl net.ipv4.tcp_allowed_congestion_control"


def firewalls_bridges() -> bool:
    """Whether the kernel shows packets between containers of one bridge to iptables (br_netfilter).

    Docker's rules for an internal network let pass what goes to its subnet, which a multicast group is not in.
    """
    switch = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    return switch.exists() and switch.read_text().strip() != "0"


def owner() -> str:
    """This process, so that another can tell whether it still lives: host, process id, start time (proc(5), field 22)."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"


def _start_time(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return "gone"
    return "gone" if fields[0] in "ZX" else fields[19]  # ended, though nobody has asked yet how


def _lives(name: str) -> bool:
    host, pid, start = name.rsplit(":", 2)
    return host != socket.gethostname() or _start_time(int(pid)) == start


def _labelled(kind: list[str], label: str) -> list[tuple[str, str]]:
    """Identity and owner of what carries the label."""
    template = f'{{{{.ID}}}} {{{{.Label "{OWNER}"}}}}'
    lines = commands.run(["docker", *kind, "--no-trunc", "--filter", f"label={label}", "--format", template])
    return [(words[0], "".join(words[1:])) for words in map(str.split, lines.splitlines())]


_CONTAINERS, _NETWORKS = ["ps", "--all"], ["network", "ls"]


def _remove(containers: list[str], networks: list[str]) -> list[str]:
    """Remove them; returns in sentences what the engine would not let go."""
    for start in range(0, len(containers), _AT_ONCE):
        commands.run(["docker", "rm", "--force", "--volumes", *containers[start : start + _AT_ONCE]])
    return [left for network in networks if (left := _remove_network(network))]


def _remove_network(identity: str) -> str | None:
    """Try again for a while: a busy engine lets go of a removed container's endpoint some time later, or never."""
    deadline = time.monotonic() + _REMOVE_LIMIT
    while True:
        try:
            commands.run(["docker", "network", "rm", identity])
            return None
        except CommandError as error:
            if time.monotonic() > deadline:
                return f"a network is left ({error.output.splitlines()[0]}); only a restart of the Docker engine removes it"
            time.sleep(0.5)


def remove_run(run: str) -> list[str]:
    """Remove all containers and networks of a run; returns in sentences what is left."""
    label = f"{RUN}={run}"
    return _remove(*([identity for identity, _ in _labelled(kind, label)] for kind in (_CONTAINERS, _NETWORKS)))


def remove_orphans(kept_too: bool) -> int:
    """Remove what runs left whose process is gone, with `kept_too` also what `make up` keeps; returns how much it was."""

    def orphans(kind: list[str]) -> list[str]:
        return [identity for identity, name in _labelled(kind, RUN) if (kept_too if not name else not _lives(name))]

    containers, networks = orphans(_CONTAINERS), orphans(_NETWORKS)
    left = _remove(containers, networks)
    for sentence in left:
        print(sentence, file=sys.stderr)
    return len(containers) + len(networks) - len(left)


def listing() -> str:
    """All containers of all runs, as a table."""
    columns = f'table {{{{.Names}}}}\\t{{{{.Status}}}}\\t{{{{.Label "{RUN}"}}}}'
    return commands.run(["docker", "ps", "--all", "--filter", f"label={RUN}", "--format", columns])


@contextmanager
def one_at_a_time(waiting: Callable[[], None]) -> Iterator[None]:
    """Of several runs at once one brings containers up: between free_subnet() and its network no other may look for one.

    `waiting` is called about once a second until it is this run's turn.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "containers.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(1)
        yield


def free_subnet() -> str:
    """The first /24 of RANGE that no Docker network has, like `198.18.0`."""
    networks = commands.run(["docker", "network", "ls", "--quiet"]).split()
    taken = commands.run(
        ["docker", "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}", *networks]
    ).split()
    for number in range(256):
        if f"{RANGE}.{number}.0/24" not in taken:
            return f"{RANGE}.{number}"
    raise SetupError(f"no /24 of {RANGE}.0.0/16 is free; make down removes what runs left behind")


def auto_problem(sysctls: dict[str, str]) -> str | None:
    """Why RUNTIME=auto does not take docker; None if it can shape links right now, with nothing to build."""
    problem = engine_problem()
    if problem is None and not image.exists(image.name()):
        problem = "the containers' image is not built yet (make image)"
    if problem is None and (lacks := netem_problem(image.name())):
        problem = f"its engine's kernel lacks netem or ifb ({lacks})"
    return problem or tcp_problem(image.name(), sysctls)
