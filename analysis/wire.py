"""What the captures say of a run's series: overhead by kind and by layer, and where the time of the messages went."""

from collections import Counter
from functools import reduce
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis import style
from analysis.pcap.delays import STAGES
from analysis.pcap.overhead import LAYERS
from analysis.run import Run, Series
from clients.packets import Kind

_EXPLAINED_MS = 1.0
"""A client's own processing: what application and wire may differ by before the report says why."""

_COLOURS = ("#8C8C8C", "#56B4E9", "#E69F00", "#0072B2", "#B8D8EC", "#D55E00", "#CC79A7", "#009E73", "#4D4D4D")
"""One for each stage, of Okabe and Ito (2008) with a tint and two greys; neighbours differ in lightness, too."""

_LEAST = 0.005
"""Share of a delay below which a stage is left out of what is told."""


def _analysed(series: Series) -> list[dict[str, Any]]:
    return [cell.packets for cell in series.cells if "kinds" in cell.packets]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if part and whole else "–"


def _total(found: list[dict[str, Any]], *keys: str) -> int:
    return sum(reduce(lambda inner, key: inner[key], keys, one) for one in found)  # type: ignore[misc]


def stages_ms(series: Series) -> dict[str, float]:
    """Mean ms of each stage, and of `application` and `wire`, over all messages whose way is known; empty if none is."""
    found = [one["delay"] for one in _analysed(series) if one["delay"]["messages"]]
    if not found:
        return {}
    weights = [one["messages"] for one in found]
    means = {stage: np.average([one["stages_ms"][stage] for one in found], weights=weights) for stage in STAGES}
    both = {name: np.average([one[f"{name}_ms"] for one in found], weights=weights) for name in ("application", "wire")}
    return {name: float(value) for name, value in (means | both).items()}


def _overhead(series: Series, kinds: list[str]) -> dict[str, Any]:
    found = _analysed(series)
    wire = _total(found, "wire_bytes")
    by_kind: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for one in found:
        by_kind.update({kind: each["bytes"] for kind, each in one["kinds"].items()})
        layers.update(one["layers"])
    payload = sum(cell.packets["delay"]["delivered"] * cell.plan["size"] for cell in series.cells if cell.packets)
    goodput = [one["goodput_bit_s"] for one in found]
    return {
        "label": series.label,
        "packets": f"{_total(found, 'packets'):,}",
        "bytes": f"{wire:,}",
        "ratio": f"{_total(found, 'wire_bytes_from_go') / payload:.2f}" if payload else "–",
        "goodput": f"{sum(goodput) / len(goodput):,.0f}" if goodput else "–",
        "kinds": [_share(by_kind[kind], wire) for kind in kinds],
        "layers": [_share(layers[layer], wire) for layer in LAYERS],
        "tcp_again": f"{_total(found, 'tcp', 'retransmissions'):,}",
        "out_of_order": f"{_total(found, 'tcp', 'out_of_order'):,}",
        "duplicates": f"{_total(found, 'duplicates'):,}",
        "repairs": f"{sum(one['kinds'].get(Kind.REPAIR, {}).get('packets', 0) for one in found):,}",
    }


def _difference(label: str, means: dict[str, float]) -> str:
    """Why the application saw a message later than the wire did, in a sentence; "" if it hardly did."""
    gap = means["application"] - means["wire"]
    if gap <= _EXPLAINED_MS:
        return ""
    parts = {stage: means[stage] for stage in ("host", "delivery")}
    parts["handshake"] = gap - sum(parts.values())
    told = ", ".join(f"{stage} {ms:,.1f} ms" for stage, ms in parts.items() if ms >= 0.05)
    return f"{label}: the application's delay is {gap:,.1f} ms longer than the wire's ({told})."


def _time(series: Series) -> dict[str, Any]:
    means = stages_ms(series)
    found = _analysed(series)
    return {
        "label": series.label,
        "known": f"{_total(found, 'delay', 'messages'):,} of {_total(found, 'delay', 'delivered'):,}",
        "application": f"{means['application']:,.1f}" if means else "–",
        "wire": f"{means['wire']:,.1f}" if means else "–",
        "stages": [f"{means[stage]:,.1f}" if means and means[stage] >= 0.05 else "–" for stage in STAGES],
        "difference": _difference(series.label, means) if means else "",
    }


def tables(run: Run) -> dict[str, Any]:
    """What wire.html.j2 shows: for each payload overhead and time of its series, and captures that were not analysed."""
    payloads = []
    for payload in run.payloads:
        chosen = [series for series in run.of_payload(payload) if _analysed(series)]
        present = {kind for series in chosen for one in _analysed(series) for kind in one["kinds"]}
        kinds = [str(kind) for kind in Kind if kind in present]
        if chosen:
            overhead = [_overhead(series, kinds) for series in chosen]
            payloads.append(
                {"name": payload, "kinds": kinds, "overhead": overhead, "time": [_time(series) for series in chosen]}
            )
    problems = {cell.name: cell.packets["problem"] for cell in run.cells if "problem" in cell.packets}
    return {"payloads": payloads, "layers": LAYERS, "stages": STAGES, "problems": problems}


def plot(all_series: list[Series], _: dict[str, str]) -> tuple[Figure, str]:
    """Where the time went: a bar for each series, its stages in their order."""
    figure = Figure(figsize=(style.WIDTH, 1.5 + 0.33 * len(all_series)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(all_series)), [series.label for series in all_series])
    axes.set_ylim(len(all_series) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    told, labelled = [], set()
    for row, series in enumerate(all_series):
        means, left = stages_ms(series), 0.0
        if not means:
            axes.annotate("not known", (0, row), (4, 0), textcoords="offset points", va="center", style="italic")
            continue
        shown = {stage: means[stage] for stage in STAGES if means[stage] >= _LEAST * means["application"]}
        for stage, ms in shown.items():
            colour = _COLOURS[list(STAGES).index(stage)]
            label = None if stage in labelled else stage
            axes.barh(row, ms, 0.66, left=left, color=colour, edgecolor=style.PAPER, linewidth=0.8, label=label)
            labelled.add(stage)
            left += ms
        told.append(f"{series.label}: " + ", ".join(f"{stage} {ms:,.1f} ms" for stage, ms in shown.items()))
    axes.set_xlim(left=0)
    axes.set_xlabel("mean delay of delivered messages (ms)")
    if labelled:
        figure.legend(loc="outside lower center", ncols=3, handlelength=1.2, columnspacing=1.2)
    return figure, f"Stacked bars of the stages of the mean delay. {'; '.join(told) or 'None is known'}."
