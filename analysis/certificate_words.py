"""A link certificate, as the manifest holds it, in words: for the terminal and for the report."""

from typing import Any

_MAIN = ("delay", "rate", "loss")


def _measured(check: dict[str, Any]) -> str:
    """`what the profile says: what was measured`, in brackets the 99 % interval."""
    if check["measured"] is None:
        return "–"
    wanted = "" if check["expected"] is None else f"{check['expected']:,g} {check['unit']}: "
    varies = check["allowed"].startswith("within")
    if check["what"] == "delay" and not varies:  # all of them are known
        most = 1000 * max(abs(check[end] - check["expected"]) for end in ("low", "high"))
        return f"{wanted}{most:.2f} µs off at most"
    if check["what"] == "rate":
        return f"{wanted}{100 * (check['measured'] / check['expected'] - 1):+.3f} %"
    interval = "" if check["low"] is None else f" ({check['low']:.3g} to {check['high']:.3g})"
    return f"{wanted}{check['measured']:.3g}{interval}"


def _row(moment: str, direction: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    main = {check["what"]: _measured(check) for check in checks if check["what"] in _MAIN}
    rest = [check for check in checks if check["what"] not in _MAIN]
    other = [f"{check['what']} {_measured(check)}" for check in rest if check["measured"]]
    failed = [check["what"] for check in checks if check["passed"] is False]
    verdict = f"failed: {', '.join(failed)}" if failed else "passed"
    return {"moment": moment, "direction": direction, **main, "other": other or ["none"], "verdict": verdict}


def rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each probe and direction: `delay`, `rate`, `loss`, `other` (a line each) and `verdict`."""
    nothing = {"direction": "–", "delay": "–", "rate": "–", "loss": "–", "other": ["–"]}
    if not found["moments"]:
        return [{"moment": "–", **nothing, "verdict": f"{found['verdict']}: {found['reason']}"}]
    made = []
    for moment in found["moments"]:
        if moment["reason"]:
            made.append({"moment": moment["moment"], **nothing, "verdict": f"{moment['verdict']}: {moment['reason']}"})
        for direction in dict.fromkeys(check["direction"] for check in moment["checks"]):
            checks = [check for check in moment["checks"] if check["direction"] == direction]
            made.append(_row(moment["moment"], direction, checks))
    return made


def headline(found: dict[str, Any]) -> str:
    """The verdict and why, in a line."""
    made = [check for moment in found["moments"] for check in moment["checks"] if check["passed"] is not None]
    words = f"{sum(check['passed'] for check in made)} of {len(made)} checks, before and after the cells"
    return f"{found['verdict']}: {found['reason'] or words}"


def failures(found: dict[str, Any]) -> list[str]:
    """What failed, a line each."""
    lines = [f"{moment['moment']}: {moment['reason']}" for moment in found["moments"] if moment["reason"]]
    return lines + [
        f"{moment['moment']}: {check['direction']} {check['what']} {_measured(check)}; allowed {check['allowed']}"
        for moment in found["moments"]
        for check in moment["checks"]
        if check["passed"] is False
    ]


def context(found: dict[str, Any] | None) -> dict[str, Any]:
    """What templates/certificate.html.j2 shows. `found` is a manifest's certificate; None if it has none."""
    if found is None:
        return {"headline": "not checked", "verdict": "not checked", "rows": [], "criteria": ""}
    tolerance = found["tolerance"]
    return {
        "headline": headline(found),
        "verdict": found["verdict"],
        "rows": rows(found) if found["moments"] else [],
        "criteria": f"{'the median' if tolerance['typical'] else 'every'} delay within {tolerance['delay'] / 1000:g} µs, "
        f"the rate within {100 * tolerance['rate']:g} %, shares (loss and the like) no farther from the profile's than "
        f"chance takes one of them in one run of {1 / found['false_alarms']:,.0f}",
    }
