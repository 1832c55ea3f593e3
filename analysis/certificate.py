"""The link certificate: what a probe saw of the channel, held against the profile.

Shares (loss, duplicates, …) have the interval of Clopper and Pearson (Biometrika 26, 1934), with as many packets as would
be independent. Intervals are shown at 99 %; a check fails at the level at which a sound channel fails one run in a
thousand, whatever the number of checks (Bonferroni).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy  # its parts are loaded when first used

from analysis import netem_model
from analysis.netem_model import Share
from analysis.run import Floats
from testbed.cell import DIRECTIONS, Channel
from testbed.channel import INTERFACE, MIRROR, ifb_of
from testbed.netem import Netem
from testbed.pcapng import read_pcap
from testbed.probe import HEADERS, label, serialisation

CONFIDENCE = 0.99
FALSE_ALARMS = 0.001
"""Share of runs whose certificate fails though the channel is sound."""

_Figures = tuple[float | None, float | None, float | None, float | None]

PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not checked"


@dataclass(frozen=True)
class Tolerance:
    """How far a delay (ns) and a rate (share) may be off. `typical`: the median delay, not the worst, is held to it."""

    delay: int
    rate: float
    typical: bool


VIRTUAL, REAL = Tolerance(50_000, 0.01, False), Tolerance(1_000_000, 0.05, True)


@dataclass(frozen=True)
class Check:
    """One figure of one direction; `low` and `high` are its 99 % interval, or, for delays that do not vary, all of them."""

    direction: str
    what: str
    unit: str
    expected: float | None
    measured: float | None
    low: float | None
    high: float | None
    allowed: str
    passed: bool | None
    note: str = ""


@dataclass(frozen=True)
class Seen:
    """A direction's datagrams: `sent` (phase, number, bytes of the frame, sent_ns) and `arrived` (the same, received_ns,

    intact), a row for each copy.
    """

    direction: str
    sent: pd.DataFrame
    arrived: pd.DataFrame

    def single(self, phase: str) -> pd.DataFrame:
        """The first copies of a phase in the order of arrival."""
        return self.arrived[self.arrived.phase == phase].drop_duplicates("number")


def _points(channel: Channel, direction: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Side and interface of the taps before and after the channel."""
    if direction == "uplink":
        return ("client-side", INTERFACE), ("server-side", str(ifb_of(channel, "uplink")))
    return ("server-side", MIRROR), ("client-side", INTERFACE)


def observe(channel: Channel, raws: dict[tuple[str, str], Path]) -> list[Seen]:
    """What the raw captures of a probe, by side and interface, show of each shaped direction."""
    found = []
    for direction in DIRECTIONS[channel.direction]:
        before, after = (raws[point] for point in _points(channel, direction))
        frames: dict[tuple[str, int], tuple[int, bytes]] = {}
        for packet in read_pcap(before, 0):
            if (name := label(packet.data)) and name.direction == direction:
                frames[name.phase, name.number] = (packet.time, packet.data)
        sent = [(*key, len(data), time) for key, (time, data) in frames.items()]
        arrived = []
        for packet in read_pcap(after, 0):
            name = label(packet.data)
            if name and name.direction == direction and (origin := frames.get((name.phase, name.number))):
                row = (name.phase, name.number, packet.length, origin[0], packet.time, packet.data == origin[1])
                arrived.append(row)
        columns = ["phase", "number", "bytes", "sent_ns"]
        seen = pd.DataFrame(arrived, columns=[*columns, "received_ns", "intact"])
        found.append(Seen(direction, pd.DataFrame(sent, columns=columns), seen))
    return found


