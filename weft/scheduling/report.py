"""A comparison of policies as tables, figures, a page and data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.goodput.report import duration
from weft.quantities.units import PS_PER_US, S_PER_DAY
from weft.report.html import Section, html_page, write_page
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.scheduling.outcome import FIGURES, Comparison, Interval, Outcome
from weft.scheduling.spread import MeasuredSlowdowns, NoSlowdown, Slowdowns
from weft.system.writing import written_whole

JSON_FILE, PAGE_FILE = "schedule.json", "schedule.html"
_COLUMNS = {
    "utilisation": "in use",
    "wait_mean_s": "waiting",
    "wait_p50_s": "median",
    "wait_p95_s": "95 %",
    "slowdown_mean": "slow-down",
    "leaves_over_needed": "leaves",
    "idle_while_waiting": "idle",
    "fragmentation": "unusable",
    "preemptions": "preempted",
    "migrations": "moved",
}
"""Columns of the table of policies by their figures."""
_SHARES = ("utilisation", "idle_while_waiting", "fragmentation")
_COUNTS = ("preemptions", "migrations")


def words(comparison: Comparison) -> str:
    """Return what was simulated, in a sentence."""
    cluster = comparison.cluster
    levels = ", ".join(f"{level.name}: {len(level.domains):,}" for level in cluster.levels[:-1])
    return (
        f"{comparison.jobs:,} jobs on {cluster.accelerators:,} accelerators in {len(cluster.hosts):,} hosts"
        f"{f' ({levels})' if levels else ''}, load {comparison.load:.0%}, {comparison.seeds} "
        f"draw{'s' if comparison.seeds > 1 else ''}"
    )


def notes(comparison: Comparison, slowdowns: Slowdowns) -> Sequence[str]:
    """Return what a reader should know of the table."""
    found = [
        "In use and idle: shares of all accelerators from the first arrival to the last; idle: free while a job waits.",
        "Unusable: share of free accelerators that no waiting job could use.",
        "Leaves: of jobs of several hosts, over the fewest that could hold them.",
    ]
    if comparison.seeds > 1:
        found.append("±: half of the 95 % confidence interval over draws of the jobs.")
    if isinstance(slowdowns, NoSlowdown):
        found.append("Jobs run equally fast wherever they lie: the scenario has no `schedule.slowdown`.")
    return [*found, *comparison.cluster.notes]


def tables(comparison: Comparison, slowdowns: Slowdowns) -> Sequence[ReportTable]:
    """Return the tables that the terminal and the page have."""
    shown = [name for name in _COLUMNS if name not in _COUNTS or any(o.figures[name].mean for o in comparison.outcomes)]
    rows = [
        [outcome.policy, *(_cell(name, outcome.figures[name]) for name in shown)] for outcome in comparison.outcomes
    ]
    found = [ReportTable("Policies", ["policy", *(_COLUMNS[name] for name in shown)], rows)]
    if isinstance(slowdowns, MeasuredSlowdowns) and slowdowns.times_ps:
        found.append(_spread_table(slowdowns))
    return found


def _spread_table(slowdowns: MeasuredSlowdowns) -> ReportTable:
    rows: list[list[str]] = []
    for spread, time_ps in sorted(slowdowns.times_ps.items()):
        factor = slowdowns.factor(spread.hosts * slowdowns.accelerators_per_host, spread)
        rows.append(
            [
                spread.words,
                f"{time_ps / PS_PER_US:,.1f}",
                f"{factor:.2f}",
                f"{1 + slowdowns.communication * (factor - 1):.2f}",
            ]
        )
    return ReportTable("Spread, by packets", ["spread", "collective (us)", "times", "slow-down of a job"], rows)


def timelines(comparison: Comparison) -> dict[str, CurveFigure]:
    """Return utilisation and the queue over time, of the first draw."""
    x = Axis("time (days)", "days")
    text = "Means over 200 parts of the time until the last arrival, of the first draw of the jobs."
    use = [Curve(o.policy, _days(o), (100 * o.timeline.utilisation).tolist()) for o in comparison.outcomes]
    queue = [Curve(o.policy, _days(o), o.timeline.waiting.tolist()) for o in comparison.outcomes]
    return {
        "utilisation": CurveFigure("Accelerators in use", x, Axis("in use (%)", "%"), use, text=text),
        "queue": CurveFigure("Jobs that wait", x, Axis("waiting jobs"), queue),
    }


def _days(outcome: Outcome) -> list[float]:
    return [round(at_s / S_PER_DAY, 6) for at_s in outcome.timeline.at_s.tolist()]


def page(name: str, comparison: Comparison, slowdowns: Slowdowns) -> str:
    """Return an HTML page that opens offline; EnvironmentLacksError: it has figures, and plotly is missing."""
    figures = timelines(comparison)
    policies = ReportTable(
        "What policies do", ["policy", "what it does"], [[o.policy, o.summary] for o in comparison.outcomes]
    )
    return html_page(
        title=f"{name}: schedule",
        verdict=escape(f"{len(comparison.outcomes)} policies"),
        subtitle=words(comparison),
        sections=[
            *(Section.table(table) for table in tables(comparison, slowdowns)),
            Section.sentences("In short", notes(comparison, slowdowns), is_notice=False),
            *(Section.part(key, figure) for key, figure in figures.items()),
            Section.table(policies),
        ],
        data={"figures": {key: figure.data() for key, figure in figures.items()}},
    )


def as_dict(name: str, comparison: Comparison, slowdowns: Slowdowns) -> dict[str, Any]:
    """Return the comparison as data; times in seconds, shares of 1."""
    cluster = comparison.cluster
    return {
        "name": name,
        "hosts": len(cluster.hosts),
        "accelerators": cluster.accelerators,
        "levels": {level.name: len(level.domains) for level in cluster.levels},
        "jobs": comparison.jobs,
        "load": _finite(comparison.load),
        "seeds": comparison.seeds,
        "figures": dict(FIGURES),
        "policies": {
            outcome.policy: {figure: _interval(outcome.figures[figure]) for figure in FIGURES}
            for outcome in comparison.outcomes
        },
        "spread": [
            {
                "hosts": spread.hosts,
                "leaves": spread.leaves,
                "groups": spread.groups,
                "collective_ps": time_ps,
                "factor": slowdowns.factor(spread.hosts * slowdowns.accelerators_per_host, spread),
            }
            for spread, time_ps in sorted(slowdowns.times_ps.items())
        ]
        if isinstance(slowdowns, MeasuredSlowdowns)
        else [],
        "timelines": {
            outcome.policy: {
                "at_s": outcome.timeline.at_s.tolist(),
                "utilisation": outcome.timeline.utilisation.tolist(),
                "waiting": outcome.timeline.waiting.tolist(),
            }
            for outcome in comparison.outcomes
        },
    }


def write(name: str, comparison: Comparison, slowdowns: Slowdowns, directory: Path) -> Path:
    """Write schedule.json and schedule.html; returns the page. Raises EnvironmentLacksError, BadInputError."""
    if directory.exists() and not directory.is_dir():
        raise BadInputError(f"{directory} is no directory")
    text = page(name, comparison, slowdowns)
    directory.mkdir(parents=True, exist_ok=True)
    with written_whole(directory / JSON_FILE) as partial:
        partial.write_text(json.dumps(as_dict(name, comparison, slowdowns), indent=1) + "\n", encoding="utf-8")
    return write_page(text, directory / PAGE_FILE)


def _cell(figure: str, interval: Interval) -> str:
    if figure in _SHARES:
        return _with_half(f"{100 * interval.mean:.1f}", f"{100 * interval.half:.1f}", interval, "%")
    if figure.endswith("_s"):
        return "0" if interval.mean == 0 else f"{_time(interval.mean)}{_half(_time(interval.half), interval)}"
    if figure in _COUNTS:
        return _with_half(f"{interval.mean:,.0f}", f"{interval.half:,.0f}", interval, "")
    return _with_half(f"{interval.mean:.3f}", f"{interval.half:.3f}", interval, "")


def _time(seconds: float) -> str:
    return duration(seconds) if math.isfinite(seconds) else ""


def _with_half(value: str, half: str, interval: Interval, unit: str) -> str:
    return f"{value}{_half(half, interval)}{unit}"


def _half(half: str, interval: Interval) -> str:
    return f"±{half}" if math.isfinite(interval.half) and interval.half else ""


def _interval(interval: Interval) -> dict[str, float | None]:
    return {"mean": interval.mean, "half": _finite(interval.half)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
