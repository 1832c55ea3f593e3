"""What MQTT-SN publishers and subscribers share: the socket, CONNECT, keep-alive, DISCONNECT, the way back after a loss."""

import socket
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from clients import chunks
from clients.loop import Loop, Timer
from clients.mqttsn import codec
from clients.mqttsn.exchange import Exchange
from clients.mqttsn.fields import Flags, Packet, ReturnCode
from clients.protocol import Assignment, Client
from testbed.parameters import duration, number, size

PORT = 1883
"""UDP port of the gateway, and of the clients too: a client that never connects is known by its address alone."""

LARGEST_CHUNK = 1500 - 20 - 8 - 9
"""Bytes: an Ethernet frame's 1500 less the headers of IPv4, UDP and PUBLISH."""

_PROTOCOL_ID = 1  # section 5.3.8
_LARGEST_DATAGRAM = 65_535
_LAST_MESSAGE_ID = 65_535

Request = TypeVar("Request", bound=Packet)


@dataclass(frozen=True)
class Parameters:
    """What a study says of MQTT-SN clients. Times in ns, size in bytes; bounds and names in comments: section 7.2."""

    keepalive: int = duration()
    retry_interval: int = duration()  # Tretry, 10 to 15 s
    retries: int = number(0, 100)  # Nretry, 3 to 5
    congestion_wait: int = duration()  # Twait, more than 5 min
    reconnect_delay: int = duration()
    chunk: int = size(chunks.SMALLEST, LARGEST_CHUNK)


class Session(Client):
    """A client of one gateway. After a give-up or the gateway's DISCONNECT it connects anew (section 6.13)."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        self._loop, self._assignment = loop, assignment
        self._parameters = mine = Parameters(**assignment.parameters)
        self._exchange = Exchange(loop, self._send, mine.retry_interval, mine.retries, self._reconnect)
        self._ping = Exchange(loop, self._send, mine.retry_interval, mine.retries, self._reconnect)
        self._connect_timer: Timer | None = None
        self._keepalive_timer: Timer | None = None
        self._connected = False
        self._message_id = 0
        self._last_sent = 0
        self._counted = dict.fromkeys(("connects", "disconnects", "rejected", "pings"), 0)
        self._counted |= dict.fromkeys(("malformed", "unexpected", "send_errors"), 0)
        self._handlers: dict[type[Packet], Callable[[Any], None]] = {
            codec.ConnectAck: self._on_connect_ack,
            codec.Disconnect: self._on_disconnect,
            codec.PingRequest: lambda _: self._send(codec.PingResponse()),
            codec.PingResponse: lambda _: self._ping.end(),
        }
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    @abstractmethod
    def _on_connected(self) -> None:
        """What comes after CONNACK."""

    def _on_lost(self) -> None:
        """What a lost connection means beyond connecting anew; the request under way is still at hand."""

    def start(self) -> None:
        self._socket.bind((self._assignment.address, PORT))
        self._socket.connect((self._assignment.server, PORT))
        self._loop.on_readable(self._socket.fileno(), self._on_readable)
        self._connect()

    def close(self) -> None:
        if self._connected:
            self._send(codec.Disconnect(None))
        self._stop()
        self._loop.forget(self._socket.fileno())
        self._socket.close()

    def counters(self) -> dict[str, int]:
        supervised = (self._exchange, self._ping)
        repeated = sum(each.retransmissions for each in supervised)
        return {**self._counted, "retransmissions": repeated, "give_ups": sum(each.give_ups for each in supervised)}

    def _connect(self) -> None:
        keepalive = max(1, self._parameters.keepalive // 10**9)
        self._exchange.begin(codec.Connect(Flags(clean_session=True), _PROTOCOL_ID, keepalive, self._assignment.name))

    def _stop(self) -> None:
        self._connected = False
        self._exchange.end()
        self._ping.end()
        for timer in (self._connect_timer, self._keepalive_timer):
            if timer is not None:
                timer.cancel()

    def _reconnect(self, delay: int | None = None) -> None:
        self._stop()
        delay = self._parameters.reconnect_delay if delay is None else delay
        self._connect_timer = self._loop.call_later(delay, self._connect)

    def _on_connect_ack(self, answer: codec.ConnectAck) -> None:
        if self._answered(codec.Connect) and self._accepted(answer.code):
            self._connected = True
            self._counted["connects"] += 1
            self._watch_keepalive()
            self._on_connected()

    def _on_disconnect(self, _: codec.Disconnect) -> None:
        self._counted["disconnects"] += 1
        self._on_lost()
        self._reconnect()

    def _accepted(self, code: ReturnCode) -> bool:
        """Whether a request was accepted; if it was not, the client connects anew after Twait (section 7.2)."""
        if code != ReturnCode.ACCEPTED:
            self._counted["rejected"] += 1
            self._reconnect(self._parameters.congestion_wait)
        return code == ReturnCode.ACCEPTED

    def _watch_keepalive(self) -> None:
        """PINGREQ when nothing was sent for the keep-alive time (section 6.11)."""
        silent_since = self._last_sent
        if silent_since + self._parameters.keepalive <= time.time_ns():
            silent_since = time.time_ns()
            if self._ping.request is None:
                self._counted["pings"] += 1
                self._ping.begin(codec.PingRequest(""))
        self._keepalive_timer = self._loop.call_at(silent_since + self._parameters.keepalive, self._watch_keepalive)

    def _next_message_id(self) -> int:
        self._message_id = self._message_id % _LAST_MESSAGE_ID + 1
        return self._message_id

    def _answered(self, kind: type[Request], message_id: int | None = None) -> Request | None:
        """The request under way, if it is of this kind and id; it is then done. An answer to another one is counted."""
        request = self._exchange.request
        if not isinstance(request, kind) or getattr(request, "message_id", None) != message_id:
            self._counted["unexpected"] += 1
            return None
        self._exchange.end()
        return request

    def _send(self, packet: Packet) -> None:
        self._last_sent = time.time_ns()
        try:
            self._socket.send(packet.encode())
        except OSError:  # a full buffer, or ICMP said that nobody listens: lost, like any other datagram
            self._counted["send_errors"] += 1

    def _on_readable(self) -> None:
        try:
            packet = codec.decode(self._socket.recv(_LARGEST_DATAGRAM))
        except codec.Malformed:
            self._counted["malformed"] += 1
            return
        except OSError:  # what ICMP said of an earlier datagram
            self._counted["send_errors"] += 1
            return
        handler = self._handlers.get(type(packet))
        if handler is None:
            self._counted["unexpected"] += 1
        else:
            handler(packet)
