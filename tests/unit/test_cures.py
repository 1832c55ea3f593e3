"""What libraries need in virtual time."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

from guest import cures

SOURCE = """
unsigned long stamp(void)
{
	unsigned int low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long)high << 32 | low;
}
"""


def test_a_library_whose_code_is_changed_reads_a_time_stamp_of_0(tmp_path):
    (tmp_path / "stamp.c").write_text(SOURCE)
    library = tmp_path / "stamp.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, tmp_path / "stamp.c"], check=True)
    changed = tmp_path / "changed.so"
    changed.write_bytes(cures.without_tsc(library.read_bytes()))

    def stamp(path):
        call = ctypes.CDLL(str(path)).stamp
        call.restype = ctypes.c_ulong
        return call()

    assert stamp(library) > 0
    assert stamp(changed) == 0


def test_code_without_rdtsc_is_an_error():
    with pytest.raises(ValueError, match="RDTSC"):
        cures.without_tsc(b"\x90" * 64)


def test_libzmq_is_found_where_it_is_loaded_from_and_every_reading_is_changed():
    assert zmq.zmq_version()
    folder = cures.environment(False, ["libzmq.so.5"])["LD_LIBRARY_PATH"]
    code = subprocess.run(["objdump", "-d", f"{folder}/libzmq.so.5"], capture_output=True, text=True, check=True).stdout
    assert "rdtsc" not in code


def test_only_what_is_needed_is_set():
    libraries = [
        [Path(path).name for path in cures.environment(spins, [])["LD_PRELOAD"].split(":")] for spins in (0, 1)
    ]
    assert libraries == [["clock.so"], ["clock.so", "spin.so"]]
    assert set(cures.environment(False, [])) == {"LD_PRELOAD"}


CLOCK = """
import json, os, select, subprocess, time

def poll(): select.poll().poll(2)
def epoll(): select.epoll().poll(0.002)
def wait(): select.select([], [], [], 0.002)
def sleep(): time.sleep(0.002)
def child(): subprocess.run(["sleep", "0.002"])
def pipe(): os.read(os.popen("sleep 0.002; echo").fileno(), 1)

seen = {}
for work in (poll, epoll, wait, sleep, child, pipe):
    first = [time.time_ns() for _ in range(20)]
    work()
    seen[work.__name__] = len(set(first)), time.time_ns() - first[-1]
time.sleep(0)
reread = len({time.monotonic_ns() for _ in range(200)})
me = os.getpid()
forked = os.fork()
if not forked:
    os._exit(os.getpid() == os.getppid())
print(json.dumps({"seen": seen, "reread": reread, "pid": me, "child": os.waitpid(forked, 0)[1]}))
"""


def test_a_reading_of_the_clock_is_repeated_until_the_reader_sleeps():
    env = os.environ | cures.environment(False, [])
    with subprocess.Popen([sys.executable, "-c", CLOCK], stdout=subprocess.PIPE, env=env) as process:
        told = json.load(process.stdout)
    assert {name: repeated for name, (repeated, _) in told["seen"].items()} == dict.fromkeys(told["seen"], 1)
    assert all(slept >= 2_000_000 for _, slept in told["seen"].values()), told
    assert 2 <= told["reread"] <= 5  # each 64th reading is a real one, for a loop that waits for time to pass
    assert told["pid"] == process.pid and told["child"] == 0
