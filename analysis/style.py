"""How figures look: colours that the colour-blind can tell apart, marks for QoS, files that are the same every time."""

import colorsys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib.figure import Figure

INK, PAPER, LINE = "#1b1f24", "#ffffff", "#d5d9de"
"""Text, background, grid: the report puts its own in their place, so that figures follow light and dark."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
"""Okabe and Ito, Color Universal Design (2008), without black and yellow, and a grey."""

_TINTS = {-1: 0.35, 1: 0.25, 2: 0.5}
_DASHES = {-1: (0, (1, 1)), 1: (0, (5, 1.5)), 2: (0, (4, 1.5, 1, 1.5))}
MARKS = ("o", "D", "s", "v", "^", "P", "X")
"""Marks of runs that are put side by side."""
_MARKERS = {-1: "v", 0: "o", 1: "s", 2: "D", None: "o"}

SEQUENTIAL, DIVERGING = "Blues", "PuOr_r"
"""Colour maps that the colour-blind can read, of ColorBrewer (Harrower and Brewer 2003)."""

WIDTH = 5.0
"""Inches. Narrow, so that text stays readable when a phone shrinks the figure."""

_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "pubsub-testbed",  # ids in the SVG do not change from one time to the next
    "svg.fonttype": "none",  # text stays text
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "savefig.dpi": 160,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def apply() -> None:
    """Use these settings from here on, whatever the user's own matplotlibrc says."""
    mpl.rcdefaults()
    mpl.rcParams.update(_SETTINGS)


def colours(protocols: list[str]) -> dict[str, str]:
    """A colour for each protocol, in the order given."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(dict.fromkeys(protocols))}


def shade(colour: str, qos: int | None) -> tuple[float, float, float]:
    """The protocol's colour, lighter for some QoS levels."""
    red, green, blue = mpl.colors.to_rgb(colour)
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    tint = _TINTS.get(qos, 0.0) if qos is not None else 0.0
    return colorsys.hls_to_rgb(hue, lightness + (0.85 - lightness) * tint, saturation)


def dashes(qos: int | None) -> object:
    """A line's pattern."""
    return _DASHES.get(qos, "-") if qos is not None else "-"


def marker(qos: int | None) -> str:
    """A point's shape."""
    return _MARKERS.get(qos, "o")


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `name`.png and `name`.svg, without dates and versions in them."""
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    figure.set_layout_engine("none")  # all is in its place; to find it takes as long as to draw
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
