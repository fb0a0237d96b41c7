"""A report as one page that opens offline."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from weft.bench import report_parts as parts
from weft.bench.model import BenchReport, Status, TestReport
from weft.bench.suites import SUITES
from weft.report.html import Section, html_page, write_page
from weft.results.report_parts import BarFigure, CurveFigure, ReportTable

PAGE_FILE = "bench.html"


def write_bench_page(report: BenchReport, target: Path) -> Path:
    """Write the page; returns its path. EnvironmentLacksError: plotly is missing, or it cannot be written."""
    return write_page(bench_page(report), target)


def bench_page(report: BenchReport) -> str:
    """Return the page as HTML; the same report gives the same page."""
    suite = SUITES[report.suite]
    figures = dict(_figures(report))
    return html_page(
        title=f"{suite.title}: {report.fabric}",
        verdict=f'<span class="{"" if report.ok else "bad"}">{escape(parts.verdict(report))}</span>',
        subtitle=f"{suite.draft}, profile {report.profile}; reference values of the draft are no limits",
        sections=list(_sections(report)),
        data={"figures": {key: figure.data() for key, figure in figures.items()}},
    )


def _sections(report: BenchReport) -> Iterator[str]:
    yield Section.table(parts.kpi_table(report))
    yield Section.sentences("Anomalies", parts.anomalies(report))
    yield Section.folded(parts.status_table(report))
    yield _table(parts.facts("DUT identification", report.identification))
    yield _drawing(report)
    yield Section.folded(parts.facts("Test topology", report.topology))
    for title, by_variant in (("Test configuration", report.configuration), ("Host configuration", report.hosts)):
        for variant, values in by_variant.items():
            if values:
                yield Section.folded(parts.facts(parts.of_variant(title, variant), values))
    for number, test in enumerate(report.tests):
        yield from _test(number, test)
    yield _table(parts.health_table(report))
    yield _table(parts.repeatability_table(report))
    yield Section.folded(ReportTable("Made by", ["what", "value"], [list(each) for each in report.made_by.items()]))


def _test(number: int, test: TestReport) -> Iterator[str]:
    measured = test.measured
    if test.status is not Status.MEASURED:
        yield Section.sentences(parts.named(test), [f"{test.status}: {test.reason}"])
        return
    yield _heading(parts.named(test), [f"{test.trials} trials", *measured.scaled])
    for table in measured.tables:
        yield _table(table)
    for key, figure in _figures_of(number, test):
        yield Section.part(key, figure)


def _figures(report: BenchReport) -> Iterator[tuple[str, CurveFigure | BarFigure]]:
    for number, test in enumerate(report.tests):
        yield from _figures_of(number, test)


def _figures_of(number: int, test: TestReport) -> Iterator[tuple[str, CurveFigure | BarFigure]]:
    found: list[Any] = [*test.measured.curves, *test.measured.bars]
    for place, figure in enumerate(found):
        if not figure.is_empty:
            yield f"test-{number}-{place}", figure


def _heading(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<section class="test"><h2>{escape(title)}</h2><ul class="note">{items}</ul></section>'


def _table(table: ReportTable) -> str:
    return Section.table(table) if table.rows else ""


def _drawing(report: BenchReport) -> str:
    return f'<section><h2>Topology</h2><div class="scroll">{report.drawing}</div></section>' if report.drawing else ""
