"""Which image each server runs in: the one asked for, its default, or the testbed's own."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from broker import registry as servers
from broker.server import Image
from compose.project import Images
from testbed import commands
from testbed.cell import Cell
from testbed.commands import CommandError
from testbed.errors import SetupError, UserError

VARIABLES = ("BROKER_IMAGE", "GATEWAY_IMAGE", "PAHO_GATEWAY_IMAGE")

_PULL_LIMIT = 600.0
"""Seconds of wall time to pull an image."""


def _others(cells: list[Cell]) -> Iterator[tuple[str, Image]]:
    """The servers of some cells that can run in an image of others, and what they declare of it."""
    settings = {name: given for cell in cells for name, given in cell.servers.items()}  # the same in all cells
    for name, given in settings.items():
        declared = servers.get(name).image
        if declared is not None:
            yield name, declared(given)


def problem(cells: list[Cell], given: Mapping[str, str]) -> str | None:
    """What is wrong with the images that the command line names; None if nothing is."""
    others = dict(_others(cells))
    known = {other.variable for other in others.values()}
    for variable, text in given.items():
        if variable not in known:
            allowed = (
                f"allowed with them is {', '.join(sorted(known))}" if known else "they run in the testbed's own image"
            )
            return f"{variable}: {text!r}: none of the chosen protocols has this server; {allowed}"
        if not text:
            return f"{variable}: '': allowed is the name of an image"
    for name, other in others.items():
        if other.default is None and other.variable not in given:
            return f"{other.variable}: missing; in a container {name} needs an image that has its program"
    return None


def choose(cells: list[Cell], given: Mapping[str, str]) -> tuple[Images, list[str]]:
    """The image of each server that does not run in the testbed's own, and sentences on those that could not be had.

    Pulls what the engine has not got. Raises UserError, or SetupError if an image that was asked for cannot be had.
    """
    if wrong := problem(cells, given):
        raise UserError(wrong)
    images, missed = {}, []
    for name, other in _others(cells):
        wanted = given.get(other.variable, other.default)
        if not wanted:
            continue
        try:
            _fetch(wanted)
            images[name] = wanted
        except CommandError as error:
            reason = f"{wanted!r} is not here and cannot be pulled ({(error.output.splitlines() or [str(error)])[-1]})"
            if other.variable in given:
                raise SetupError(f"{other.variable}: {reason}") from error
            missed.append(f"{name} of Debian in the testbed's own image, for {reason}")
    return images, missed


def _fetch(name: str) -> None:
    try:
        identity(name)
    except CommandError:
        commands.run(["docker", "pull", "--quiet", name], timeout=_PULL_LIMIT)


def identity(name: str) -> dict[str, Any]:
    """An image's name, id and, if it came from a registry, its digests."""
    words = ["docker", "image", "inspect", "--format", "{{.Id}} {{json .RepoDigests}}", name]
    number, digests = commands.run(words, timeout=60).split(maxsplit=1)
    return {"name": name, "id": number, "digests": json.loads(digests) or []}
