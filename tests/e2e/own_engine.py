"""A Docker engine for the tests where none answers: started by hand; only a cache is left of it."""

import fcntl
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compose import engine, image
from guest import debian
from testbed import commands
from testbed.commands import CommandError
from testbed.errors import SetupError
from testbed.places import CACHE
from testbed.waiting import wait_for

_DATA = CACHE / "engine"
"""Its images, so that they are built once. One engine at a time uses them."""

_ADDRESS = "198.19.255.1/24"  # RFC 2544's range, as the testbed's own networks


@contextmanager
def _bridge() -> Iterator[str]:
    """A bridge of its own: docker0 may be another engine's, which even `--bridge=none` would delete."""
    name = f"testbed{os.getpid()}"
    commands.run(["ip", "link", "add", name, "type", "bridge"])
    try:
        commands.run(["ip", "address", "add", _ADDRESS, "dev", name])
        yield name
    finally:
        commands.run(["ip", "link", "delete", name])
        for table in ("filter", "nat"):  # the rules that dockerd had for it, if it had any (see _firewall)
            for rule in commands.run(["iptables", "-t", table, "-S"]).splitlines():
                if name in rule.split():
                    commands.run(["iptables", "-t", table, "-D", *shlex.split(rule)[1:]])


def _unmount(folder: Path) -> None:
    """What dockerd leaves mounted there when it ends: the first network namespace."""
    for mount in Path("/proc/self/mounts").read_text().splitlines():
        if (where := mount.split()[1]).startswith(f"{folder}/"):
            commands.run(["umount", where])


def _firewall() -> str:
    """No rules of its own (nothing is published, images are built on the host's network), unless others drop all else."""
    rules = commands.run(["iptables", "-S", "FORWARD"])
    return "--iptables=true" if rules.startswith("-P FORWARD DROP") else "--iptables=false"


@contextmanager
def _host_variable(value: str) -> Iterator[None]:
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = value
    try:
        yield
    finally:
        del os.environ["DOCKER_HOST"]
        if before is not None:
            os.environ["DOCKER_HOST"] = before


@contextmanager
def _started() -> Iterator[None]:
    """An engine that DOCKER_HOST names in the `with`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        lock = stack.enter_context((CACHE / "engine.lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="testbed-engine-")))
        stack.callback(_unmount, folder)
        bridge = stack.enter_context(_bridge())
        where = f"unix://{folder}/docker.sock"
        log = folder / "dockerd.log"
        words = ["dockerd", "--host", where, "--data-root", str(_DATA), "--exec-root", str(folder / "exec")]
        words += ["--pidfile", str(folder / "pid"), "--bridge", bridge, _firewall()]
        process = stack.enter_context(commands.background(words, log, folder / "errors", grace=60))
        stack.enter_context(_host_variable(where))

        def answers() -> bool:
            if process.poll() is not None:
                raise SetupError(f"dockerd ended: {(folder / 'errors').read_text()[-500:]}")
            return engine.engine_problem() is None

        wait_for(answers, "dockerd to answer", 60, 0.2)
        yield


def compose_2() -> list[str]:
    """The command of Compose 2: this machine's, or that of Debian trixie, fetched into the cache. Raises SetupError."""
    if engine.compose() == ("docker", "compose"):
        return ["docker", "compose"]
    folder = CACHE / "compose-2"
    program = folder / "usr/libexec/docker/cli-plugins/docker-compose"
    if not program.exists():
        with debian.suites(["trixie"]) as suites, tempfile.TemporaryDirectory() as scratch:
            deb = suites.download("docker-compose", suites.versions("docker-compose")["docker-compose"], Path(scratch))
            commands.run(["dpkg-deb", "-x", str(deb), str(folder)])
    return [str(program)]


def _make_image() -> None:
    """The testbed's image, on a base that is pulled or made; those of older code are removed."""
    if not image.exists(image.name()) and not image.exists(image.BASE_IMAGE):
        try:
            commands.run(["docker", "pull", "--quiet", image.BASE_IMAGE], timeout=300)
        except CommandError:
            image.make_base()
    image.build()
    tags = commands.run(["docker", "images", "--format", "{{.Repository}}:{{.Tag}}", "pubsub-testbed"]).split()
    if old := [tag for tag in tags if tag != image.name()]:
        commands.run(["docker", "rmi", *old])


def _cannot_start() -> str | None:
    missing = [name for name in ("dockerd", "docker", "docker-compose", "iptables") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} not installed (make test-docker installs docker.io and docker-compose)"
    return "starting an engine needs root" if os.geteuid() else None


@contextmanager
def some_engine() -> Iterator[str | None]:
    """An engine with the testbed's image: the one that answers, or one of our own; yields why there is none, or None."""
    with ExitStack() as stack:
        problem = engine.engine_problem()
        if problem is not None:
            if reason := _cannot_start():
                yield f"{problem}; {reason}"
                return
            stack.enter_context(_started())
            engine.remove_orphans(kept_too=True)  # of a test that was killed
            _make_image()
        else:
            image.build()
        yield None
