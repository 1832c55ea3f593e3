"""What a server process declares: broker, gateway or forwarder, on the server host."""

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
class Server:
    """A server's entry. `files` renders its configuration, `command` starts it.

    It is up when `tcp_port` answers, `udp_port` is bound and it has made `ready_file` in its folder; None: not to be
    waited for. `version` is a command that tells the version, and `problem` says what keeps it from running with the
    given settings. `variables` are those of the command line that stand above the study's settings. `in_container`: it
    also runs as a container of the Compose project.
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
    in_container: bool = False


def render(template: str, context: Context, **more: Any) -> str:
    """A configuration from broker/templates; a name that the template uses and nobody gave is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here, for it is slow to load

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(context=context, **context.settings, **more)
