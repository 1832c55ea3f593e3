"""Packages of newer Debian suites, fetched without touching the system's own apt configuration."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import commands
from testbed.errors import SetupError

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def codename() -> str:
    """The distribution's code name, `bookworm` on Debian 12; empty where /etc/os-release has none."""
    found = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else ""


def _mirror() -> str:
    """The URI that this machine's apt takes its own release from."""
    lines = commands.run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"])
    for line in lines.splitlines():
        uri, release, component = line.split("|")
        if release == codename() and component == "main":
            return uri
    raise SetupError(f"apt has no source for {codename() or 'this system'} main; see `apt-get indextargets`")


class Suites:
    """The package lists of some suites, in a folder of their own."""

    def __init__(self, folder: Path, suites: list[str]) -> None:
        (folder / "lists" / "partial").mkdir(parents=True)
        sources = folder / "suites.sources"
        keyring = f"Signed-By: {_KEYRING}\n" if _KEYRING.exists() else ""
        sources.write_text(f"Types: deb\nURIs: {_mirror()}\nSuites: {' '.join(suites)}\nComponents: main\n{keyring}")
        self.options = ["-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Etc::SourceList={sources}"]
        self.options += ["-o", "Dir::Etc::SourceParts=/dev/null", "-o", "APT::Sandbox::User=root"]
        commands.run(["apt-get", *self.options, "update"])

    def versions(self, pattern: str) -> dict[str, str]:
        """Newest version of each package whose name matches the regular expression."""
        names = commands.run(["apt-cache", *self.options, "pkgnames"]).split()
        found = {}
        for name in filter(re.compile(pattern).fullmatch, names):
            policy = commands.run(["apt-cache", *self.options, "show", "--no-all-versions", name])
            version = re.search(r"^Version: (\S+)", policy, re.MULTILINE)
            if version:
                found[name] = version[1]
        return found

    def download(self, name: str, version: str, folder: Path) -> Path:
        """The package's .deb, in `folder`."""
        before = set(folder.glob("*.deb"))
        commands.run(["apt-get", *self.options, "download", f"{name}={version}"], cwd=folder)
        (deb,) = set(folder.glob("*.deb")) - before
        return deb


@contextmanager
def suites(names: list[str]) -> Iterator[Suites]:
    """Suites to look packages up in, like `trixie-backports`; forgotten after the `with`."""
    with tempfile.TemporaryDirectory(prefix="testbed-apt-") as folder:
        yield Suites(Path(folder), names)
