"""Whose containers are left over."""

import os
import subprocess

import pytest

from compose import engine


def test_this_process_lives():
    assert engine._lives(engine.owner())


def test_a_process_that_has_ended_owns_nothing_though_nobody_has_waited_for_it():
    host = engine.owner().split(":")[0]
    with subprocess.Popen(["sleep", "60"]) as process:
        owner = f"{host}:{process.pid}:{engine._start_time(process.pid)}"
        assert engine._lives(owner)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert not engine._lives(owner)


@pytest.mark.parametrize("start", ["1", "gone"])
def test_a_process_id_that_another_has_now_is_not_the_owner(start):
    host = engine.owner().split(":")[0]
    assert not engine._lives(f"{host}:{os.getpid()}:{start}")
    assert engine._lives(f"elsewhere:{os.getpid()}:{start}")  # another machine's is not ours to judge
