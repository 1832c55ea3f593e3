"""An event loop that holds one client (in a container) or all of them (in a guest).

It sleeps until a socket or a deadline, never for a fixed step: in virtual time every needless wake-up costs wall time,
and a poll that rounds its time-out down spins, which stops the virtual clock. Deadlines are kept to the nanosecond by a
timerfd, where poll(2) and epoll_wait(2) would round to a millisecond.
"""

import ctypes
import heapq
import itertools
import os
import select
import time
from collections.abc import Callable

_CLOCK_REALTIME = 0
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # TFD_NONBLOCK and TFD_CLOEXEC have these values (timerfd_create(2))
_TFD_TIMER_ABSTIME = 1


class _Itimerspec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns")]


class Timer:
    """A callback that is due at one instant; cancel() makes it never run."""

    def __init__(self, when: int, callback: Callable[[], None]) -> None:
        self.when, self.callback, self.cancelled = when, callback, False

    def cancel(self) -> None:
        """Do not run it any more."""
        self.cancelled = True


class Loop:
    """File descriptors and timers, in one thread. Times are time.time_ns()."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._epoll = select.epoll()
        self._timerfd: int = self._libc.timerfd_create(_CLOCK_REALTIME, _TFD_FLAGS)
        if self._timerfd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._epoll.register(self._timerfd, select.EPOLLIN)
        self._handlers: dict[int, dict[int, Callable[[], object]]] = {}
        self._timers: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._armed = 0

    def close(self) -> None:
        """Free the loop's own descriptors."""
        self._epoll.close()
        os.close(self._timerfd)

    def on_readable(self, fd: int, callback: Callable[[], object] | None) -> None:
        """Call `callback` whenever `fd` is readable, None: no more."""
        self._watch(fd, select.EPOLLIN, callback)

    def on_writable(self, fd: int, callback: Callable[[], object] | None) -> None:
        """Call `callback` whenever `fd` is writable, None: no more."""
        self._watch(fd, select.EPOLLOUT, callback)

    def forget(self, fd: int) -> None:
        """Watch `fd` no more; to be called before it is closed."""
        if self._handlers.pop(fd, None):
            self._epoll.unregister(fd)

    def _watch(self, fd: int, event: int, callback: Callable[[], object] | None) -> None:
        known = fd in self._handlers
        handlers = self._handlers.setdefault(fd, {})
        handlers.pop(event, None)
        if callback is not None:
            handlers[event] = callback
        if not handlers:
            self._handlers.pop(fd)
            if known:
                self._epoll.unregister(fd)
        elif known:
            self._epoll.modify(fd, sum(handlers))
        else:
            self._epoll.register(fd, sum(handlers))

    def call_at(self, when: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` once at `when` (ns since the epoch)."""
        timer = Timer(when, callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def call_later(self, delay: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` once, `delay` ns from now."""
        return self.call_at(time.time_ns() + delay, callback)

    def run_until(self, done: Callable[[], bool], deadline: int) -> bool:
        """Serve sockets and timers until done() or `deadline` (ns since the epoch); True if done() was reached."""
        end = self.call_at(deadline, lambda: None)
        while not done() and time.time_ns() < deadline:
            self._step()
        end.cancel()
        return done()

    def _step(self) -> None:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        self._arm(self._timers[0][0] if self._timers else 0)
        for fd, events in self._epoll.poll():
            if fd == self._timerfd:
                os.read(fd, 8)
                self._armed = 0
                continue
            # An error or hang-up goes to whoever listens; reading or writing then meets it.
            for event in (select.EPOLLIN, select.EPOLLOUT):
                callback = self._handlers.get(fd, {}).get(event)
                if callback and events & (event | select.EPOLLERR | select.EPOLLHUP):
                    callback()
        self._run_due()

    def _run_due(self) -> None:
        now = time.time_ns()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled:
                timer.callback()

    def _arm(self, when: int) -> None:
        if when == self._armed:
            return
        spec = _Itimerspec(0, 0, *divmod(when, 10**9))
        if self._libc.timerfd_settime(self._timerfd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        self._armed = when
