"""One HTML page of several runs side by side."""

from __future__ import annotations

from html import escape
from pathlib import Path

from weft.report.comparison import Comparison
from weft.report.html import Section, html_page, write_page
from weft.report.page import checks_passed
from weft.report.topology_section import topology_section
from weft.results.losses import lost_in_switches
from weft.results.report_parts import ReportTable

_MOST_DRAWINGS = 4
"""Drawings of fabrics on a page."""


def write_comparison(compared: Comparison, target: Path) -> Path:
    """Write the page, and return where it is. EnvironmentLacksError: plotly is missing, or it cannot be written."""
    return write_page(comparison_page(compared), target)


def comparison_page(compared: Comparison) -> str:
    """Return the page as HTML; the same runs give the same page."""
    runs, figures = compared.runs, compared.figures()
    title = f"{runs[0].name} and {runs[1].name}" if len(runs) == 2 else f"{len(runs)} runs"
    return html_page(
        title=title,
        verdict=_verdict(compared),
        subtitle=f"ratios are over {runs[0].name}",
        sections=[
            *(_section(table) for table in compared.tables().values()),
            *(Section.part(name, figure) for name, figure in figures.items()),
            *(Section.folded(table) for table in compared.internals().values() if not table.is_empty),
            *(topology_section(each.run, f"Utilisation of {each.name}") for each in runs[:_MOST_DRAWINGS]),
        ],
        data={
            "figures": {name: figure.data() for name, figure in figures.items() if not isinstance(figure, ReportTable)}
        },
        valid=not any(_is_late(compared)),
        scripts=("cursor.js",),
    )


def _section(table: ReportTable) -> str:
    return Section.table(table) if table.rows else Section.sentences(table.title, [table.note])


def _verdict(compared: Comparison) -> str:
    runs = compared.runs
    if failed := [each.name for each in runs if not each.run.results.ok]:
        return f'<span class="bad">a check failed in {escape(" and ".join(failed))}</span>'
    if late := [each.name for each, is_late in zip(runs, _is_late(compared), strict=True) if is_late]:
        return f'<span class="bad">late events in {escape(" and ".join(late))}: times are INVALID</span>'
    lost = [each.name for each in runs if lost_in_switches(each.run.results.losses)]
    losses = f' <span class="bad">packets lost in switches of {escape(" and ".join(lost))}</span>' if lost else ""
    return checks_passed(*(each.run.results for each in runs)) + losses


def _is_late(compared: Comparison) -> list[bool]:
    found = [each.run.results.lateness for each in compared.runs]
    return [late is not None and not late.valid for late in found]