def share_interval(hits: int, count: int, inflation: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of 1; `inflation` packets tell as much as one independent packet would."""
    k, n, tail = hits / inflation, count / inflation, (1 - confidence) / 2
    low = float(scipy.stats.beta.ppf(tail, k, n - k + 1)) if hits else 0.0
    high = float(scipy.stats.beta.ppf(1 - tail, k + 1, n - k)) if hits < count else 1.0
    return low, high


def _ms(*values: float) -> _Figures:
    expected, measured, low, high = (float(value) / 1e6 for value in values)
    return expected, measured, low, high


class _Judge:
    """The checks of one direction. `level` is the confidence at which one fails."""

    def __init__(self, netem: Netem, seen: Seen, tolerance: Tolerance, level: float) -> None:
        self.netem, self.seen, self.tolerance, self.level = netem, seen, tolerance, level

    def _check(self, what: str, unit: str, figures: _Figures, allowed: str, passed: bool | None, note: str) -> Check:
        return Check(self.seen.direction, what, unit, *figures, allowed, passed, note)

    def _not(self, what: str, unit: str, why: str) -> Check:
        return self._check(what, unit, (None, None, None, None), "", None, why)

    def _share(self, what: str, hits: int, count: int, share: Share, more: str = "") -> Check:
        if not count or not np.isfinite(share.inflation):
            return self._not(what, "%", "nothing arrived" if not count else "one draw decides over all packets")
        low, high = share_interval(hits, count, share.inflation, CONFIDENCE)
        strict = share_interval(hits, count, share.inflation, self.level)
        certain = share.mean in (0, 1)
        passed = hits == share.mean * count if certain else strict[0] <= share.mean <= strict[1]
        allowed = "exactly" if certain else f"within its {100 * self.level:.4g} % interval"
        figures = (100 * share.mean, 100 * hits / count, 100 * low, 100 * high)
        return self._check(what, "%", figures, allowed, bool(passed), f"{hits:,} of {count:,}{more}")

    def _late(self, arrived: pd.DataFrame) -> pd.DataFrame:
        """Without those that reordering sent at once."""
        waited = arrived.received_ns - arrived.sent_ns
        return arrived[waited >= self.netem.delay / 2] if self.netem.reorder else arrived

    def _alone(self) -> Floats:
        """Delays in ns of datagrams that met no other, less their serialisation."""
        arrived = self._late(self.seen.single("delay"))
        own = arrived.bytes.map(lambda size: serialisation(self.netem, size - HEADERS))
        return (arrived.received_ns - arrived.sent_ns - own).to_numpy(dtype=float)

    def delay(self) -> Iterator[Check]:
        """Delay; with jitter also its standard deviation and its distribution."""
        found, expected = self._alone(), netem_model.delays(self.netem)
        if len(found) < 3:
            yield self._not("delay", "ms", "too few datagrams arrived")
            return
        near, note = self.tolerance.delay, f"beside 8·bytes/rate, {len(found)} datagrams"
        if not self.netem.jitter:
            off = np.abs(found - self.netem.delay)
            passed = bool((np.median(off) if self.tolerance.typical else off.max()) <= near)
            allowed = f"{'median' if self.tolerance.typical else 'every one'} within {near / 1000:g} µs"
            figures = _ms(self.netem.delay, found.mean(), found.min(), found.max())
            yield self._check("delay", "ms", figures, allowed, passed, note)
            return
        for what, one, error in (
            ("delay", np.mean, found.std(ddof=1) / np.sqrt(len(found))),
            ("jitter (sd)", np.std, _error_of_sd(found)),
        ):
            wanted, measured = float(one(expected)), float(one(found))
            half, strict = (error * scipy.stats.norm.ppf((1 + level) / 2) for level in (CONFIDENCE, self.level))
            figures = _ms(wanted, measured, measured - half, measured + half)
            allowed = f"within its {100 * self.level:.4g} % interval and {near / 1000:g} µs"
            yield self._check(what, "ms", figures, allowed, bool(abs(measured - wanted) <= strict + near), note)
        p = float(scipy.stats.ks_2samp(found, expected, method="asymp").pvalue)
        allowed = f"Kolmogorov-Smirnov p above {1 - self.level:.2g}"
        yield self._check("distribution", "p", (None, p, None, None), allowed, p > 1 - self.level, note)
        if self.netem.delay_correlation:
            yield self._correlation(found)

    def _correlation(self, found: Floats) -> Check:
        """netem takes the remainder of a correlated number, which leaves next to nothing of the correlation."""
        wanted, measured = self.netem.delay_correlation / 10**6, 100 * float(np.corrcoef(found[:-1], found[1:])[0, 1])
        note = "of consecutive delays; sch_netem.c draws rnd % (2·jitter), which forgets what came before"
        return self._check("delay correlation", "%", (wanted, measured, None, None), "", None, note)

    def rate(self) -> Check:
        """Bytes over the time between first and last arrival of a burst, once jitter's latest start is over."""
        if not self.netem.rate:
            return self._not("rate", "kbit/s", "the profile has no rate")
        arrived = self._late(self.seen.arrived[self.seen.arrived.phase == "rate"])
        arrived = arrived[arrived.received_ns >= arrived.sent_ns.min() + self.netem.delay + 4 * self.netem.jitter]
        times = np.sort(arrived.received_ns.to_numpy(dtype=float))
        if len(times) < 3:
            return self._not("rate", "kbit/s", "too few datagrams of the burst arrived")
        gaps = np.diff(times)
        half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(gaps) - 1) * scipy.stats.sem(gaps))
        bits = 8e6 * arrived.bytes.iloc[0]  # for kbit/s from ns
        wanted, measured = self.netem.rate / 1000, bits / gaps.mean()
        low, high = bits / (gaps.mean() + half), bits / max(gaps.mean() - half, 1.0)
        passed, allowed = abs(measured / wanted - 1) <= self.tolerance.rate, f"within {100 * self.tolerance.rate:g} %"
        note = f"a burst of {len(times)} datagrams"
        return self._check("rate", "kbit/s", (wanted, measured, low, high), allowed, bool(passed), note)

    def shares(self) -> Iterator[Check]:
        """Loss, duplicates, corruption, reordering: each packet is hit or not."""
        sent, arrived, netem = len(self.seen.sent), self.seen.arrived, self.netem
        copies = arrived.groupby(["phase", "number"]).size()
        lose, double = netem_model.loss(netem), netem_model.duplicate(netem)
        asked = (
            f"; {netem.loss / 10**6:g} % asked for, which netem's correlation changes" if netem.loss_correlation else ""
        )
        expected = Share(lose.mean * (1 - double.mean), lose.inflation)  # a doubled packet loses its first copy only
        yield self._share("loss", sent - len(copies), sent, expected, asked)
        twice = double.mean * (1 - lose.mean) ** 2  # the second copy meets the loss model as well
        inflation = max(double.inflation, lose.inflation) if twice else 1.0
        yield self._share("duplicates", int((copies > 1).sum()), sent, Share(twice, inflation))
        yield self._share(
            "corruption", int((~arrived.intact.astype(bool)).sum()), len(arrived), netem_model.corrupt(netem)
        )
        yield self._reordering()

    def _reordering(self) -> Check:
        arrived = self.seen.single("loss")
        if self.netem.reorder and self.netem.delay <= 8 * self.netem.jitter:
            return self._not("reordering", "%", "jitter cannot be told from reordering")
        if self.netem.reorder:
            waited = arrived.received_ns - arrived.sent_ns
            early = int((waited < self.netem.delay / 2).sum())
            return self._share("reordering", early, len(arrived), netem_model.reorder(self.netem))
        if self.netem.jitter:
            return self._not("reordering", "%", "none is asked for, but jitter may reorder")
        late = int((arrived.number < arrived.number.cummax()).sum())
        return self._share("reordering", late, len(arrived), netem_model.NONE)


