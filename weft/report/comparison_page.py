"""One HTML page of two runs side by side."""

from __future__ import annotations

from html import escape
from pathlib import Path

from weft.report.comparison import ComparedRun, comparison
from weft.report.html import Section, html_page, write_page
from weft.report.page import checks_passed
from weft.report.topology_section import topology_section
from weft.results.losses import lost_in_switches
from weft.results.report_parts import ReportTable


def write_comparison(first: ComparedRun, second: ComparedRun, target: Path) -> Path:
    """Write the page, and return where it is. EnvironmentLacksError: plotly is missing, or it cannot be written."""
    return write_page(comparison_page(first, second), target)


def comparison_page(first: ComparedRun, second: ComparedRun) -> str:
    """Return the page as HTML; the same runs give the same page."""
    parts = comparison(first, second)
    drawn = {name: part.data() for name, part in parts.items() if not isinstance(part, ReportTable)}
    return html_page(
        title=f"{first.name} and {second.name}",
        verdict=_verdict(first, second),
        subtitle=f"ratios are {second.name} over {first.name}",
        sections=[
            *(Section.part(name, part) for name, part in parts.items()),
            *(topology_section(each.run, f"Utilisation of {each.name}") for each in (first, second)),
        ],
        data={"figures": drawn},
        valid=not any(_is_late(each) for each in (first, second)),
    )


def _verdict(*runs: ComparedRun) -> str:
    if failed := [each.name for each in runs if not each.run.results.ok]:
        return f'<span class="bad">a check failed in {escape(" and ".join(failed))}</span>'
    if late := [each.name for each in runs if _is_late(each)]:
        return f'<span class="bad">late events in {escape(" and ".join(late))}: times are INVALID</span>'
    lost = [each.name for each in runs if lost_in_switches(each.run.results.losses)]
    losses = f' <span class="bad">packets lost in switches of {escape(" and ".join(lost))}</span>' if lost else ""
    return checks_passed(*(each.run.results for each in runs)) + losses


def _is_late(compared: ComparedRun) -> bool:
    late = compared.run.results.lateness
    return late is not None and not late.valid
