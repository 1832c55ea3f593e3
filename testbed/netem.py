"""One impairment in netem's own terms (tc-netem(8)), the `tc` words for it, and the check of what the kernel took.

Pure functions: nothing here touches a kernel.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from testbed.units import PERCENT_SCALE, show_duration, show_percent, show_rate

LOSS_STATE = ("p13", "p31", "p32", "p23", "p14")
LOSS_GEMODEL = ("p", "r", "1-h", "1-k")
DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal", "experimental")


@dataclass(frozen=True)
class Netem:
    """What one netem qdisc does. Times in ns, rate in bit/s, percentages in 10^-6 per cent, limit in packets."""

    limit: int
    delay: int = 0
    jitter: int = 0
    delay_correlation: int = 0
    distribution: str = "uniform"
    loss: int = 0
    loss_correlation: int = 0
    loss_state: dict[str, int] = field(default_factory=dict)
    loss_gemodel: dict[str, int] = field(default_factory=dict)
    reorder: int = 0
    reorder_correlation: int = 0
    gap: int = 0
    duplicate: int = 0
    duplicate_correlation: int = 0
    corrupt: int = 0
    corrupt_correlation: int = 0
    rate: int = 0

    @property
    def shapes(self) -> bool:
        """Whether this changes a packet's fate at all; the unshaped baseline does not."""
        return any(getattr(self, f.name) for f in fields(self) if f.name not in ("limit", "distribution"))

    @property
    def loses(self) -> bool:
        """Whether packets are lost, or spoiled, by chance."""
        return bool(self.loss or self.loss_state or self.loss_gemodel or self.corrupt)


def _chance(word: str, share: int, correlation: int) -> list[str]:
    if not share:
        return []
    return [word, show_percent(share)] + ([show_percent(correlation)] if correlation else [])


def _model(word: str, names: tuple[str, ...], values: dict[str, int]) -> list[str]:
    return ["loss", word, *(show_percent(values.get(name, 0)) for name in names)] if values else []


def arguments(netem: Netem, seed: int | None) -> list[str]:
    """The words after `tc qdisc add dev … root`. `seed` is None where tc or the kernel cannot take one."""
    words = ["netem", "limit", str(netem.limit)]
    # tc forgets the correlation of `duplicate` unless another one is given (iproute2 6.15): delay's, here, of 0 %.
    if netem.delay or netem.jitter or netem.duplicate_correlation:
        words += ["delay", f"{netem.delay}ns"]
        if netem.jitter or netem.duplicate_correlation:
            words += [f"{netem.jitter}ns"]
            if netem.delay_correlation or netem.duplicate_correlation:
                words += [show_percent(netem.delay_correlation)]
            words += ["distribution", netem.distribution] if netem.distribution != "uniform" else []
    words += ["loss", "random", *_chance("", netem.loss, netem.loss_correlation)[1:]] if netem.loss else []
    words += _model("state", LOSS_STATE, netem.loss_state)
    words += _model("gemodel", LOSS_GEMODEL, netem.loss_gemodel)
    words += _chance("reorder", netem.reorder, netem.reorder_correlation)
    words += ["gap", str(netem.gap)] if netem.gap else []
    words += _chance("duplicate", netem.duplicate, netem.duplicate_correlation)
    words += _chance("corrupt", netem.corrupt, netem.corrupt_correlation)
    words += ["rate", f"{netem.rate}bit"] if netem.rate else []
    words += ["seed", str(seed)] if seed is not None else []
    return words


def _share(parts: int) -> float:
    return parts / (100 * PERCENT_SCALE)


def _wanted(netem: Netem, seed: int | None) -> dict[str, float]:
    """What `tc -j qdisc show` prints for this netem, flattened: seconds, bytes a second, shares of 1."""
    wanted: dict[str, float] = {"limit": netem.limit}
    if netem.delay or netem.jitter:
        wanted |= {"delay.delay": netem.delay / 1e9, "delay.jitter": netem.jitter / 1e9}
        wanted |= {"delay.correlation": _share(netem.delay_correlation)}
    if netem.loss:
        wanted |= {"loss-random.loss": _share(netem.loss), "loss-random.correlation": _share(netem.loss_correlation)}
    for prefix, values in (("loss-state", netem.loss_state), ("loss-gemodel", netem.loss_gemodel)):
        wanted |= {f"{prefix}.{name}": _share(value) for name, value in values.items()}
    for name in ("reorder", "duplicate", "corrupt"):
        if getattr(netem, name):
            wanted[f"{name}.{name}"] = _share(getattr(netem, name))
            wanted[f"{name}.correlation"] = _share(getattr(netem, f"{name}_correlation"))
    if netem.rate:
        wanted["rate.rate"] = netem.rate // 8
    if netem.gap:
        wanted["gap"] = netem.gap
    if seed is not None:
        wanted["seed"] = seed
    return wanted


def _flatten(options: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        flat |= _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def differences(netem: Netem, seed: int | None, options: dict[str, Any]) -> list[str]:
    """Where the kernel's netem (`options` of `tc -j qdisc show`) is not the wanted one, a line each; empty if equal.

    The kernel keeps shares as 32-bit fractions, so they are compared within 1e-6; all else must be equal.
    """
    seen = _flatten(options)
    lines = []
    for key, value in _wanted(netem, seed).items():
        got = seen.get(key)
        if got is None or abs(float(got) - value) > (1e-6 if isinstance(value, float) else 0):
            lines.append(f"{key}: wanted {value}, the kernel has {got}")
    present = {key.split(".")[0] for key in seen}
    wanted_groups = {key.split(".")[0] for key in _wanted(netem, seed)}
    for extra in sorted(present & {"delay", "loss-random", "loss-state", "loss-gemodel", "duplicate", "corrupt"}):
        if extra not in wanted_groups:
            lines.append(f"{extra}: not wanted, the kernel has {options[extra]}")
    return lines


def describe(netem: Netem) -> str:
    """One line for people: the `tc` words without the limit, or `unshaped`."""
    if not netem.shapes:
        return "unshaped"
    words = " ".join(arguments(netem, None)[3:])
    words = words.replace(f"delay {netem.delay}ns", f"delay {show_duration(netem.delay)}")
    words = words.replace(f" {netem.jitter}ns", f" {show_duration(netem.jitter)}")
    return words.replace(f"{netem.rate}bit", show_rate(netem.rate))