def chance_checks(channel: Channel) -> int:
    """How many checks of one probe can fail by chance alone."""
    netem = channel.netem
    random = [netem_model.loss(netem).mean not in (0, 1), netem.duplicate, netem.corrupt, netem.reorder]
    return (sum(map(bool, random)) + 3 * bool(netem.jitter)) * len(DIRECTIONS[channel.direction])


def judge(channel: Channel, seen: list[Seen], real: bool, looks: int) -> list[Check]:
    """All checks of one probe; `looks` is the number of probes of the run."""
    level = 1 - FALSE_ALARMS / max(1, looks * chance_checks(channel))
    checks: list[Check] = []
    for one in seen:
        of = _Judge(channel.netem, one, REAL if real else VIRTUAL, level)
        checks += [*of.delay(), of.rate(), *of.shares()]
    return checks


def verdict(checks: list[Check]) -> str:
    """`failed` if one check did, `passed` if the others did, `not checked` if there is none."""
    outcomes: set[bool | None] = {check.passed for check in checks}
    return FAILED if False in outcomes else PASSED if True in outcomes else NOT_CHECKED


def _error_of_sd(values: Floats) -> float:
    """Standard error of the standard deviation of values of any distribution (Rao, Linear Statistical Inference, 6h)."""
    centred = values - values.mean()
    fourth, variance = (centred**4).mean(), (centred**2).mean()
    return float(np.sqrt(max(fourth - variance**2, 0) / len(values)) / (2 * np.sqrt(variance)))
