import os
import socket
import time

import pytest

from clients.loop import Loop

SECOND = 10**9


@pytest.fixture
def loop():
    one = Loop()
    yield one
    one.close()


def test_timers_run_in_order_and_never_early(loop):
    seen = []
    begin = time.time_ns()
    for delay in (3, 1, 2):
        loop.call_at(begin + delay * 10**7, lambda delay=delay: seen.append((delay, time.time_ns() - begin)))
    assert loop.run_until(lambda: len(seen) == 3, begin + 5 * SECOND)
    assert [delay for delay, _ in seen] == [1, 2, 3]
    assert all(at >= delay * 10**7 for delay, at in seen)


def test_a_deadline_is_not_rounded_to_a_millisecond(loop):
    """poll(2) would wake at 1.000 ms or 2.000 ms: over many tries some wake-up must lie between."""
    late = []
    for _ in range(50):
        due = time.time_ns() + 1_300_000
        loop.call_at(due, lambda due=due: late.append(time.time_ns() - due))
        count = len(late)
        loop.run_until(lambda count=count: len(late) > count, due + SECOND)
    assert min(late) < 500_000


def test_a_cancelled_timer_does_not_run(loop):
    seen = []
    loop.call_later(0, lambda: seen.append("cancelled")).cancel()
    loop.call_later(1000, lambda: seen.append("kept"))
    loop.run_until(lambda: bool(seen), time.time_ns() + SECOND)
    assert seen == ["kept"]


def test_it_sleeps_until_there_is_something(loop):
    """A loop that spins would stop virtual time for ever."""
    before = time.process_time()
    assert not loop.run_until(lambda: False, time.time_ns() + 3 * 10**8)
    assert time.process_time() - before < 0.1


def test_sockets_are_served_until_forgotten(loop):
    left, right = socket.socketpair()
    seen = []
    with left, right:
        loop.on_readable(right.fileno(), lambda: seen.append(right.recv(10)))
        loop.on_writable(left.fileno(), lambda: (left.send(b"x"), loop.on_writable(left.fileno(), None)))
        assert loop.run_until(lambda: bool(seen), time.time_ns() + SECOND)
        loop.forget(right.fileno())
        left.send(b"y")
        assert not loop.run_until(lambda: len(seen) > 1, time.time_ns() + 10**7)


def test_a_hang_up_reaches_whoever_listens(loop):
    reading, writing = os.pipe()
    seen = []
    loop.on_readable(reading, lambda: (seen.append(os.read(reading, 1)), loop.forget(reading)))
    os.close(writing)
    assert loop.run_until(lambda: seen == [b""], time.time_ns() + SECOND)
    os.close(reading)
