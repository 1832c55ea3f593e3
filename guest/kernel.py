"""The guest's kernel: found in the cache, or built once from Debian's newest kernel source. Standard library only.

Cached below a key of the source's version and of what it is built with, so a change of either builds anew.
"""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from guest import debian
from testbed import commands
from testbed.errors import SetupError
from testbed.places import CACHE

_HERE = Path(__file__).parent
_RANDOM = _HERE / "random.c"

Configs = tuple[Path, ...]
"""What a kernel has beyond tinyconfig: fragments, of which a later one overrides an earlier."""

PLAIN: Configs = (_HERE / "kernel.config",)
WITH_DOCKER: Configs = (*PLAIN, _HERE / "docker.config")
"""It also runs a Docker engine; slower, so used by tests of containers alone."""

_SUITES = {"bookworm": ["trixie-backports", "bookworm-backports"], "trixie": ["trixie-backports"]}
_OTHER_ARCHITECTURES = "alpha arc arm arm64 loongarch m68k mips parisc powerpc riscv s390 sh sparc"
_DRIVERS = "accel clk crypto gpu hwmon iio infiniband media mtd net/ethernet net/wireless pinctrl scsi soc staging usb"
_FILE_SYSTEMS = "btrfs ceph ext4 f2fs gfs2 nfs nfsd ntfs3 ocfs2 smb xfs"
_NOT_NEEDED = (
    *("*.rst", "*.dts", "*.dtsi", "*/sound/*.[ch]", "*/tools/perf/*", "*/tools/testing/*"),
    *(f"*/arch/{name}/*.[chS]" for name in _OTHER_ARCHITECTURES.split()),
    *(f"*/drivers/{name}/*.[ch]" for name in _DRIVERS.split()),
    *(f"*/fs/{name}/*.[ch]" for name in _FILE_SYSTEMS.split()),
)
"""Files that this kernel's build never reads (Kconfig and Makefile stay): half of all, and of the time to unpack them."""

_FILES = 650
"""Object files of such a build, to show how far it is."""

# Part of what seeds the guest's random pool, so the same on every machine.
_BUILD: tuple[str, ...] = (
    "KBUILD_BUILD_TIMESTAMP=2024-01-01",
    "KBUILD_BUILD_USER=testbed",
    "KBUILD_BUILD_HOST=testbed",
)
_BUILD += ("KBUILD_BUILD_VERSION=1", "KCFLAGS=-pipe")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Kernel:
    """A built guest kernel, its seeded getrandom, and the folders whose tools come first in the guest."""

    linux: Path
    random: Path
    version: str
    tools: tuple[Path, ...]


def _recipe(configs: Configs) -> str:
    text = b"".join(path.read_bytes() for path in (*configs, _RANDOM)) + " ".join(_BUILD).encode()
    return hashlib.sha256(text).hexdigest()[:10]


