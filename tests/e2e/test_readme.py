"""Every command in the README works as it stands there (on tiny cells, so that it is quick)."""

import re
import shlex
import subprocess

import pytest

from testbed.places import PROJECT

BLOCKS = re.findall(r"```sh\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
COMMANDS = sorted({line.split("  #")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()})
IN_CONTAINERS = "make run PROFILE=lan RUNTIME=docker PAYLOAD=gps"  # test_docker.py runs it, with an engine
IN_THE_MAIN_RUN = {IN_CONTAINERS, "make test", "make lint", "make test TESTS=tests/unit"}
SLOW = {"make bench", "make run PROFILE=satcom RUNTIME=netns"}  # the latter needs netem in this machine's kernel


def test_the_readme_has_the_two_commands():
    assert {"make run PROFILE=satcom", "make test", IN_CONTAINERS} <= set(COMMANDS)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in IN_THE_MAIN_RUN | SLOW])
def test_a_command_of_the_readme_works(command, tmp_path):
    words = shlex.split(command.replace("path/to/mine.yaml", "profiles/satcom.yaml"))
    if words[:2] == ["make", "run"]:
        tiny = ["CLIENTS=2", "MESSAGES=2", f"OUT={tmp_path}"]
        if command != "make run PROFILE=satcom":  # that one runs every protocol
            tiny.append("PROTOCOL=mqtt")
        words += [word for word in tiny if not any(given.startswith(word.split("=")[0]) for given in words)]
    if "results/latest" in command:
        tiny = ["PROFILE=satcom", "PROTOCOL=mqtt", "QOS=1", "PAYLOAD=gps", "CLIENTS=2", "MESSAGES=2"]
        subprocess.run(["make", "run", *tiny], cwd=PROJECT, check=True, capture_output=True)
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
