"""MQTT-SN 1.2 in a capture: one message a datagram. Types: section 5.2.2, QoS: section 5.3.4."""

from clients.packets import Dissection, Fields, Kind, Pdu, first, number, octets

_TYPES = {
    0x00: ("ADVERTISE", Kind.CONTROL),
    0x01: ("SEARCHGW", Kind.HANDSHAKE),
    0x02: ("GWINFO", Kind.HANDSHAKE),
    0x04: ("CONNECT", Kind.HANDSHAKE),
    0x05: ("CONNACK", Kind.HANDSHAKE),
    0x0A: ("REGISTER", Kind.HANDSHAKE),
    0x0B: ("REGACK", Kind.HANDSHAKE),
    0x0C: ("PUBLISH", Kind.DATA),
    0x0D: ("PUBACK", Kind.ACKNOWLEDGEMENT),
    0x0E: ("PUBCOMP", Kind.ACKNOWLEDGEMENT),
    0x0F: ("PUBREC", Kind.ACKNOWLEDGEMENT),
    0x10: ("PUBREL", Kind.ACKNOWLEDGEMENT),
    0x12: ("SUBSCRIBE", Kind.HANDSHAKE),
    0x13: ("SUBACK", Kind.HANDSHAKE),
    0x14: ("UNSUBSCRIBE", Kind.HANDSHAKE),
    0x15: ("UNSUBACK", Kind.HANDSHAKE),
    0x16: ("PINGREQ", Kind.CONTROL),
    0x17: ("PINGRESP", Kind.CONTROL),
    0x18: ("DISCONNECT", Kind.HANDSHAKE),
}
_LONG = b"\x01"  # first octet of a message whose length takes two more (section 5.2.1)


def _publish_data(datagram: bytes) -> bytes:
    """tshark's own field is text, but data are bytes: what follows length, type, flags, topic id and message id."""
    return datagram[9 if datagram.startswith(_LONG) else 7 :]


def _pdus(fields: Fields) -> list[Pdu]:
    code = number(first(fields, "mqttsn.msg.type"))
    if code is None:
        return []
    name, kind = _TYPES.get(code, (f"type 0x{code:02x}", Kind.OTHER))
    qos, topic_id = number(first(fields, "mqttsn.qos")), first(fields, "mqttsn.topic.id")
    return [
        Pdu(
            name,
            kind,
            topic=first(fields, "mqttsn.topic") or first(fields, "mqttsn.topic.name.or.id") or topic_id,
            qos=-1 if qos == 0b11 else qos,
            message_id=number(first(fields, "mqttsn.msg.id")),
            duplicate=first(fields, "mqttsn.dup") in ("1", "True"),
            releases=name == "PUBREL",
            payload=_publish_data(octets(first(fields, "udp.payload"))) if kind == Kind.DATA else b"",
        )
    ]


DISSECTION = Dissection(
    "MQTT-SN",
    (
        "mqttsn.msg.type",
        "mqttsn.topic",
        "mqttsn.topic.name.or.id",
        "mqttsn.topic.id",
        "mqttsn.qos",
        "mqttsn.msg.id",
        "mqttsn.dup",
        "udp.payload",
    ),
    _pdus,
)
