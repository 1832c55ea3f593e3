"""MQTT 3.1.1 in a capture. Control packet types: MQTT 3.1.1 (OASIS, 2014), section 2.2.1."""

from clients.packets import Dissection, Fields, Kind, Pdu, number, octets

_PUBLISH = 3
_TYPES = {
    1: ("CONNECT", Kind.HANDSHAKE),
    2: ("CONNACK", Kind.HANDSHAKE),
    _PUBLISH: ("PUBLISH", Kind.DATA),
    4: ("PUBACK", Kind.ACKNOWLEDGEMENT),
    5: ("PUBREC", Kind.ACKNOWLEDGEMENT),
    6: ("PUBREL", Kind.ACKNOWLEDGEMENT),
    7: ("PUBCOMP", Kind.ACKNOWLEDGEMENT),
    8: ("SUBSCRIBE", Kind.HANDSHAKE),
    9: ("SUBACK", Kind.HANDSHAKE),
    10: ("UNSUBSCRIBE", Kind.HANDSHAKE),
    11: ("UNSUBACK", Kind.HANDSHAKE),
    12: ("PINGREQ", Kind.CONTROL),
    13: ("PINGRESP", Kind.CONTROL),
    14: ("DISCONNECT", Kind.HANDSHAKE),
}
_WITH_ID = range(4, 12)
_WITH_TOPIC = (8, 10)


def _pdus(fields: Fields) -> list[Pdu]:
    """A packet may hold several messages, and a field is there only for those that have it: they are dealt out in turn."""
    types = fields.get("mqtt.msgtype")
    if not types:
        return []
    topics, levels, ids, repeats, payloads = (
        iter(fields.get(f"mqtt.{name}", ())) for name in ("topic", "qos", "msgid", "dupflag", "msg")
    )
    found = []
    for text in types:
        code = int(text)
        name, kind = _TYPES.get(code, (f"type {code}", Kind.OTHER))
        if code == _PUBLISH:
            qos = int(next(levels, "0"))
            found.append(
                Pdu(
                    name,
                    kind,
                    topic=next(topics, ""),
                    qos=qos,
                    message_id=number(next(ids, "")) if qos else None,
                    duplicate=next(repeats, "0") == "1",
                    payload=octets(next(payloads, "")),
                )
            )
            continue
        topic = next(topics, "") if code in _WITH_TOPIC else ""
        message_id = number(next(ids, "")) if code in _WITH_ID else None
        found.append(Pdu(name, kind, topic=topic, message_id=message_id, releases=name == "PUBREL"))
    return found


DISSECTION = Dissection(
    "MQTT",
    ("mqtt.msgtype", "mqtt.topic", "mqtt.qos", "mqtt.msgid", "mqtt.dupflag", "mqtt.msg"),
    _pdus,
)
