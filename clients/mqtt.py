"""MQTT 3.1.1 with paho-mqtt 2, driven by our event loop instead of paho's own."""

import socket
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from clients.loop import Loop
from clients.mqtt_packets import DISSECTION
from clients.packets import Kind
from clients.payloads import Message
from clients.protocol import PUBLISHER, Assignment, Client, Protocol
from clients.view import View
from testbed.parameters import duration, number

PORT = 1883


@dataclass(frozen=True)
class Parameters:
    """What a study says of MQTT clients. Times in ns."""

    keepalive: int = duration()
    reconnect_delay: int = duration()
    max_inflight: int = number(1, 65535)


class _Paho(paho.Client):
    """paho's client with a connect() that does not block: one loop may hold 54 clients on a link of seconds of delay."""

    def _create_socket_connection(self) -> socket.socket:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.connect_ex((self.host, self.port))  # goes on by itself; the loop learns of it when it is writable
        return connection


class MqttClient(Client):
    """A publisher or a subscriber; which, the assignment says."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        self._loop, self._assignment = loop, assignment
        self._parameters = Parameters(**assignment.parameters)
        self._closing = False
        self._counters = {"connects": 0, "disconnects": 0}
        self._client = _Paho(CallbackAPIVersion.VERSION2, assignment.name, clean_session=True)
        self._client.max_inflight_messages_set(self._parameters.max_inflight)
        self._client.on_socket_open = self._on_socket_open
        self._client.on_socket_close = self._on_socket_close
        self._client.on_socket_register_write = self._on_register_write
        self._client.on_socket_unregister_write = self._on_unregister_write
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._client.on_disconnect = self._on_disconnect

    def start(self) -> None:
        keepalive = max(1, self._parameters.keepalive // 10**9)
        self._client.connect_async(self._assignment.server, PORT, keepalive=keepalive)
        self._connect()
        self._misc()

    def publish(self, message: Message) -> None:
        self._client.publish(self._assignment.topic, message.encode(), qos=self._assignment.qos or 0)

    def close(self) -> None:
        self._closing = True
        if self._client.is_connected():
            self._client.disconnect()
            self._client.loop_write()
        self._client._sock_close()  # what is still queued then would not be sent before the cell's end

    def counters(self) -> dict[str, int]:
        return self._counters

    def _connect(self) -> None:
        if not self._closing:
            self._client.reconnect()

    def _misc(self) -> None:
        """Keep-alive: paho looks at it when asked; asking four times a period is enough for its precision of a second."""
        if not self._closing:
            self._client.loop_misc()
            self._loop.call_later(max(10**9, self._parameters.keepalive // 4), self._misc)

    def _on_socket_open(self, _client: Any, _data: Any, connection: Any) -> None:
        self._loop.on_readable(connection.fileno(), self._client.loop_read)

    def _on_socket_close(self, _client: Any, _data: Any, connection: Any) -> None:
        self._loop.forget(connection.fileno())

    def _on_register_write(self, _client: Any, _data: Any, connection: Any) -> None:
        self._loop.on_writable(connection.fileno(), self._client.loop_write)

    def _on_unregister_write(self, _client: Any, _data: Any, connection: Any) -> None:
        self._loop.on_writable(connection.fileno(), None)

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            return  # the broker closes the connection; _on_disconnect tries again
        self._counters["connects"] += 1
        if self._assignment.role == PUBLISHER:
            self.ready = True
        else:
            self._client.subscribe(self._assignment.topic, qos=self._assignment.qos or 0)

    def _on_subscribe(self, _client: Any, _data: Any, _mid: int, reasons: Any, _properties: Any) -> None:
        self.ready = not any(reason.is_failure for reason in reasons)

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        self._assignment.deliver(bytes(message.payload))

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, _reason: Any, _properties: Any) -> None:
        if not self._closing:
            self._counters["disconnects"] += 1
            self._loop.call_later(self._parameters.reconnect_delay, self._connect)


VIEW = View(
    dissector="mqtt",
    title="MQTT",
    topic=("mqtt.topic",),
    qos=("mqtt.qos",),
    message_id=("mqtt.msgid",),
    filters={  # control packet types: MQTT 3.1.1 (OASIS 2014), table 2.1
        Kind.RETRANSMISSION: "mqtt.dupflag == 1",
        Kind.DATA: "mqtt.msgtype == 3",
        Kind.ACKNOWLEDGEMENT: "mqtt.msgtype in {4 .. 7}",
        Kind.HANDSHAKE: "mqtt.msgtype in {1, 2, 8 .. 11, 14}",
    },
)

PROTOCOLS = {
    "mqtt": Protocol(
        name="mqtt",
        qos=(0, 1, 2),
        servers=("mosquitto",),
        parameters=Parameters,
        publisher=MqttClient,
        subscriber=MqttClient,
        display_filter="mqtt",
        dissections=(DISSECTION,),
        views=(VIEW,),
        decode_as=(f"tcp.port=={PORT},mqtt",),
    )
}
