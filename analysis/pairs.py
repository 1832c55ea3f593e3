"""Each publisher–subscriber pair of a series by itself: its map, and the pairs that fared worse than the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from scipy import stats

from analysis import style
from analysis.run import Floats, Series
from analysis.statistics import ALPHA

_SLOWER = 1.1
"""A pair is called slower from this many times its series' median delay on, however sure the difference is."""


@dataclass(frozen=True)
class Worse:
    """A pair of a series that lost more, or was slower, than the series' other pairs, and the figures that say so."""

    series: str
    payload: str
    publisher: str
    figures: str


def table(series: Series) -> pd.DataFrame:
    """A row for each pair, by publisher: `sent`, `lost`, `loss_pct`, and `median_ms` of what arrived (NaN if nothing)."""
    if series.messages.empty:
        return pd.DataFrame(columns=["sent", "lost", "median_ms", "loss_pct"], dtype=float)
    delays = series.messages.groupby("publisher")["delay_ms"]
    rows = pd.DataFrame({"sent": delays.size(), "lost": delays.size() - delays.count(), "median_ms": delays.median()})
    rows["loss_pct"] = 100 * rows["lost"] / rows["sent"]
    return rows


def _lost_more(series: Series, pair: "pd.Series[Any]") -> str:
    """In words, if Fisher's exact test says that the pair lost more than the others; else nothing."""
    lost, sent = series.lost - pair["lost"], series.sent - pair["sent"]
    if not sent or pair["lost"] * sent <= lost * pair["sent"]:
        return ""
    counts = [[pair["lost"], pair["sent"] - pair["lost"]], [lost, sent - lost]]
    if stats.fisher_exact(counts, alternative="greater").pvalue >= pair["alpha"]:
        return ""
    return f"lost {pair['loss_pct']:.1f} %, the others {100 * lost / sent:.1f} %"


def _slower(series: Series, pair: "pd.Series[Any]") -> str:
    """In words, if the pair's median delay stands out and Mann and Whitney's U test agrees; else nothing."""
    middle = float(np.median(series.delays)) if len(series.delays) else np.nan
    if not pair["median_ms"] > _SLOWER * middle:
        return ""
    own = series.messages["publisher"] == pair.name
    mine, others = (series.messages["delay_ms"][chosen].dropna() for chosen in (own, ~own))
    if not len(others) or stats.mannwhitneyu(mine, others, alternative="greater").pvalue >= pair["alpha"]:
        return ""
    return f"median {pair['median_ms']:,.1f} ms, of all {middle:,.1f} ms"


def worse(series: Series) -> list[Worse]:
    """Pairs that lost more than the others, or whose delays are greater and their median by a tenth at least.

    A p-value counts below ALPHA divided by the number of pairs (Bonferroni), so that pairs are seldom named by chance.
    """
    rows = table(series).assign(alpha=lambda table: ALPHA / max(1, len(table)))
    told = {
        str(name): [words for look in (_lost_more, _slower) if (words := look(series, pair))]
        for name, pair in rows.iterrows()
    }
    return [Worse(series.label, series.payload, name, "; ".join(words)) for name, words in told.items() if words]


def _map(axes: Any, values: Floats, limits: Normalize, colours: str, title: str) -> None:
    """A field for each series (row) and pair (column), and what the colours mean; grey where there is no value."""
    shown = axes.imshow(values, cmap=colours, norm=limits, aspect="auto", interpolation="nearest")
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_facecolor(style.LINE)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.02).outline.set_visible(False)


def _beside_the_middle(medians: Floats) -> Floats:
    """Each row divided by its own median; a row without values stays so."""
    middle = [np.median(known) if len(known := row[~np.isnan(row)]) else np.nan for row in medians]
    return np.asarray(medians / np.array(middle)[:, None])


def _about_one(values: Floats) -> Normalize:
    """As far above 1 as below it, and a tenth at least: small differences shall not look great."""
    furthest = np.abs(values[~np.isnan(values)] - 1).max(initial=0.1)
    return Normalize(1 - furthest, 1 + furthest)


def plot(all_series: list[Series], _colours: dict[str, str]) -> tuple[Figure, str]:
    """Maps of each pair's loss (left out if nothing was lost) and of its delay beside that of its series' middle pair."""
    tables = {series.label: rows for series in all_series if len(rows := table(series))}
    names = sorted({name for rows in tables.values() for name in rows.index})
    maps: list[tuple[Floats, Normalize, str, str]] = []
    if tables:
        loss, medians = (
            np.array([rows[column].reindex(names) for rows in tables.values()]) for column in ("loss_pct", "median_ms")
        )
        times = _beside_the_middle(medians)
        maps = (
            [(loss, Normalize(0, max(10, np.nanmax(loss))), style.SEQUENTIAL, "messages lost (%)")]
            if np.nansum(loss)
            else []
        )
        maps.append((times, _about_one(times), style.DIVERGING, "median delay, as times that of the middle pair"))
    figure = Figure(figsize=(style.WIDTH, 0.5 + max(1, len(maps)) * (0.5 + 0.2 * len(tables))), layout="constrained")
    for axes, one in zip(
        figure.subplots(len(maps), 1, sharex=True, squeeze=False)[:, 0] if maps else [], maps, strict=True
    ):
        _map(axes, *one)
        axes.set_yticks(range(len(tables)), list(tables))
        axes.set_xticks(
            range(len(names)), [name.rpartition("-")[2] if number % 3 == 0 else "" for number, name in enumerate(names)]
        )
        axes.set_xlabel("pair" if one is maps[-1] else "")
    told = [f"{one.series} {one.publisher}: {one.figures}" for series in all_series for one in worse(series)]
    return figure, f"Maps of loss and delay of each pair. Worse than the others: {'. '.join(told) or 'none'}."
