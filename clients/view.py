"""How Wireshark shows a protocol, for the profile that comes with the results (analysis/wireshark)."""

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of packets that have a colour and a button of their own; a packet of several kinds has the first's colour."""

    RETRANSMISSION = "retransmission"
    REPAIR = "repair"
    REPAIR_REQUEST = "repair request"
    DATA = "data"
    ACKNOWLEDGEMENT = "acknowledgement"
    HANDSHAKE = "handshake"


@dataclass(frozen=True)
class View:
    """A dissector as `decode_as` names it and as Wireshark's own files do; the fields of its columns; a filter a kind."""

    dissector: str
    title: str
    topic: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    message_id: tuple[str, ...] = ()
    filters: dict[Kind, str] = field(default_factory=dict)
