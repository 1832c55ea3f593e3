"""Plots of a run's series: each gives a figure and the words for a reader who cannot see it."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis import published, style
from analysis.run import Series
from analysis.statistics import loss_interval, repeats_interval

_LOG_FROM = 30
"""Delays that differ by more than this factor are drawn on a logarithmic axis."""


def show_ms(value: float | None) -> str:
    """`557.6 ms`, `43.6 s`; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value / 1000:.1f} s" if value >= 10_000 else f"{value:,.1f} ms"


def _seconds_or_ms(all_series: list[Series]) -> tuple[float, str]:
    top = max((series.delays.max() for series in all_series if len(series.delays)), default=0)
    return (1000.0, "s") if top >= 10_000 else (1.0, "ms")


def _lies_wide(all_series: list[Series]) -> bool:
    low = min((series.delays.min() for series in all_series if len(series.delays)), default=1)
    high = max((series.delays.max() for series in all_series if len(series.delays)), default=1)
    return bool(low > 0 and high / low > _LOG_FROM)


def _logarithmic(axes: Any, which: str) -> None:
    """Powers of ten written out: 0.1, 1, 10."""
    axes.set(**{f"{which}scale": "log"})
    getattr(axes, f"{which}axis").set_major_formatter("{x:g}")


def _rows(all_series: list[Series], extra: float = 0.9) -> tuple[Figure, Any]:
    """A figure with a row for each series, the first on top."""
    figure = Figure(figsize=(style.WIDTH, extra + 0.33 * len(all_series)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(all_series)), [series.label for series in all_series])
    axes.set_ylim(len(all_series) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _absent(series: Series) -> str:
    return "nothing arrived" if series.sent else series.status


def _note(axes: Any, row: int, text: str) -> None:
    axes.annotate(text, (0, row), (4, 0), ("axes fraction", "data"), "offset points", va="center", style="italic")


def average_delay(all_series: list[Series], colours: dict[str, str]) -> tuple[Figure, str]:
    """Mean delay; with repeats a bar's line is the bootstrap interval of their means."""
    figure, axes = _rows(all_series)
    scale, unit = _seconds_or_ms(all_series)
    means = [series.mean_ms for series in all_series]
    furthest = 0.0
    for row, (series, mean) in enumerate(zip(all_series, means, strict=True)):
        if mean is None:
            _note(axes, row, _absent(series))
            continue
        interval = repeats_interval(series.of_repeats("delay_mean_ms"))
        axes.barh(row, mean / scale, 0.66, color=style.shade(colours[series.protocol], series.qos))
        end = mean / scale
        if interval is not None and interval.high > interval.low:
            axes.plot([interval.low / scale, interval.high / scale], [row, row], color=style.INK, linewidth=1.2)
            end = max(end, interval.high / scale)
        furthest = max(furthest, end)
        axes.annotate(show_ms(mean), (end, row), (4, 0), textcoords="offset points", va="center")
    axes.set_xlim(0, furthest * 1.22 or 1)
    axes.set_xlabel(f"mean delay of delivered messages ({unit})")
    told = "; ".join(
        f"{series.label} {show_ms(mean) if mean is not None else _absent(series)}"
        for series, mean in zip(all_series, means, strict=True)
    )
    return figure, f"Bars of the mean delay: {told}."


def ecdf(all_series: list[Series], colours: dict[str, str]) -> tuple[Figure, str]:
    """Share of all sent messages that had arrived within a delay: a curve ends at the share that was delivered."""
    figure = Figure(figsize=(style.WIDTH, 2.8 + 0.14 * len(all_series)), layout="constrained")
    axes = figure.subplots()
    scale, unit = _seconds_or_ms(all_series)
    for series in all_series:
        if not len(series.delays):
            continue
        delays = np.sort(series.delays) / scale
        share = 100 * np.arange(len(delays) + 1) / series.sent
        axes.step(
            np.append(delays, delays[-1]),
            share,
            where="post",
            label=series.label,
            color=style.shade(colours[series.protocol], series.qos),
            linestyle=style.dashes(series.qos),
            linewidth=1.9,
        )
    if _lies_wide(all_series):
        _logarithmic(axes, "x")
    axes.set_ylim(0, 103)
    axes.set_xlabel(f"delay ({unit}{', logarithmic' if _lies_wide(all_series) else ''})")
    axes.set_ylabel("messages that had arrived (%)")
    _legend(figure, axes)
    if not any(len(series.delays) for series in all_series):
        axes.text(0.5, 0.5, "nothing arrived", transform=axes.transAxes, ha="center", style="italic")
    told = "; ".join(
        f"{series.label}: half of those that arrived within {show_ms(float(np.median(series.delays)))}, "
        f"{100 * len(series.delays) / series.sent:.1f} % arrived at all"
        for series in all_series
        if len(series.delays)
    )
    return figure, f"Curves of the share of messages that arrived within a delay. {told or 'Nothing arrived'}."


def box(all_series: list[Series], colours: dict[str, str]) -> tuple[Figure, str]:
    """Quartiles as a box, whiskers from the 5th to the 95th percentile, a cross at the greatest."""
    figure, axes = _rows(all_series)
    scale, unit = _seconds_or_ms(all_series)
    told = []
    for row, series in enumerate(all_series):
        if not len(series.delays):
            _note(axes, row, _absent(series))
            continue
        colour = style.shade(colours[series.protocol], series.qos)
        axes.boxplot(
            series.delays / scale,
            positions=[row],
            orientation="horizontal",
            widths=0.56,
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": style.INK},
            medianprops={"color": style.INK, "linewidth": 2},
            whiskerprops={"color": style.INK},
            capprops={"color": style.INK},
        )
        axes.plot(series.delays.max() / scale, row, "x", color=style.INK, markersize=5)
        low, middle, high = np.percentile(series.delays, [25, 50, 75])
        told.append(f"{series.label}: median {show_ms(middle)}, quartiles {show_ms(low)} and {show_ms(high)}")
    if _lies_wide(all_series):
        _logarithmic(axes, "x")
    axes.set_xlabel(f"delay ({unit}{', logarithmic' if _lies_wide(all_series) else ''})")
    return figure, f"Box plots of the delays. {'; '.join(told) or 'Nothing arrived'}."


def over_time(all_series: list[Series], colours: dict[str, str]) -> tuple[Figure, str]:
    """Each message's delay over the time it was due, a panel for each protocol; ticks on top are lost messages."""
    protocols = list(dict.fromkeys(series.protocol for series in all_series))
    figure = Figure(figsize=(style.WIDTH, 0.7 + 1.75 * len(protocols)), layout="constrained")
    panels = figure.subplots(len(protocols), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    scale, unit = _seconds_or_ms(all_series)
    wide = _lies_wide(all_series)
    for axes, protocol in zip(panels, protocols, strict=True):
        for series in (each for each in all_series if each.protocol == protocol):
            colour = style.shade(colours[protocol], series.qos)
            arrived, lost = series.messages.dropna(subset="delay_ms"), series.messages["delay_ms"].isna()
            axes.plot(
                arrived["at_s"],
                arrived["delay_ms"] / scale,
                style.marker(series.qos),
                color=colour,
                markersize=3,
                label="" if series.qos is None else f"QoS {series.qos}",
                rasterized=True,  # thousands of points would make a heavy SVG
            )
            at = series.messages["at_s"][lost]
            axes.plot(at, np.full(len(at), 0.97), "|", color=colour, transform=axes.get_xaxis_transform())
        if wide:
            _logarithmic(axes, "y")
        else:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(f"delay ({unit})")
        axes.set_title(protocol, loc="left", fontsize="medium")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=4, columnspacing=1, handletextpad=0.2)
    panels[-1].set_xlabel("time the message was due (s since the first)")
    return figure, "Points of each message's delay over the time it was due. " + _growth(all_series)


def _growth(all_series: list[Series]) -> str:
    if not any(len(series.delays) for series in all_series):
        return "Nothing arrived."
    growing = [series.label for series in all_series if series.grows]
    return f"Delays grow during the run for {', '.join(growing)}." if growing else "No delays grow during the run."


def loss(all_series: list[Series], colours: dict[str, str]) -> tuple[Figure, str]:
    """Loss with its Wilson interval as a bar, the published loss as a diamond."""
    figure, axes = _rows(all_series, 1.2)
    told, any_known = [], False
    for row, series in enumerate(all_series):
        known = published.of_series(series)
        interval = loss_interval(series.lost, series.sent)
        if series.loss_pct is None or interval is None:
            _note(axes, row, series.status)
        else:
            axes.barh(row, series.loss_pct, 0.6, color=style.shade(colours[series.protocol], series.qos))
            axes.plot([interval.low, interval.high], [row, row], color=style.INK, linewidth=1.2)
            told.append(
                f"{series.label} {series.loss_pct:.2f} %" + (f", published {known:g} %" if known is not None else "")
            )
        if known is not None:
            label = None if any_known else "published"
            any_known = True
            axes.plot(
                known, row, "D", markerfacecolor=style.PAPER, markeredgecolor=style.INK, label=label, clip_on=False
            )
    axes.set_xlim(0, 102)
    axes.set_xlabel("messages lost (%)")
    if any_known:
        _legend(figure, axes)
    return figure, f"Bars of the loss: {'; '.join(told) or 'nothing was measured'}."


def _legend(figure: Figure, axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, handlelength=3.2, columnspacing=1.4)
