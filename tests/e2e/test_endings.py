"""Errors, limits and interruptions: what ends, how, and what is left."""

import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from runs import Run, command, run

from guest import boot, kernel
from testbed import commands, profile, study
from testbed.places import PROJECT
from testbed.plan import Choice, resolve
from testbed.workers import Virtual, run_all

TINY = {"protocol": "mqtt", "payload": "gps", "clients": 2, "messages": 2}


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder for a run's temporary files, so that what it leaves can be told from others'."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_behind(scratch):
    """Temporary files, and processes that work in them: a guest's working folder is its scratch folder."""
    working = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            working.append(str(process.readlink()))
    return list(scratch.iterdir()), [folder for folder in working if folder.startswith(str(scratch))]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"profile": "satcon"}, "PROFILE: 'satcon'"),
        ({"profile": "satcom", "qos": "3"}, "QOS: '3'"),
        ({"profile": "satcom", "clients": "0"}, "CLIENTS: 0"),
        ({"profile": "satcom", "clients": "many"}, "CLIENTS: 'many'"),
        ({"profile": "satcom", "runtime": "cloud"}, "RUNTIME: 'cloud'"),
        ({"profile": "satcom", "study": "none"}, "STUDY: 'none'"),
        ({"profile": "no/such.yaml"}, "no/such.yaml"),
    ],
)
def test_a_user_error_is_one_line_and_exit_code_2(tmp_path, variables, words):
    result = run(tmp_path, **variables)
    assert result.code == 2
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_a_user_error():
    result = run(Path("/proc/nowhere"), profile="satcom", **TINY)
    assert result.code == 2
    assert "OUT: '/proc/nowhere'" in result.output


def test_a_misspelt_make_variable_is_an_error():
    done = subprocess.run(["make", "run", "PROFIL=satcom"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "PROFIL: no such variable" in done.stderr


def own_study(tmp_path, before, after):
    text = (study.FOLDER / "ffi-2022.yaml").read_text()
    assert before in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(before, after))
    return path


def test_a_cell_past_its_limit_is_ended_and_reported_and_the_run_goes_on(tmp_path, scratch):
    mine = own_study(tmp_path, "cell: 900s", "cell: 100ms")
    result = run(tmp_path / "out", profile="satcom", study=mine, qos="0,1", **TINY)
    assert result.code == 1
    assert result.summary.status.tolist() == ["timeout", "timeout"]
    assert left_behind(scratch) == ([], [])


def test_a_program_that_fails_fails_its_cell_alone_with_its_output(tmp_path):
    mine = own_study(tmp_path, "net.ipv4.tcp_congestion_control: cubic", "net.ipv4.tcp_congestion_control: nosuch")
    result = run(tmp_path / "out", profile="satcom", study=mine, qos=0, **TINY)
    assert result.code == 1
    assert result.summary.status.tolist() == ["failed"]
    assert "nosuch" in result.output


class Spinning(Virtual):
    """A guest whose program never sleeps, so that its virtual clock stands still."""

    def start(self, cell, job, core):
        boot.prepare(self.kernel, job.parent, [sys.executable, "-c", "while True: pass"])
        words, env = boot.command(self.kernel, core), boot.environment(self.kernel, cell.seed)
        return commands.start(words, stdout=subprocess.PIPE, env=env, cwd=job.parent, own_group=True)


def test_a_guest_whose_clock_stands_still_is_ended(tmp_path, scratch):
    mine = own_study(tmp_path, "stall: 60s", "stall: 2s")
    name, file = study.load(str(mine))
    cells = resolve(name, file, name, profile.load("satcom"), Choice(qos="0", **TINY)).cells
    (done,) = run_all(Spinning(kernel.cached()), cells, lambda cell: tmp_path / cell.id, lambda event: None)
    assert done.status == "stalled"
    assert left_behind(scratch) == ([], [])


def test_ctrl_c_leaves_nothing_behind_and_keeps_what_finished(tmp_path, scratch):
    variables = {"profile": "satcom", "payload": "gps", "protocol": "mqtt", "clients": 2, "messages": 2, "repeats": 40}
    process = subprocess.Popen(command(tmp_path, **variables), cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    for line in process.stdout:
        if line.startswith("[2/"):
            process.send_signal(signal.SIGINT)
            break
    process.communicate()
    watchdog.cancel()
    result = Run(process.returncode, "", (tmp_path / "latest").resolve())
    assert result.code == 130
    assert (result.summary.status == "ok").sum() >= 2
    assert len(result.summary) < 120
    assert result.manifest["cells"]
    assert (
        f"The run was interrupted: {len(result.summary)} of 120 cells finished."
        in (result.folder / "report.html").read_text()
    )
    assert left_behind(scratch) == ([], [])
