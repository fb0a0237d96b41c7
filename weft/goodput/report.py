"""An outcome as tables, a figure, a page and data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.goodput.history import Spent
from weft.goodput.outcome import MeasuredCheckpoint, Outcome, Share
from weft.quantities.readable import format_size
from weft.quantities.units import DURATION_UNITS, S_PER_DAY, US_PER_S
from weft.report.html import Section, html_page, write_page
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.system.writing import written_whole

JSON_FILE, PAGE_FILE = "goodput.json", "goodput.html"
_SAME = 0.02
"""Histories and formula that are no further apart count as the same."""


def words(outcome: Outcome) -> str:
    """Return the outcome in a sentence."""
    cluster, goodput = outcome.cluster, outcome.goodput
    return (
        f"{goodput.mean:.2%} of {duration(cluster.duration_s)} is kept work ({goodput.low:.2%} to {goodput.high:.2%} "
        f"in nine of ten histories); {outcome.accelerator_hours_lost:,.0f} hours of accelerators are not"
    )


def notes(outcome: Outcome) -> Sequence[str]:
    """Return what a reader should know: the interval, the formulas, what only histories know of."""
    cluster = outcome.cluster
    found = []
    if cluster.interval_is_chosen and cluster.interruption_rate:
        found.append(f"The checkpoint interval, {duration(cluster.interval_s)}, is the best by Daly's formula.")
    elif math.isfinite(cluster.best_interval_s):
        found.append(
            f"A checkpoint each {duration(cluster.interval_s)}; the best interval by Daly's formula is "
            f"{duration(cluster.best_interval_s)} (Young's: {duration(outcome.young_interval_s)})."
        )
    found.append(
        f"Daly's formula, of failures that end the job: {outcome.formula:.2%}; to first order and without the cost of "
        f"checkpoints (Kokolis et al.): {outcome.first_order:.2%}."
    )
    beyond = sum(outcome.spent[each].mean for each in (Spent.WAITING, Spent.STORAGE, Spent.STALLED, Spent.SLOWED))
    if abs(outcome.goodput.mean - outcome.formula) > _SAME * outcome.formula:
        found.append(
            f"Histories and Daly's formula differ: it knows of no waiting for hosts and storage, stalls and slowness, "
            f"which take {beyond:.2%} here, nor of results that are wrong before anybody knows."
        )
    if outcome.spent[Spent.WAITING].mean > 0:
        found.append(f"The job waits for hosts: {cluster.spares} spares are too few.")
    return found


def failures_table(outcome: Outcome) -> ReportTable:
    """Return the kinds of failures, and how often each came."""
    rows = [
        [
            kind.title,
            f"{kind.parts:,}",
            duration(kind.settings.mtbf),
            kind.settings.effect,
            f"{kind.rate * S_PER_DAY:.3g}",
            f"{outcome.failures_per_day[kind.title]:.3g}",
        ]
        for kind in outcome.cluster.kinds
    ]
    return ReportTable("Failures", ["failure", "parts", "MTBF of one", "effect", "a day, mean", "a day, drawn"], rows)


def measured_table(outcome: Outcome) -> ReportTable:
    """Return what packets have shown of failures."""
    rows = [
        [
            each.title,
            each.element,
            "the traffic fails" if each.error else duration(each.stall_s),
            "the job starts again" if each.error else f"{each.speed:.1%} of the speed",
        ]
        for each in outcome.measured
    ]
    return ReportTable("Measured with packets", ["failure", "fails", "costs", "then"], rows)


def checkpoint_table(found: MeasuredCheckpoint) -> ReportTable:
    """Return the times of checkpoints that packets have shown."""
    rows = []
    if found.saving_s is not None:
        rows.append(["save", duration(found.saving_s), duration(found.slowed_s)])
    if found.restoring_s is not None:
        rows.append(["restore", duration(found.restoring_s), "-"])
    title = f"Checkpoint of {format_size(found.size_bytes)}, measured with packets"
    note = f"Of it, {found.share:.3g} was run, and half of that; the times are extended along the line through both."
    columns = ["checkpoint", "takes", "slows traffic by"]
    return ReportTable(title, columns, rows, note if found.share < 1 else "")


def spent_table(outcome: Outcome) -> ReportTable:
    """Return where the time went."""
    rows = [
        [str(spent), _percent(share.mean), _percent(share.low), _percent(share.high)]
        for spent, share in outcome.spent.items()
        if spent is not Spent.STORAGE or any(kind.settings.effect == "no-storage" for kind in outcome.cluster.kinds)
    ]
    return ReportTable(f"Where the time of {outcome.histories} histories goes", ["what", "mean", "5 %", "95 %"], rows)


def intervals_table(outcome: Outcome) -> ReportTable:
    """Return goodput by checkpoint interval."""
    rows = [
        [duration(each.interval_s), _percent(each.goodput.mean), _percent(each.formula)] for each in outcome.intervals
    ]
    return ReportTable("Goodput by checkpoint interval", ["interval", "histories", "Daly's formula"], rows)


def intervals_figure(outcome: Outcome) -> CurveFigure:
    """Return time that is no kept work, by checkpoint interval."""
    minutes = [each.interval_s / 60 for each in outcome.intervals]
    lost = [100 * (1 - each.goodput.mean) for each in outcome.intervals]
    spread: list[float | None] = [50 * (each.goodput.high - each.goodput.low) for each in outcome.intervals]
    return CurveFigure(
        "Time that is no kept work, by checkpoint interval",
        Axis("checkpoint interval (min)", "min", "log"),
        Axis("no kept work (%)", "%", "log"),
        [
            Curve("histories", minutes, lost, spread),
            Curve("Daly's formula", minutes, [100 * (1 - each.formula) for each in outcome.intervals]),
        ],
        text="Error bars: from the 5th to the 95th percentile of histories.",
    )


def page(name: str, outcome: Outcome) -> str:
    """Return an HTML page that opens offline; EnvironmentLacksError: it has a figure, and plotly is missing."""
    figures = {"intervals": intervals_figure(outcome)} if outcome.intervals else {}
    return html_page(
        title=f"{name}: goodput",
        verdict=escape(f"{outcome.goodput.mean:.2%} kept work"),
        subtitle=f"{outcome.cluster.accelerators:,} accelerators in {outcome.cluster.hosts:,} hosts",
        sections=[
            Section.sentences("In short", [f"{words(outcome)}.", *notes(outcome)], is_notice=False),
            Section.table(spent_table(outcome)),
            Section.table(failures_table(outcome)),
            *([Section.table(measured_table(outcome))] if outcome.measured else []),
            *([Section.table(checkpoint_table(outcome.checkpoint))] if outcome.checkpoint else []),
            *(Section.part(key, figure) for key, figure in figures.items()),
            *([Section.table(intervals_table(outcome))] if outcome.intervals else []),
        ],
        data={"figures": {key: figure.data() for key, figure in figures.items()}},
    )


def as_dict(name: str, outcome: Outcome, made_by: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome as data; times in seconds, shares of 1. `made_by`: what it is of (`weft.goodput.made_by`)."""
    cluster = outcome.cluster
    return {
        "name": name,
        "made_by": made_by,
        "accelerators": cluster.accelerators,
        "hosts": cluster.hosts,
        "spares": cluster.spares,
        "duration_s": cluster.duration_s,
        "checkpoint_interval_s": cluster.interval_s,
        "best_checkpoint_interval_s": _finite(cluster.best_interval_s),
        "young_checkpoint_interval_s": _finite(outcome.young_interval_s),
        "histories": outcome.histories,
        "goodput": _share(outcome.goodput),
        "formula_daly": outcome.formula,
        "formula_first_order": outcome.first_order,
        "interruptions": _share(outcome.interruptions),
        "spent": {spent.name.lower(): _share(share) for spent, share in outcome.spent.items()},
        "failures_per_day": dict(outcome.failures_per_day),
        "accelerator_hours_lost": outcome.accelerator_hours_lost,
        "measured": [asdict(each) for each in outcome.measured],
        "checkpoint": asdict(outcome.checkpoint) if outcome.checkpoint else None,
        "intervals": [
            {"interval_s": each.interval_s, "goodput": _share(each.goodput), "formula_daly": each.formula}
            for each in outcome.intervals
        ],
    }


def write(name: str, outcome: Outcome, made_by: Mapping[str, Any], directory: Path) -> Path:
    """Write goodput.json and goodput.html, and return the page's path. Raises EnvironmentLacksError, BadInputError."""
    if directory.exists() and not directory.is_dir():
        raise BadInputError(f"{directory} is no directory")
    text = page(name, outcome)
    directory.mkdir(parents=True, exist_ok=True)
    with written_whole(directory / JSON_FILE) as partial:
        partial.write_text(json.dumps(as_dict(name, outcome, made_by), indent=1) + "\n", encoding="utf-8")
    return write_page(text, directory / PAGE_FILE)


def duration(seconds: float) -> str:
    """Return a duration for reading, in three digits and the largest unit that it has one of."""
    units = [(name, factor / US_PER_S) for name, factor in reversed(DURATION_UNITS.items())]
    name, factor = next(((name, factor) for name, factor in units if seconds >= factor), units[-1])
    value = seconds / factor
    return f"{value:,.0f}{name}" if value >= 100 else f"{value:.3g}{name}"


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _share(share: Share) -> dict[str, float]:
    return {"mean": share.mean, "p5": share.low, "p95": share.high}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
