"""An MQTT-SN subscriber.

With QoS 1 a message that comes twice is handed on twice. With QoS 2 it is handed on when it comes first, and its message
id kept until PUBREL, by which repeats are known (MQTT 3.1.1, section 4.3.3, method B).
"""

from clients import chunks
from clients.loop import Loop
from clients.mqttsn import codec
from clients.mqttsn.fields import Flags, ReturnCode, TopicKind
from clients.mqttsn.session import Session
from clients.payloads import Message
from clients.protocol import Assignment


class Subscriber(Session):
    """Subscribes to one topic, or to several by a name with wildcards."""

    def __init__(self, loop: Loop, assignment: Assignment) -> None:
        super().__init__(loop, assignment)
        self._qos = max(0, assignment.qos or 0)
        self._topics: dict[int, str] = {}
        self._unreleased: set[int] = set()
        self._acknowledged: set[int] = set()
        self._reassembler = chunks.Reassembler(assignment.deliver)
        self._counted |= {"duplicates": 0, "unknown_topics": 0}
        self._handlers |= {
            codec.SubscribeAck: self._on_subscribe_ack,
            codec.Register: self._on_register,
            codec.Publish: self._on_publish,
            codec.PublishRelease: self._on_publish_release,
        }

    def publish(self, message: Message) -> None:
        raise NotImplementedError("a subscriber does not publish")

    def counters(self) -> dict[str, int]:
        return super().counters() | self._reassembler.counters()

    def _on_connected(self) -> None:
        self._topics.clear()
        self._unreleased.clear()
        self._acknowledged.clear()
        flags = Flags(qos=self._qos)
        self._exchange.begin(codec.Subscribe(flags, self._next_message_id(), self._assignment.topic.encode()))

    def _on_subscribe_ack(self, answer: codec.SubscribeAck) -> None:
        # A repeated SUBSCRIBE may have two answers with two topic ids; the gateway may use either.
        if answer.code == ReturnCode.ACCEPTED and answer.topic_id:
            self._topics[answer.topic_id] = self._assignment.topic
        if self._answered(codec.Subscribe, answer.message_id) and self._accepted(answer.code):
            self.ready = True

    def _on_register(self, request: codec.Register) -> None:
        self._topics[request.topic_id] = request.topic
        self._send(codec.RegisterAck(request.topic_id, request.message_id, ReturnCode.ACCEPTED))

    def _on_publish(self, packet: codec.Publish) -> None:
        if packet.flags.topic_kind == TopicKind.NORMAL and packet.topic_id not in self._topics:
            self._counted["unknown_topics"] += 1
            self._send(codec.PublishAck(packet.topic_id, packet.message_id, ReturnCode.INVALID_TOPIC_ID))
            return
        if packet.flags.qos == 2:
            self._receive_once(packet)
            return
        if packet.flags.qos == 1:
            self._counted["duplicates"] += packet.flags.dup and packet.message_id in self._acknowledged
            self._acknowledged.add(packet.message_id)
            self._send(codec.PublishAck(packet.topic_id, packet.message_id, ReturnCode.ACCEPTED))
        self._reassembler.accept(packet.data)

    def _receive_once(self, packet: codec.Publish) -> None:
        self._send(codec.PublishReceived(packet.message_id))
        if packet.message_id in self._unreleased:
            self._counted["duplicates"] += 1
        else:
            self._unreleased.add(packet.message_id)
            self._reassembler.accept(packet.data)

    def _on_publish_release(self, packet: codec.PublishRelease) -> None:
        self._unreleased.discard(packet.message_id)
        self._send(codec.PublishComplete(packet.message_id))
