"""report.html: a run's results on one page that needs no network, for desktop, phone and paper."""

import re
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis import (
    certificate_words,
    figures,
    findings,
    page,
    pairs,
    pcap,
    published,
    statements,
    statistics,
    style,
    warnings,
    wire,
)
from analysis.run import CellResult, Run, Series, load
from broker import registry as servers
from clients import registry as protocols
from testbed import parameters
from testbed.netem import Netem, describe
from testbed.units import show_duration


def number(value: float | None, digits: int = 1) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:,.{digits if abs(value) < 10_000 else 0}f}"


def _p(value: float | None) -> str:
    """A p-value; a dash where the test could not be made."""
    return "–" if value is None else f"{value:.2g}" if value >= 0.001 else "< 0.001"


def _interval(interval: statistics.Interval | None, digits: int = 2) -> str:
    return "" if interval is None else f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def inline_svg(path: Path, alt: str) -> Markup:
    """A figure to be put into HTML: with a text alternative, the page's own colours, and ids that no other figure has."""
    svg = path.read_text()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{path.stem}-", svg)
    for drawn, ours in ((style.INK, "var(--ink)"), (style.PAPER, "var(--paper)"), (style.LINE, "var(--line)")):
        svg = svg.replace(drawn, ours)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[^"]*"(?=[^<]*viewBox)', r"\1", svg, count=1)
    return Markup(svg.replace("<svg ", Markup('<svg role="img" aria-label="{}" ').format(alt), 1))


def _delay(series: Series, use_mean: bool) -> str:
    """The headline: mean and standard deviation, or median and quartiles, in ms."""
    if not len(series.delays):
        return "–"
    if use_mean:
        return f"{number(series.mean_ms)} ± {number(float(series.delays.std(ddof=1)))}"
    low, middle, high = statistics.percentiles(series.delays, 25, 50, 75)
    return f"{number(middle)} ({number(low)} to {number(high)})"


def _repeats(series: Series, column: str) -> str:
    """The interval of a column's mean over repeats; nothing where there is one repeat only."""
    return _interval(statistics.repeats_interval(series.of_repeats(column)), 1)


def _row(series: Series, use_mean: bool) -> dict[str, Any]:
    delays, clients = series.delays, sum(2 * cell.plan["clients"] for cell in series.cells)
    p95, p99 = statistics.percentiles(delays, 95, 99)
    size = series.total("wire_bytes")
    return {
        "label": series.label,
        "ready": f"{sum(cell.ready for cell in series.cells)}/{clients}",
        "all_ready": sum(cell.ready for cell in series.cells) == clients,
        "status": series.status,
        "sent": f"{series.sent:,}" if series.sent else "–",
        "loss": number(series.loss_pct, 2),
        "loss_interval": _interval(statistics.loss_interval(series.lost, series.sent)),
        "headline": _delay(series, use_mean),
        "headline_interval": _repeats(series, "delay_mean_ms" if use_mean else "delay_median_ms"),
        "mean": number(series.mean_ms),
        "mean_interval": _repeats(series, "delay_mean_ms"),
        "p95": number(p95),
        "p99": number(p99),
        "max": number(float(delays.max()) if len(delays) else None),
        "jitter": number(statistics.mean(series.of_repeats("jitter_mean_ms"))),
        "out_of_order": series.total("out_of_order"),
        "duplicates": series.total("duplicates"),
        "bytes_each": number(size / len(delays), 0) if size is not None and len(delays) else "–",
    }


def _payload(run: Run, payload: str) -> dict[str, Any]:
    chosen = run.of_payload(payload)
    headline = statistics.headline({series.label: series.delays for series in chosen})
    plan = chosen[0].cells[0].plan
    return {
        "name": payload,
        "traffic": f"{plan['size']:,} B every {show_duration(plan['interval'])}, {plan['messages']} messages from each "
        f"publisher, then {show_duration(plan['drain'])} of waiting",
        "headline": headline,
        "shapiro": {label: _p(p) for label, p in headline.shapiro_p.items()},
        "levene": _p(headline.levene_p),
        "rows": [_row(series, headline.use_mean) for series in chosen],
        "beside": [_beside(series) for series in chosen],
    }


def _beside(series: Series) -> dict[str, Any]:
    known, ours = published.of_series(series), series.loss_pct
    interval = statistics.loss_interval(series.lost, series.sent)
    return {
        "label": series.label,
        "ours": number(ours, 2),
        "published": number(known, 2),
        "difference": f"{ours - known:+.2f}".replace("-", "−") if ours is not None and known is not None else "–",
        "inside": known is not None and interval is not None and interval.low <= known <= interval.high,
    }


def _channels(cell: CellResult) -> list[dict[str, Any]]:
    """What netem was told and did, a row for each direction of a cell."""
    return [
        {
            "cell": cell.name,
            "interface": interface,
            "packets": f"{one['packets']:,}",
            "dropped": f"{one['dropped']:,}",
            "loss": number(one["loss_pct"], 2),
            "interval": f"{one['loss_99_pct'][0]:.2f} to {one['loss_99_pct'][1]:.2f}" if one["loss_99_pct"] else "",
            "left": cell.facts["channel"]["after"][interface].get("qlen", 0),
        }
        for interface, one in cell.facts.get("channel", {}).get("measured", {}).items()
    ]


def parameters_of(run: Run) -> dict[str, dict[str, str]]:
    """What each protocol and server was set to, with units."""
    found = {}
    for series in run.series:
        plan = series.cells[0].plan
        found[series.protocol] = parameters.show(protocols.get(series.protocol).parameters, plan["parameters"])
        for name, given in plan["servers"].items():
            found[name] = parameters.show(servers.get(name).settings, given)
    return found


def _context(run: Run) -> dict[str, Any]:
    plan, source = run.plan, published.figures(run.plan["study"])
    checked = statements.check(run)
    first = run.cells[0] if run.cells else None
    return {
        "run": run,
        "plan": plan,
        "manifest": run.manifest,
        "findings": findings.sentences(run),
        "first": first,
        "netem": describe(Netem(**plan["profile"]["netem"])),
        "channel": first.row["channel"] if first else "",
        "payloads": [_payload(run, payload) for payload in run.payloads],
        "published": source.get("source", "") if plan["profile"]["name"] in source.get("loss_pct", {}) else "",
        "statements": checked,
        "holding": sum(one.holds is True for one in checked),
        "tested": sum(one.holds is not None for one in checked),
        "worse": [one for series in run.series for one in pairs.worse(series)],
        "warnings": warnings.collect(run),
        "wire": wire.tables(run),
        "certificate": certificate_words.context(run.manifest.get("certificate")),
        "channels": [row for cell in run.cells for row in _channels(cell)],
        "commands": first.facts.get("channel", {}).get("commands", []) if first else [],
        "parameters": parameters_of(run),
        "ok": sum(cell.row["status"] == "ok" for cell in run.cells),
        "percent": f"{100 * statistics.CONFIDENCE:g} %",
        "alpha": statistics.ALPHA,
        "resamples": statistics.RESAMPLES,
    }


def write(folder: Path) -> Path:
    """Draw the figures and write report.html into a run's folder; returns its path. Raises UserError if it is no run."""
    pcap.analyse_run(folder)
    run = load(folder)
    with figures.drawing(run) as drawn:
        context = _context(run)
        shown = [(one, inline_svg(folder / "figures" / f"{one.name}.svg", one.alt)) for one in drawn]
    return page.write(folder, "report", context | {"figures": shown})
