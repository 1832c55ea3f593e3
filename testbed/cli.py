"""The command line that `make` calls. User errors end with exit code 2 and one line, a failed run with 1."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from compose.docker import up
from guest import kernel
from testbed import __version__, host, profile, runtimes, screen, study
from testbed.errors import SetupError, UserError
from testbed.plan import Choice, Plan, resolve
from testbed.results import Results
from testbed.workers import Docker, Runtime, Virtual, run_all

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _whole(variable: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise UserError(f"{variable}: {text!r}: allowed is a whole number")
    return int(text)


def _given(**variables: str | None) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value is not None}


def _execute(plan: Plan, runtime: Runtime, results: Results, environment: dict[str, Any]) -> bool:
    """Run every cell; True if all are ok. Whatever happens, what finished is in the results."""
    begin = time.monotonic()
    outcomes = run_all(runtime, plan.cells, results.cell_folder, lambda event: progress.event(event))
    with screen.Progress(len(plan.cells)) as progress:
        try:
            for done in outcomes:
                row = results.finish(done.cell, done.status, done.wall_s, done.error)
                facts = results.facts[done.cell.id]
                progress.finished(done.cell.id, row, facts, done.error or str(facts.get("error", "")))
        except OSError as error:
            kept = "what finished before is kept"
            raise SetupError(f"{results.folder}: results cannot be written: {error.strerror}; {kept}") from error
        finally:
            outcomes.close()  # type: ignore[attr-defined]
            results.write_manifest(environment | {"wall_s": round(time.monotonic() - begin, 3)})
    return all(row["status"] == "ok" for row in results.rows.values())


@app.command()
def run(
    profile_name: Annotated[str, typer.Option("--profile")],
    study_name: Annotated[str, typer.Option("--study")] = "ffi-2022",
    protocol: str | None = None,
    qos: str | None = None,
    payload: str | None = None,
    clients: str | None = None,
    messages: str | None = None,
    interval: str | None = None,
    drain: str | None = None,
    seed: str | None = None,
    repeats: str | None = None,
    channel: str | None = None,
    capture: str | None = None,
    gateway: str | None = None,
    paho_gateway: str | None = None,
    broker_image: str | None = None,
    gateway_image: str | None = None,
    paho_gateway_image: str | None = None,
    congestion: str | None = None,
    runtime: str = "auto",
    out: Path = Path("results"),
    keep: bool = False,
) -> None:
    """Run a study on a profile. With --keep start its first cell's containers and leave them running (make up)."""
    link = profile.load(profile_name)
    name, file = study.load(study_name)
    choice = Choice(
        protocol=protocol,
        qos=qos,
        payload=payload,
        clients=_whole("CLIENTS", clients),
        messages=_whole("MESSAGES", messages),
        interval=interval,
        drain=drain,
        seed=_whole("SEED", seed),
        repeats=_whole("REPEATS", repeats),
        channel=channel,
        capture=capture,
        servers=_given(GATEWAY=gateway, PAHO_GATEWAY=paho_gateway),
        congestion=congestion,
    )
    images = _given(BROKER_IMAGE=broker_image, GATEWAY_IMAGE=gateway_image, PAHO_GATEWAY_IMAGE=paho_gateway_image)
    chosen = runtimes.choose(
        "docker" if keep else runtime,
        resolve(name, file, study_name, link, choice),
        runtimes.Given(images, congestion),
    )
    plan, place = chosen.plan, chosen.runtime
    results = Results(out, plan, place.name)
    screen.announce(plan, place.name, chosen.reason, str(results.folder))
    if keep:
        assert isinstance(place, Docker)
        up(plan.cells[0], results.cell_folder(plan.cells[0]), results.folder.name, place.images)
        console_line = f"{plan.cells[0].id} is up and publishes on schedule; make ps shows it, make down removes it"
        screen.console.print(console_line)
        return
    environment: dict[str, Any] = {
        "testbed": __version__,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "clock": "virtual" if place.name == "virtual" else "real",
        "versions": host.versions() | ({"guest_kernel": place.kernel.version} if isinstance(place, Virtual) else {}),
    }
    ok = _execute(plan, place, results, environment)
    screen.result_table(plan, [results.rows[cell.id] for cell in plan.cells if cell.id in results.rows])
    _report_safely(results.folder)
    if not ok:
        raise typer.Exit(1)


def _report_safely(folder: Path) -> None:
    """Write the report; if that fails the results are still there, so it is a warning."""
    try:
        _write_report(folder)
    except Exception as error:
        print(f"no report: {error!r}; the results are kept: make report RUN={folder}", file=sys.stderr)


def _write_report(folder: Path) -> None:
    from analysis import report  # matplotlib loads slowly, and no other command needs it

    screen.console.print(f"report in {report.write(folder)}", markup=False, soft_wrap=True)


@app.command("report")
def report_command(folder: Path) -> None:
    """Draw figures and write report.html of a finished run anew."""
    _write_report(folder.resolve())


@app.command()
def profiles() -> None:
    """List the links that come with the testbed."""
    screen.profile_table(profile.load_all())


def main() -> None:
    """Entry point."""
    # `timeout`, service managers and CI end a run with SIGTERM; it is cleaned up like Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    os.environ["PATH"] = ":".join([*map(str, kernel.tools()), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    try:
        sys.exit(app(standalone_mode=False) or 0)  # what a command returns or leaves with (typer.Exit) comes back here
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except SetupError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; the cells that finished are in results/latest", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
