"""What libraries need in virtual time."""

import ctypes
import json
import os
import subprocess
import sys

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
    assert cures.environment(False, []) == {}
    assert set(cures.environment(True, [])) == {"LD_PRELOAD"}


CLOCK = """
import json, os, select, threading, time
seen = {}
def read(name):
    first = [time.time_ns() for _ in range(20)]
    select.poll().poll(2)
    seen[name] = len(set(first)), time.time_ns() - first[-1], len({time.monotonic_ns() for _ in range(200)})
thread = threading.Thread(target=read, args=("library",))
thread.start()
thread.join()
read("main")
child = os.fork()
if not child:
    os._exit(os.getpid() == os.getppid())
print(json.dumps(seen | {"pid": os.getpid(), "child": os.waitpid(child, 0)[1]}))
"""


def test_a_librarys_thread_repeats_a_reading_of_the_clock_until_it_sleeps():
    """The main thread, whose readings are measurements, never does."""
    env = os.environ | cures.environment(True, [])
    with subprocess.Popen([sys.executable, "-c", CLOCK], stdout=subprocess.PIPE, env=env) as process:
        seen = json.load(process.stdout)
    repeated, slept, reread = seen["library"]
    assert repeated == 1
    assert slept >= 2_000_000
    assert 2 <= reread <= 5  # each 64th reading is a real one, for a loop that waits for time to pass
    assert seen["main"][0] > 1 and seen["main"][2] > 100
    assert seen["pid"] == process.pid and seen["child"] == 0
