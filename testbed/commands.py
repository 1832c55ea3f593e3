"""The one module that runs commands. A failed command's error shows the command, its exit status and its output."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from testbed.errors import SetupError
from testbed.waiting import wait_for


class CommandError(SetupError):
    """A command that did not exit with 0, or could not be started."""

    def __init__(self, argv: Sequence[str], status: int | None, output: str) -> None:
        self.argv, self.status, self.output = list(argv), status, output.strip()
        outcome = "could not be started" if status is None else f"exit status {status}"
        super().__init__(f"`{shlex.join(argv)}`: {outcome}" + (f"\n{self.output}" if self.output else ""))


def run(
    argv: Sequence[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> str:
    """Run a command to its end and return what it printed.

    Raises CommandError with stdout and stderr if it fails. `env` adds to the environment; `timeout` is in seconds.
    """
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, **env} if env else None,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise CommandError(argv, None, str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(argv, None, f"not done after {timeout} s") from error
    if done.returncode:
        raise CommandError(argv, done.returncode, done.stdout + done.stderr)
    return done.stdout


def follow(argv: Sequence[str], each_line: Callable[[str], None], *, cwd: Path | None = None) -> None:
    """Run a long command and hand over each line it prints (stdout and stderr together) as it comes."""
    lines: list[str] = []
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            each_line(line.rstrip())
    if process.returncode:
        raise CommandError(argv, process.returncode, "".join(lines[-40:]))


def start(
    argv: Sequence[str],
    *,
    stdout: IO[str] | int,
    stderr: IO[str] | int = subprocess.STDOUT,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    own_group: bool = False,
) -> "subprocess.Popen[str]":
    """Start a command that stops with this process, however this process ends."""
    try:
        # setpriv rather than a preexec_fn, for that would make Python copy itself (fork) where it else need not (vfork).
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *argv],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            env={**os.environ, **env} if env else None,
            cwd=cwd,
            start_new_session=own_group,
        )
    except OSError as error:
        raise CommandError(argv, None, str(error)) from error


@contextmanager
def background(
    argv: Sequence[str], output: Path, errors: Path, *, stop_signal: int = signal.SIGTERM, grace: float = 10.0
) -> "Iterator[subprocess.Popen[str]]":
    """A process that runs inside the `with`, its stdout and stderr in files. Killed if `stop_signal` does not end it."""
    with output.open("w") as stdout, errors.open("w") as stderr:
        process = start(argv, stdout=stdout, stderr=stderr)
        try:
            yield process
        finally:
            process.send_signal(stop_signal)
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@contextmanager
def ended_afterwards(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill a process's whole group after the `with`: for a guest, the kernel and the processes that carry its programs."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with suppress(SetupError):  # where nobody reaps orphans, the group stays known though all in it are dead
            wait_for(partial(_is_gone, process.pid), f"the processes of group {process.pid} to end", 5)
        if process.stdout:
            process.stdout.close()
