"""The command line that `make` calls. User errors end with exit code 2 and one line, a failed run with 1."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from analysis import wireshark
from analysis.certificate import FAILED
from analysis.run import find_cell
from compose.docker import up
from guest import kernel
from testbed import __version__, commands, host, profile, runtimes, screen, study
from testbed.cell import Cell
from testbed.certify import Certificate, run_all_certificates
from testbed.errors import SetupError, UserError
from testbed.plan import Choice, Plan, resolve
from testbed.results import Results
from testbed.workers import Docker, Runtime, Task, Virtual, dearest_first, run_all

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def whole(variable: str, text: str | None) -> int | None:
    """A variable that holds a whole number; None if it was not given. Raises UserError."""
    if text is None:
        return None
    if not text.isdecimal():
        raise UserError(f"{variable}: {text!r}: allowed is a whole number")
    return int(text)


def _given(**variables: str | None) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value is not None}


def _execute(plan: Plan, runtime: Runtime, results: Results, environment: dict[str, Any]) -> bool:
    """Run every cell; True if all are ok and the link certificate did not fail. What finished is in the results."""
    begin = time.monotonic()
    certificate = Certificate(plan, runtime.name, results.folder / "certificate")
    first, last = certificate.probes()[:1], certificate.probes()[1:]

    def place(task: Task) -> Path:
        return results.cell_folder(task) if isinstance(task, Cell) else certificate.place(task)

    outcomes = run_all(runtime, [*first, *dearest_first(plan.cells), *last], place, lambda event: progress.event(event))
    with screen.Progress(len(plan.cells)) as progress:
        try:
            for done in outcomes:
                if isinstance(done.task, Cell):
                    row = results.finish(done.task, done.status, done.wall_s, done.error)
                    facts = results.facts[done.task.id]
                    progress.finished(done.task.id, row, facts, done.error or str(facts.get("error", "")))
                else:
                    progress.probed(done.task.id, certificate.finish(done.task, done.status, done.wall_s, done.error))
        except OSError as error:
            kept = "what finished before is kept"
            raise SetupError(f"{results.folder}: results cannot be written: {error.strerror}; {kept}") from error
        finally:
            outcomes.close()  # type: ignore[attr-defined]
            wall_s = round(time.monotonic() - begin, 3)
            results.write_manifest(environment | {"wall_s": wall_s, "certificate": certificate.to_json()})
    screen.certificate(certificate.to_json())
    return certificate.verdict != FAILED and all(row["status"] == "ok" for row in results.rows.values())


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
        clients=whole("CLIENTS", clients),
        messages=whole("MESSAGES", messages),
        interval=interval,
        drain=drain,
        seed=whole("SEED", seed),
        repeats=whole("REPEATS", repeats),
        channel=channel,
        capture=capture,
        servers=_given(GATEWAY=gateway, PAHO_GATEWAY=paho_gateway),
        congestion=congestion,
    )
    images = _given(BROKER_IMAGE=broker_image, GATEWAY_IMAGE=gateway_image, PAHO_GATEWAY_IMAGE=paho_gateway_image)
    plan, given = resolve(name, file, study_name, link, choice), runtimes.Given(images, congestion)
    if keep:
        _keep_up(plan, given, out)
    elif not run_plan(plan, runtime, out, given)[0]:
        raise typer.Exit(1)


def _begin(chosen: runtimes.Chosen, out: Path) -> Results:
    results = Results(out, chosen.plan, chosen.runtime.name)
    screen.announce(chosen.plan, chosen.runtime.name, chosen.reason, str(results.folder))
    return results


def _keep_up(plan: Plan, given: runtimes.Given, out: Path) -> None:
    chosen = runtimes.choose("docker", plan, given)
    results, cell = _begin(chosen, out), chosen.plan.cells[0]
    assert isinstance(chosen.runtime, Docker)
    up(cell, results.cell_folder(cell), results.folder.name, chosen.runtime.images)
    screen.console.print(f"{cell.id} is up and publishes on schedule; make ps shows it, make down removes it")


def run_plan(plan: Plan, runtime: str, out: Path, given: runtimes.Given = runtimes.NOTHING) -> tuple[bool, Path]:
    """Run a plan to its report; whether all went well, and the folder of its results."""
    chosen = runtimes.choose(runtime, plan, given)
    plan, place, results = chosen.plan, chosen.runtime, _begin(chosen, out)
    environment: dict[str, Any] = {
        "testbed": __version__,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "clock": "virtual" if place.name == "virtual" else "real",
        "versions": host.versions() | ({"guest_kernel": place.kernel.version} if isinstance(place, Virtual) else {}),
    }
    try:
        ok = _execute(plan, place, results, environment)
    except KeyboardInterrupt:
        if results.rows:
            screen.console.print(f"interrupted; {len(results.rows)} of {len(plan.cells)} cells finished", markup=False)
            _report_safely(results.folder)
        raise
    screen.result_table(plan, [results.rows[cell.id] for cell in plan.cells if cell.id in results.rows])
    _report_safely(results.folder)
    return ok, results.folder


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


@app.command("inspect")
def inspect_command(cell: str, display_filter: Annotated[str, typer.Option("--filter")] = "") -> None:
    """Print a cell's packets, a line each: when, how long over the channel, who to whom, what."""
    from analysis.pcap import inspect  # as above

    inspect.show(inspect.lines(find_cell(cell, Path("results/latest")), display_filter), screen.console)


