"""The command line of `make reproduce` and `make fit`: a paper beside ours, and the search for what it leaves out."""

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from testbed import cli, fit, reproduce, runtimes, screen, study
from testbed.errors import UserError
from testbed.plan import Choice

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _chosen(variable: str, given: str | None, known: Sequence[str]) -> list[str]:
    names = list(known) if given is None else given.split(",")
    for name in names:
        if name not in known:
            raise UserError(f"{variable}: {name!r}: allowed are {', '.join(known)}, or several with commas")
    return names


@app.command("reproduce")
def reproduce_command(
    profile_name: Annotated[str | None, typer.Option("--profile")] = None,
    study_name: Annotated[str, typer.Option("--study")] = "ffi-2022",
    clients: str | None = None,
    messages: str | None = None,
    interval: str | None = None,
    drain: str | None = None,
    seed: str | None = None,
    repeats: str | None = None,
    channel: str | None = None,
    runtime: str = "virtual",
    out: Path | None = None,
) -> None:
    """Run the cells of a paper's tables and put them beside it. A profile that is already done is not run again."""
    from analysis import reproduction  # with it come pandas and Jinja2

    name, file = study.load(study_name)
    folder = out or Path("results", f"reproduce-{name}")
    choice = Choice(
        clients=cli.whole("CLIENTS", clients),
        messages=cli.whole("MESSAGES", messages),
        interval=interval,
        drain=drain,
        seed=cli.whole("SEED", seed),
        repeats=cli.whole("REPEATS", repeats),
        channel=channel,
    )
    runs, ok = [], True
    for link in _chosen("PROFILE", profile_name, reproduce.profiles(name)):
        plan = reproduce.plan(name, file, study_name, link, choice)
        done = reproduce.finished(plan, folder)
        if done:
            screen.console.print(f"{link}: already in {done}", markup=False, soft_wrap=True)
        else:
            went_well, done = cli.run_plan(plan, runtime, folder)
            ok = ok and went_well
        runs.append(done)
    found = reproduction.compare(name, runs)
    screen.reproduction(found)
    screen.console.print(f"tables and statements in {reproduction.write(found, folder)}", markup=False, soft_wrap=True)
    if not ok:
        raise typer.Exit(1)


@app.command("fit")
def fit_command(
    study_name: Annotated[str, typer.Option("--study")] = "ffi-2022",
    clients: str | None = None,
    messages: str | None = None,
    seed: str | None = None,
    channel: str | None = None,
    payload: str | None = None,
    interval: str | None = None,
    out: Path = Path("results"),
) -> None:
    """Search intervals, drains and directions, or some of them, for the losses nearest to the paper's."""
    name, file = study.load(study_name)
    reproduce.profiles(name)
    choice = Choice(
        clients=cli.whole("CLIENTS", clients),
        messages=cli.whole("MESSAGES", messages),
        seed=cli.whole("SEED", seed),
        repeats=1,
    )
    grids = {kind: fit.GRIDS[kind] for kind in _chosen("PAYLOAD", payload, list(fit.GRIDS))}
    if interval is not None:
        grids = {kind: dataclasses.replace(grid, intervals=tuple(interval.split(","))) for kind, grid in grids.items()}
    directions = _chosen("CHANNEL", channel, fit.DIRECTIONS)
    found = fit.points(name, file, study_name, choice, directions, grids)
    folder = (out / f"{time.strftime('%Y%m%d-%H%M%S')}-fit-{os.getpid()}").absolute()
    folder.mkdir(parents=True)
    screen.console.print(f"{len(found)} cells, each cut at several drains; results in {folder}", soft_wrap=True)
    rows: list[dict[str, object]] = []
    try:
        for number, (done, more) in enumerate(fit.measure(runtimes.virtual(), found, folder / "cells"), start=1):
            rows += more
            screen.console.print(
                f"[{number}/{len(found)}] {done.task.id}: {done.status}, {done.wall_s:.1f} s", markup=False
            )
    finally:
        trace = pd.DataFrame(rows)
        trace.to_csv(folder / "fit.csv", index=False, float_format="%.4f", lineterminator="\n")
    sums = fit.distances(trace)
    chosen = fit.best(sums)
    screen.console.print(sums.drop_duplicates(["direction", "payload"]).to_string(index=False))
    text = fit.as_study(name, file, chosen, sums, trace.drop_duplicates(["profile", "series", "payload"]).shape[0])
    (folder / f"{name}-fitted.yaml").write_text(text)
    screen.console.print(f"the study it found: {folder / f'{name}-fitted.yaml'}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    cli.main(app)
