"""A request that expects an answer, under the supervision of Tretry and Nretry (MQTT-SN 1.2, section 6.13)."""

from collections.abc import Callable
from dataclasses import replace

from clients.loop import Loop, Timer
from clients.mqttsn.codec import Publish, Subscribe, Unsubscribe
from clients.mqttsn.fields import Packet


def again(request: Packet) -> Packet:
    """The request as it is repeated: with DUP, if it is one that has it (section 5.3.4)."""
    if isinstance(request, Publish | Subscribe | Unsubscribe):
        return replace(request, flags=replace(request.flags, dup=True))
    return request


class Exchange:
    """At most one request at a time: sent again every `interval` ns, given up when `retries` repeats got no answer."""

    def __init__(
        self, loop: Loop, send: Callable[[Packet], None], interval: int, retries: int, give_up: Callable[[], None]
    ) -> None:
        self._loop, self._send, self._interval, self._retries, self._give_up = loop, send, interval, retries, give_up
        self._timer: Timer | None = None
        self._left = 0
        self.request: Packet | None = None
        self.retransmissions = self.give_ups = 0

    def begin(self, request: Packet) -> None:
        """Send a request, in place of the one that was under way, if any."""
        self.end()
        self.request, self._left = request, self._retries
        self._transmit(request)

    def end(self) -> None:
        """The answer is there, or does not matter any more."""
        self.request = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _transmit(self, request: Packet) -> None:
        self._send(request)
        self._timer = self._loop.call_later(self._interval, self._on_silence)

    def _on_silence(self) -> None:
        assert self.request is not None
        if not self._left:
            self.give_ups += 1
            self.end()
            self._give_up()
            return
        self._left -= 1
        self.retransmissions += 1
        self.request = again(self.request)
        self._transmit(self.request)
