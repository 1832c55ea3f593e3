"""report.html: a run's results on one page that needs no network, for desktop, phone and paper."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis import certificate_words, figures, published, statements, statistics, style, warnings
from analysis.run import CellResult, Run, Series, load
from testbed.netem import Netem, describe

_TEMPLATES = Path(__file__).parent / "templates"


def _number(value: float | None, digits: int = 1) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:,.{digits if abs(value) < 10_000 else 0}f}"


def _interval(interval: statistics.Interval | None, digits: int = 2) -> str:
    return "" if interval is None else f"{interval.low:,.{digits}f} to {interval.high:,.{digits}f}"


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
        return f"{_number(series.mean_ms)} ± {_number(float(series.delays.std(ddof=1)))}"
    low, middle, high = statistics.percentiles(series.delays, 25, 50, 75)
    return f"{_number(middle)} ({_number(low)} to {_number(high)})"


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
        "loss": _number(series.loss_pct, 2),
        "loss_interval": _interval(statistics.loss_interval(series.lost, series.sent)),
        "headline": _delay(series, use_mean),
        "mean": _number(series.mean_ms),
        "mean_interval": _interval(statistics.repeats_interval(series.of_repeats("delay_mean_ms")), 1),
        "p95": _number(p95),
        "p99": _number(p99),
        "max": _number(float(delays.max()) if len(delays) else None),
        "jitter": _number(statistics.mean(series.of_repeats("jitter_mean_ms"))),
        "out_of_order": series.total("out_of_order"),
        "duplicates": series.total("duplicates"),
        "bytes_each": _number(size / len(delays), 0) if size is not None and len(delays) else "–",
    }


def _payload(run: Run, payload: str) -> dict[str, Any]:
    chosen = run.of_payload(payload)
    headline = statistics.headline({series.label: series.delays for series in chosen})
    plan = chosen[0].cells[0].plan
    return {
        "name": payload,
        "traffic": f"{plan['size']:,} B every {plan['interval'] / 1e9:g} s, {plan['messages']} messages from each "
        f"publisher, then {plan['drain'] / 1e9:g} s of waiting",
        "headline": headline,
        "rows": [_row(series, headline.use_mean) for series in chosen],
        "beside": [_beside(series) for series in chosen],
    }


def _beside(series: Series) -> dict[str, Any]:
    known, ours = published.of_series(series), series.loss_pct
    interval = statistics.loss_interval(series.lost, series.sent)
    return {
        "label": series.label,
        "ours": _number(ours, 2),
        "published": _number(known, 2),
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
            "loss": _number(one["loss_pct"], 2),
            "interval": f"{one['loss_99_pct'][0]:.2f} to {one['loss_99_pct'][1]:.2f}" if one["loss_99_pct"] else "",
            "left": cell.facts["channel"]["after"][interface].get("qlen", 0),
        }
        for interface, one in cell.facts.get("channel", {}).get("measured", {}).items()
    ]


def _parameters(run: Run) -> dict[str, str]:
    """What protocols and servers were set to; times in ns."""
    found = {series.protocol: series.cells[0].plan["parameters"] for series in run.series}
    for series in run.series:
        found |= series.cells[0].plan["servers"]
    return {name: ", ".join(f"{key} {value}" for key, value in given.items()) for name, given in found.items()}


def _context(run: Run, drawn: list[figures.Drawn]) -> dict[str, Any]:
    plan, source = run.plan, published.figures(run.plan["study"])
    checked = statements.check(run)
    first = run.cells[0] if run.cells else None
    return {
        "run": run,
        "plan": plan,
        "manifest": run.manifest,
        "first": first,
        "netem": describe(Netem(**plan["profile"]["netem"])),
        "channel": first.row["channel"] if first else "",
        "payloads": [_payload(run, payload) for payload in run.payloads],
        "published": source.get("source", "") if plan["profile"]["name"] in source.get("loss_pct", {}) else "",
        "statements": checked,
        "holding": sum(one.holds is True for one in checked),
        "tested": sum(one.holds is not None for one in checked),
        "warnings": warnings.collect(run),
        "figures": [(one, inline_svg(run.folder / "figures" / f"{one.name}.svg", one.alt)) for one in drawn],
        "certificate": certificate_words.context(run.manifest.get("certificate")),
        "channels": [row for cell in run.cells for row in _channels(cell)],
        "commands": first.facts.get("channel", {}).get("commands", []) if first else [],
        "parameters": _parameters(run),
        "ok": sum(cell.row["status"] == "ok" for cell in run.cells),
        "percent": f"{100 * statistics.CONFIDENCE:g} %",
        "alpha": statistics.ALPHA,
        "resamples": statistics.RESAMPLES,
    }


def write(folder: Path) -> Path:
    """Draw the figures and write report.html into a run's folder; returns its path. Raises UserError if it is no run."""
    run = load(folder)
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("report.html.j2").render(_context(run, figures.draw(run)))
    path, fresh = folder / "report.html", folder / "report.html.new"
    fresh.write_text(html)
    fresh.replace(path)
    return path
