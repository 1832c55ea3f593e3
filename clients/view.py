"""How Wireshark shows a protocol, for the profile that comes with the results (analysis/wireshark)."""

from dataclasses import dataclass, field

from clients.packets import Kind


@dataclass(frozen=True)
class View:
    """A dissector as `decode_as` names it and as Wireshark's own files do; the fields of its columns; a filter a kind."""

    dissector: str
    title: str
    topic: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    message_id: tuple[str, ...] = ()
    filters: dict[Kind, str] = field(default_factory=dict)
