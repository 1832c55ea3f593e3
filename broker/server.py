"""What a server process declares: broker, gateway or forwarder, on the server host."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Context:
    """What a server is told: its address, the clients of a role and their QoS, its (working) folder, its settings."""

    address: str
    clients: int
    folder: Path
    settings: dict[str, Any]
    qos: int | None


@dataclass(frozen=True)
class Image:
    """A container image of others that a server can run in, instead of the testbed's own.

    `variable` names one on the command line, `default` is taken without it (empty: the testbed's own image; None: that
    has not got the program); `command` starts the server in it.
    """

    variable: str
    default: str | None
    command: Callable[[Context], list[str]]


@dataclass(frozen=True)
class Server:
    """A server's entry. `files` renders its configuration, `command` starts it.

    It is up when `tcp_port` answers, `udp_port` is bound and it has made `ready_file` in its folder; None: not to be
    waited for. `version` is a command that tells the version, and `problem` says what keeps it from running with the
    given settings. `variables` are those of the command line that stand above the study's settings. `image` is the
    image of others that fits the settings, for containers.
    """

    name: str
    settings: type
    files: Callable[[Context], dict[str, str]]
    command: Callable[[Context], list[str]]
    tcp_port: int | None
    version: Callable[[dict[str, Any]], list[str]]
    udp_port: int | None = None
    problem: Callable[[dict[str, Any]], str | None] = lambda settings: None
    variables: dict[str, str] = field(default_factory=dict)
    ready_file: str | None = None
    image: Callable[[dict[str, Any]], Image] | None = None

    def is_up(self, address: str, folder: Path) -> bool:
        """Whether it serves: to be asked in its own network namespace, `folder` is the one that it works in."""
        if self.ready_file and not (folder / self.ready_file).exists():
            return False
        tcp = self.tcp_port is None or _answers(address, self.tcp_port)
        return tcp and (self.udp_port is None or _is_bound(self.udp_port))


def _answers(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def _is_bound(port: int) -> bool:
    """Whether a UDP socket of the namespace this thread is in has the port (proc_net_udp: local address in hex)."""
    lines = Path("/proc/thread-self/net/udp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)


def render(template: str, context: Context, **more: Any) -> str:
    """A configuration from broker/templates; a name that the template uses and nobody gave is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here, for it is slow to load

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(context=context, **context.settings, **more)
