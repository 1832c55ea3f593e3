"""These tests need namespaces and netem, so pytest runs them in the guest: once for all that are selected.

On the host each test only looks up what became of it there.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from guest import boot, kernel
from testbed import commands

IN_GUEST = "TESTBED_IN_GUEST" in os.environ
_HERE = Path(__file__).parent


def _run_in_guest(names: list[str]) -> tuple[dict[str, str], str]:
    """What became of each test (empty: passed), and all that the guest printed."""
    built = kernel.cached()
    assert built is not None, "the guest's kernel is not built: make setup"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = ["env", "TESTBED_IN_GUEST=1", sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        boot.prepare(built, Path(folder), [*words, f"--junitxml={report}", *names])
        process = commands.start(
            boot.command(built, min(os.sched_getaffinity(0))),
            stdout=subprocess.PIPE,
            env=boot.environment(built, 1),
            cwd=Path(folder),
            own_group=True,
        )
        output, _ = process.communicate(timeout=240)
        outcome = {}
        for case in ElementTree.parse(report).iter("testcase"):
            failures = [child for child in case if child.tag in ("failure", "error")]
            outcome[case.attrib["name"]] = "\n".join(child.text or "" for child in failures)
        return outcome, output


@pytest.fixture(scope="session")
def guest_outcome(request):
    if IN_GUEST:
        return {}, ""
    chosen = [item.nodeid for item in request.session.items if Path(item.path).parent == _HERE]
    return _run_in_guest(chosen)


def pytest_collection_modifyitems(items):
    for item in items:
        if not IN_GUEST and Path(item.path).parent == _HERE:
            item.fixturenames[:] = ["guest_outcome"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if IN_GUEST or Path(pyfuncitem.path).parent != _HERE:
        return None
    outcome, output = pyfuncitem.funcargs["guest_outcome"]
    failure = outcome.get(pyfuncitem.name, f"did not run in the guest:\n{output}")
    if failure:
        pytest.fail(failure, pytrace=False)
    return True
