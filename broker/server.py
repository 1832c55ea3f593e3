"""What a server process declares: broker, gateway or forwarder, on the server host."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Context:
    """What a server is told: its address, the number of clients of a role, its folder, and its settings of the study."""

    address: str
    clients: int
    folder: Path
    settings: dict[str, Any]


@dataclass(frozen=True)
class Server:
    """A server's entry. `files` renders its configuration, `command` starts it.

    It is up when `tcp_port` answers and when it has made `ready_file` in its folder; None: not to be waited for.
    """

    name: str
    settings: type
    files: Callable[[Context], dict[str, str]]
    command: Callable[[Context], list[str]]
    tcp_port: int | None
    version: Callable[[], list[str]]
    ready_file: str | None = None


def render(template: str, context: Context) -> str:
    """A configuration from broker/templates; a name that the template uses and nobody gave is an error."""
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.get_template(template).render(context=context, **context.settings)
