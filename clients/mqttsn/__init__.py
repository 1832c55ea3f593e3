"""MQTT-SN 1.2 over UDP, through a gateway, on both sides."""

import dataclasses
from typing import Any

from clients import chunks
from clients.loop import Loop
from clients.mqttsn.packets import DISSECTION
from clients.mqttsn.publisher import ConnectionlessPublisher, Publisher
from clients.mqttsn.session import PORT, Parameters, Session
from clients.mqttsn.subscriber import Subscriber
from clients.packets import Kind
from clients.protocol import Assignment, Protocol
from clients.view import View

QOS = (-1, 0, 1, 2)
SERVERS = ("mosquitto", "mqttsn-gateway")
DECODE_AS = f"udp.port=={PORT},mqttsn"

VIEW = View(
    dissector="mqttsn",
    title="MQTT-SN",
    topic=("mqttsn.topic", "mqttsn.topic.name.or.id", "mqttsn.topic.id"),
    qos=("mqttsn.qos",),
    message_id=("mqttsn.msg.id",),
    filters={  # message types: MQTT-SN 1.2 (IBM 2013), table 3
        Kind.RETRANSMISSION: "mqttsn.dup == 1",
        Kind.DATA: "mqttsn.msg.type == 0x0c",
        Kind.ACKNOWLEDGEMENT: "mqttsn.msg.type in {0x0d .. 0x10}",
        Kind.HANDSHAKE: "mqttsn.msg.type in {0x00 .. 0x0b, 0x12 .. 0x15, 0x18}",
    },
)


def part(parameters: dict[str, Any], kind: type) -> dict[str, Any]:
    """Those of the parameters that `kind` declares."""
    return {item.name: parameters[item.name] for item in dataclasses.fields(kind)}


def make_publisher(loop: Loop, assignment: Assignment) -> Session:
    """The publisher that the QoS asks for."""
    kind = ConnectionlessPublisher if assignment.qos == -1 else Publisher
    return kind(loop, dataclasses.replace(assignment, parameters=part(assignment.parameters, Parameters)))


def transport(size: int, parameters: dict[str, Any]) -> str:
    """How a payload of `size` bytes travels."""
    return chunks.describe(size, parameters["chunk"])


PROTOCOLS = {
    "mqttsn": Protocol(
        name="mqttsn",
        qos=QOS,
        servers=SERVERS,
        parameters=Parameters,
        publisher=make_publisher,
        subscriber=Subscriber,
        display_filter="mqttsn",
        dissections=(DISSECTION,),
        views=(VIEW,),
        decode_as=(DECODE_AS,),
        transport=transport,
    )
}
