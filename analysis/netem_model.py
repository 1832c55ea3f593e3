"""What netem's random parts do in the long run, computed from a profile: the certificate's expectations.

The models are those of tc-netem(8) and of the kernel's net/sched/sch_netem.c. Shares are of 1, times in ns.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.run import Floats
from testbed.errors import SetupError
from testbed.netem import Netem
from testbed.units import PERCENT_SCALE

_DIST_SCALE = 8192  # NETEM_DIST_SCALE (linux/pkt_sched.h): a table's unit is 1/8192 standard deviation
_STEPS = 400  # states into which a correlated random number's range is cut


@dataclass(frozen=True)
class Share:
    """A share of packets, and by how much dependence between packets multiplies the variance of its estimate."""

    mean: float
    inflation: float = 1.0


NONE = Share(0.0)


def _of(parts: int) -> float:
    return parts / (100 * PERCENT_SCALE)


def markov(transitions: Floats, chances: Floats) -> Share:
    """The share of packets met by an event that happens with `chances[s]` in state s of a Markov chain, from state 0 on.

    Stationary distribution and fundamental matrix Z = (I - P + 1π)^-1: Kemeny & Snell, Finite Markov Chains (1960);
    the variance of the mean of n packets is m(1 - m)/n times 1 + 2 Σ_{k≥1} cov(0, k) / (m(1 - m)).
    """
    size = len(transitions)
    lazy = (transitions + np.eye(size)) / 2  # the same stationary distribution, but never periodic
    for _ in range(60):  # 2^60 steps
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    stationary = lazy[0]
    mean = float(stationary @ chances)
    if not 0 < mean < 1:
        return Share(mean)
    fundamental = np.linalg.inv(np.eye(size) - transitions + np.tile(stationary, (size, 1)))
    covariances = float((stationary * chances) @ (fundamental - np.eye(size)) @ chances)
    return Share(mean, max(1.0, 1 + 2 * covariances / (mean * (1 - mean))))


def _correlated(chance: int, correlation: int) -> Share:
    """netem's "random with correlation": x' = (1 - c)·u + c·x with u uniform, and an event where x' ≤ chance.

    x is not uniform (its spread is smaller), so events are not as many as asked: 1 % with 25 % gives 0.06 %.
    """
    p, c = _of(chance), _of(correlation)
    if not chance or not correlation:
        return Share(p)
    if c == 1:
        return Share(p, float("inf"))  # x never moves: all or nothing
    edges = np.linspace(0, 1, _STEPS + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    reach = np.clip((edges[None, :] - c * middles[:, None]) / (1 - c), 0, 1)
    event = np.clip((p - c * middles) / (1 - c), 0, 1)  # of the next packet, given this one's x
    return markov(np.diff(reach, axis=1), event)


def _four_states(state: dict[str, int]) -> Share:
    """The GI model: Salsano, Ludovici, Ordine & Giannuzzi, Definition of a general and intuitive loss model for packet

    networks and its implementation in the Netem module in the Linux kernel (2012). States 1 to 4; 3 and 4 lose.
    """
    p13, p31, p32, p23, p14 = (_of(state[name]) for name in ("p13", "p31", "p32", "p23", "p14"))
    p13, p31 = min(p13, 1 - p14), min(p31, 1 - p32)
    rows = [[1 - p13 - p14, 0, p13, p14], [0, 1 - p23, p23, 0], [p31, p32, 1 - p31 - p32, 0], [1, 0, 0, 0]]
    return markov(np.array(rows, dtype=float), np.array([0.0, 0, 1, 1]))


def _gilbert_elliott(model: dict[str, int]) -> Share:
    """Gilbert (1960) and Elliott (1963): a good and a bad state, each with its own loss."""
    p, r = _of(model["p"]), _of(model["r"])
    losses = np.array([_of(model["1-k"]), _of(model["1-h"])])
    return markov(np.array([[1 - p, p], [r, 1 - r]]), losses)


def loss(netem: Netem) -> Share:
    """Packets that netem's loss model hits."""
    if netem.loss_state:
        return _four_states(netem.loss_state)
    if netem.loss_gemodel:
        return _gilbert_elliott(netem.loss_gemodel)
    return _correlated(netem.loss, netem.loss_correlation)


def duplicate(netem: Netem) -> Share:
    """Packets that netem doubles; one that the loss model hits as well stays single."""
    return _correlated(netem.duplicate, netem.duplicate_correlation)


def corrupt(netem: Netem) -> Share:
    """Packets that leave with one bit flipped."""
    return _correlated(netem.corrupt, netem.corrupt_correlation)


def reorder(netem: Netem) -> Share:
    """Packets that are sent at once: after gap - 1 delayed ones, each with the chance asked for until one is."""
    if not netem.reorder:
        return NONE
    chance = _correlated(netem.reorder, netem.reorder_correlation)
    return Share(1 / (max(netem.gap, 1) - 1 + 1 / chance.mean), chance.inflation)


def _table(name: str) -> Floats:
    """One of tc's distribution tables, in standard deviations."""
    places = [Path(os.environ["TC_LIB_DIR"])] if "TC_LIB_DIR" in os.environ else []
    places += [Path("/usr/lib/tc"), Path("/usr/share/tc"), *Path("/usr/lib").glob("*/tc")]
    for place in places:
        if (file := place / f"{name}.dist").exists():
            lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
            return np.array(" ".join(lines).split(), dtype=float) / _DIST_SCALE
    raise SetupError(f"{name}.dist: none of tc's distribution tables is in {', '.join(map(str, places))}")


def delays(netem: Netem) -> Floats:
    """Delay in ns without queue and serialisation: every value that is drawn equally often. No packet leaves early."""
    if not netem.jitter:
        return np.array([float(netem.delay)])
    uniform = netem.distribution == "uniform"
    deviations = np.linspace(-1, 1, 4001) if uniform else _table(netem.distribution)
    return np.maximum(0, netem.delay + netem.jitter * deviations)