def _version_key(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def cached(configs: Configs = PLAIN) -> Kernel | None:
    """The newest kernel built with the present recipe; None if there is none yet."""
    pattern = f"kernel-*-{_recipe(configs)}"
    found = sorted(CACHE.glob(pattern), key=lambda folder: _version_key(folder.name.split("-")[1]))
    if not found:
        return None
    folder = found[-1]
    return Kernel(folder / "linux", folder / "random.so", folder.name.split("-")[1], tools())


def tools() -> tuple[Path, ...]:
    """Folders with newer tools than the system's, to be put before it in PATH."""
    return tuple(sorted(CACHE.glob("iproute2-*/sbin")))[-1:]


def fetch_iproute2(say: Say) -> None:
    """A tc that can seed netem (iproute2 6.6 and newer), from backports, into the cache, where the system's is older."""
    if tools() or _version_key(commands.run(["tc", "-V"]).split("iproute2-")[-1].split(",")[0])[:2] >= [6, 6]:
        return
    backports = f"{debian.codename()}-backports"
    try:
        with debian.suites([backports]) as suites, tempfile.TemporaryDirectory() as scratch:
            version = suites.versions("iproute2")["iproute2"]
            say(f"tc: iproute2 {version} from {backports}, for netem's seed (into {CACHE})")
            deb = suites.download("iproute2", version, Path(scratch))
            target = CACHE / f"iproute2-{version.split('~')[0]}"
            commands.run(["dpkg-deb", "-x", str(deb), scratch])
            shutil.move(Path(scratch, "sbin"), target / "sbin")
    except (SetupError, KeyError) as error:
        say(f"tc: none newer to be had ({error}); netem is then seeded by the guest's random pool alone")


def _unpack(say: Say, scratch: Path) -> tuple[str, Path]:
    """The newest linux-source that can be had: its version and its unpacked tree."""
    names = _SUITES.get(debian.codename(), [f"{debian.codename()}-backports"])
    with debian.suites(names) as suites:
        versions = suites.versions(r"linux-source-\d+\.\d+")
        if not versions:
            raise SetupError(f"no linux-source package in {', '.join(names)}")
        name = max(versions, key=_version_key)
        say(f"guest kernel: fetching {name} {versions[name]} (170 MB)")
        deb = suites.download(name, versions[name], scratch)
    say("guest kernel: unpacking")
    archive = f"./usr/src/{name}.tar.xz"
    left_out = [f"--exclude={pattern}" for pattern in _NOT_NEEDED]
    pipeline = 'deb=$1 archive=$2; shift 2; dpkg-deb --fsys-tarfile "$deb" | tar -xO "$archive" | tar -xJ "$@"'
    commands.run(["sh", "-ec", pipeline, "sh", str(deb), archive, *left_out], cwd=scratch)
    return versions[name].split("-")[0], scratch / name


def _configure(source: Path, configs: Configs) -> None:
    make, merge = ["make", "ARCH=um"], ["scripts/kconfig/merge_config.sh", "-m", ".config"]
    commands.run([*make, "tinyconfig"], cwd=source)
    commands.run([*merge, *map(str, configs)], cwd=source, env={"ARCH": "um"})
    commands.run([*make, "olddefconfig"], cwd=source)
    have = set((source / ".config").read_text().splitlines())
    known = set(re.findall(r"^\s*(?:menu)?config (\w+)", _kconfig_text(source), re.MULTILINE))
    for line in "\n".join(path.read_text() for path in configs).splitlines():
        option = re.match(r"CONFIG_(\w+)=y", line)
        if option and option[1] in known and line not in have:
            raise SetupError(f"guest kernel: {line} did not take; see guest/*.config")


def _kconfig_text(source: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in source.rglob("Kconfig*") if path.is_file())


def _compile(source: Path, say: Say) -> None:
    done, begin, told = 0, time.monotonic(), 0.0

    def count(line: str) -> None:
        nonlocal done, told
        done += line.lstrip().startswith(("CC ", "AS "))
        if time.monotonic() - told >= 10:
            told = time.monotonic()
            say(f"guest kernel: compiled {done} of about {_FILES} files, {told - begin:.0f} s")

    commands.follow(["make", "ARCH=um", f"-j{os.cpu_count()}", *_BUILD, "linux"], count, cwd=source)


def build(say: Say, configs: Configs = PLAIN) -> Kernel:
    """Build the kernel into the cache, telling each step through `say`, and return it. Takes minutes, once.

    Of several builds at once one builds and the others wait for it.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return cached(configs) or _build(say, configs)


def _build(say: Say, configs: Configs) -> Kernel:
    with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
        version, source = _unpack(say, Path(scratch))
        _configure(source, configs)
        _compile(source, say)
        result = Path(scratch, "result")
        result.mkdir()
        commands.run(["strip", "-o", str(result / "linux"), str(source / "linux")])
        shutil.copy(source / ".config", result / "config")
        commands.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(result / "random.so"), str(_RANDOM)])
        result.rename(CACHE / f"kernel-{version}-{_recipe(configs)}")
    say("guest kernel: built")
    kernel = cached(configs)
    assert kernel is not None
    return kernel
