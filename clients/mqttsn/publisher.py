"""An MQTT-SN publisher.

Of messages with QoS 1 or 2 one is under way at a time, as section 6.6 demands; the others wait in a queue without a
limit, first come, first served. So does everything while the client is not connected. A message that has no answer after
Nretry repeats is given up. With QoS -1 there is neither connection nor answer (section 6.8); its topic id is predefined.
"""

from collections import deque

from clients import chunks
from clients.loop import Loop
from clients.mqttsn import codec
from clients.mqttsn.fields import Flags, ReturnCode, TopicKind
from clients.mqttsn.session import Session
from clients.payloads import Message
from clients.protocol import Assignment

SHORT = 2
"""Length in bytes of a topic name that is its own id, without REGISTER (section 3)."""


class Publisher(Session):
    """Publishes on one topic."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        super().__init__(loop, assignment)
        self._queue: deque[bytes] = deque()
        self._open = False
        self._qos = assignment.qos or 0
        self._topic_id, self._kind = 0, TopicKind.NORMAL
        self._counted["queue_max"] = 0
        self._handlers |= {
            codec.RegisterAck: self._on_register_ack,
            codec.PublishAck: self._on_publish_ack,
            codec.PublishReceived: self._on_publish_received,
            codec.PublishComplete: self._on_publish_complete,
        }

    def publish(self, message: Message) -> None:
        self._queue += chunks.split(message.encode(), self._parameters.chunk, message.publisher, message.seq)
        self._counted["queue_max"] = max(self._counted["queue_max"], len(self._queue))
        self._work_off()

    def _on_connected(self) -> None:
        name = self._assignment.topic.encode()
        if len(name) == SHORT:
            self._topic_id, self._kind = int.from_bytes(name, "big"), TopicKind.SHORT
            self._begin_publishing()
        else:
            self._register()

    def _register(self) -> None:
        self._open = False
        self._exchange.begin(codec.Register(0, self._next_message_id(), self._assignment.topic))

    def _on_register_ack(self, answer: codec.RegisterAck) -> None:
        if self._answered(codec.Register, answer.message_id) and self._accepted(answer.code):
            self._topic_id = answer.topic_id
            self._begin_publishing()

    def _begin_publishing(self) -> None:
        self._open = self.ready = True
        self._work_off()

    def _stop(self) -> None:
        self._open = False
        super()._stop()

    def _on_lost(self) -> None:
        # Once PUBREL is out the gateway has the message; sent anew, it would come twice.
        if isinstance(self._exchange.request, codec.Publish):
            self._queue.appendleft(self._exchange.request.data)

    def _work_off(self) -> None:
        while self._open and self._queue and self._exchange.request is None:
            flags, data = Flags(qos=self._qos, topic_kind=self._kind), self._queue.popleft()
            if self._qos > 0:
                self._exchange.begin(codec.Publish(flags, self._topic_id, self._next_message_id(), data))
            else:
                self._send(codec.Publish(flags, self._topic_id, 0, data))

    def _on_publish_ack(self, answer: codec.PublishAck) -> None:
        if self._qos == 2 and answer.code == ReturnCode.ACCEPTED:
            self._counted["unexpected"] += 1
            return
        refused = self._answered(codec.Publish, answer.message_id)
        if refused is None:
            return
        if answer.code == ReturnCode.ACCEPTED:
            self._work_off()
            return
        self._queue.appendleft(refused.data)
        if answer.code == ReturnCode.INVALID_TOPIC_ID:
            self._counted["rejected"] += 1
            self._register()
        else:
            self._accepted(answer.code)

    def _on_publish_received(self, answer: codec.PublishReceived) -> None:
        if self._answered(codec.Publish, answer.message_id):
            self._exchange.begin(codec.PublishRelease(answer.message_id))

    def _on_publish_complete(self, answer: codec.PublishComplete) -> None:
        if self._answered(codec.PublishRelease, answer.message_id):
            self._work_off()


class ConnectionlessPublisher(Publisher):
    """QoS -1: the pair's number is the predefined topic id."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        super().__init__(loop, assignment)
        self._topic_id, self._kind = assignment.number, TopicKind.PREDEFINED

    def _connect(self) -> None:
        self._begin_publishing()
