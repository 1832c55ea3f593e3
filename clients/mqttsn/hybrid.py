"""MQTT-SN publishers, through a gateway, and MQTT subscribers."""

from dataclasses import dataclass, replace

from clients import chunks, mqtt, mqtt_packets, mqttsn
from clients.loop import Loop
from clients.mqttsn import packets
from clients.mqttsn.session import Parameters
from clients.protocol import Assignment, Protocol
from testbed.parameters import number


@dataclass(frozen=True)
class HybridParameters(Parameters):
    """With what the MQTT subscribers need besides; keepalive and reconnect_delay hold for both sides."""

    max_inflight: int = number(1, 65535)


class HybridSubscriber(mqtt.MqttClient):
    """An MQTT subscriber that puts chunks together; what is published with QoS -1 it gets with QoS 0."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        self._reassembler = chunks.Reassembler(assignment.deliver)
        given = mqttsn.part(assignment.parameters, mqtt.Parameters)
        qos = max(0, assignment.qos or 0)
        super().__init__(loop, replace(assignment, qos=qos, parameters=given, deliver=self._reassembler.accept))

    def counters(self) -> dict[str, int]:
        return super().counters() | self._reassembler.counters()


PROTOCOLS = {
    "mqttsn-hybrid": Protocol(
        name="mqttsn-hybrid",
        qos=mqttsn.QOS,
        servers=mqttsn.SERVERS,
        parameters=HybridParameters,
        publisher=mqttsn.make_publisher,
        subscriber=HybridSubscriber,
        display_filter="mqttsn or mqtt",
        dissections=(packets.DISSECTION, mqtt_packets.DISSECTION),
        views=(mqttsn.VIEW, mqtt.VIEW),
        decode_as=(mqttsn.DECODE_AS, f"tcp.port=={mqtt.PORT},mqtt"),
        transport=mqttsn.transport,
    )
}
