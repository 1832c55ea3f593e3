"""What some programs need in virtual time, told by the protocol that uses them; built in the cache when first needed.

- All read the clock more often than time passes: preloaded guest/clock.c repeats a reading until the reader sleeps.
- Libraries that spin: preloaded guest/spin.c makes them sleep.
- Libraries that read the time stamp counter (RDTSC): it is this machine's own, so it would bring the host's time into the
  guest, and with it results that differ from run to run. They get a copy that reads 0, as on a processor without one.
"""

import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed import commands
from testbed.errors import SetupError
from testbed.places import CACHE

_CLOCK, _SPIN = (Path(__file__).parent / name for name in ("clock.c", "spin.c"))

# rdtsc and, in either order, mov eax,eax and shl rdx,32: how compilers join its two halves (Intel SDM vol. 2, RDTSC).
_RDTSC = re.compile(rb"\x0f\x31(?:\x89\xc0\x48\xc1\xe2\x20|\x48\xc1\xe2\x20\x89\xc0)")
_ZERO = b"\x31\xc0\x31\xd2\x0f\x1f\x40\x00"  # xor eax,eax; xor edx,edx; a 4-byte nop


def _cached(name: str, recipe: bytes, make: Callable[[Path], object]) -> Path:
    """CACHE/<name>-<hash of recipe>/<name>, made by `make` if it is not there yet."""
    folder = CACHE / f"{name}-{hashlib.sha256(recipe).hexdigest()[:10]}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
            made = Path(scratch, name)
            made.mkdir()
            make(made / name)
            try:
                made.rename(folder)
            except OSError:
                if not folder.exists():  # else another run made it at the same time
                    raise
    return folder / name


def _compiled(source: Path) -> Path:
    return _cached(
        f"{source.stem}.so",
        source.read_bytes(),
        lambda library: commands.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]),
    )


def without_tsc(code: bytes) -> bytes:
    """x86-64 machine code with every read of the time stamp counter giving 0. Raises ValueError if it has none."""
    changed, count = _RDTSC.subn(lambda _: _ZERO, code)
    if not count:
        raise ValueError("no RDTSC of a known form")
    return changed


def _loaded(prefix: str) -> Path:
    """The file of a shared library that this process has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(prefix):
            return path.resolve()
    raise SetupError(f"{prefix}: not loaded, though the protocol says that it uses it")


def _copy(name: str) -> Path:
    library = _loaded(name)
    code = library.read_bytes()
    try:
        return _cached(name, code, lambda copy: copy.write_bytes(without_tsc(code)))
    except ValueError as error:
        raise SetupError(f"{library}: {error}; in virtual time it would bring in the host's clock") from error


def environment(spins: bool, reads_tsc: Sequence[str]) -> dict[str, str]:
    """Environment variables for a cell's programs. `reads_tsc` names libraries, `libexample.so.1`, loaded here too."""
    env = {"LD_PRELOAD": ":".join(str(_compiled(source)) for source in ([_CLOCK, _SPIN] if spins else [_CLOCK]))}
    if reads_tsc:
        env["LD_LIBRARY_PATH"] = ":".join(str(_copy(name).parent) for name in reads_tsc)
    return env