@app.command("compare")
def compare_command(words: list[str], out: Path = Path("results")) -> None:
    """Put runs side by side: a table here, and compare.html."""
    from analysis import compare, compare_page  # as above

    comparison = compare.compare([compare.find_run(word, out) for word in words])
    screen.side_by_side(comparison)
    page = compare_page.write(comparison, out.absolute() / f"compare-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    screen.console.print(f"side by side in {page}", markup=False, soft_wrap=True)


@app.command("wireshark")
def wireshark_command(cell: str, side: str = "client-side") -> None:
    """Open a cell's capture in Wireshark, with the profile of its run."""
    words, environment = wireshark.command(find_cell(cell, Path("results/latest")), side)
    commands.run(words, env=environment)


@app.command("certificate")
def certificate_command(
    profile_name: Annotated[str | None, typer.Option("--profile")] = None,
    study_name: Annotated[str, typer.Option("--study")] = "ffi-2022",
    seed: str | None = None,
    channel: str | None = None,
    runtime: str = "auto",
    out: Path = Path("results"),
) -> None:
    """Check links without running cells: delay, rate, loss and the rest of one profile, or of all that shape."""
    name, file = study.load(study_name)
    links = [profile.load(profile_name)] if profile_name else [one for one in profile.load_all() if one.netem.shapes]
    choice = Choice(seed=whole("SEED", seed), channel=channel)
    plans = [resolve(name, file, study_name, link, choice) for link in links]
    chosen = runtimes.choose(runtime, plans[0], runtimes.NOTHING)
    place, reason = chosen.runtime, chosen.reason
    folder = (out / f"{time.strftime('%Y%m%d-%H%M%S')}-certificates-{os.getpid()}").absolute()
    screen.console.print(f"runtime {place.name}: {reason}")
    made = run_all_certificates(place, plans, folder)
    screen.certificate_table({one.plan.profile.name: one.to_json() for one in made})
    screen.console.print(f"captures and figures in {folder}", markup=False, soft_wrap=True)
    if any(one.verdict == FAILED for one in made):
        raise typer.Exit(1)


@app.command()
def profiles() -> None:
    """List the links that come with the testbed."""
    screen.profile_table(profile.load_all())


def main(app: typer.Typer = app) -> None:
    """Entry point of a command line; this module's, or another's."""
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
        print("interrupted; what finished is kept", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
