"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.bench import report_parts as parts
from weft.bench.model import BenchReport, Status, TestReport
from weft.bench.suites import SUITES
from weft.report.markdown import escaped, markdown_table
from weft.results.report_parts import ReportTable
from weft.system.writing import written_whole

MARKDOWN_FILE = "bench.md"


def write_markdown(report: BenchReport, directory: Path) -> Path:
    """Write bench.md; returns its path. EnvironmentLacksError: it cannot be written."""
    target = directory / MARKDOWN_FILE
    with written_whole(target) as partial:
        partial.write_text(markdown(report), encoding="utf-8", newline="")
    return target


def markdown(report: BenchReport) -> str:
    """Return the report in the draft's seven parts."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: BenchReport) -> Iterator[str]:
    suite = SUITES[report.suite]
    yield f"# {suite.title}: {escaped(report.fabric)}"
    yield (
        f"{escaped(suite.draft)}, profile {report.profile}: {parts.verdict(report)}. Times are emulated. "
        "The draft's reference values are no limits, so nothing here passes or fails."
    )
    yield from _table(parts.kpi_table(report), "## ")
    yield from _table(parts.status_table(report), "## ")
    yield from _table(parts.facts("DUT identification", report.identification), "## ")
    yield from _table(parts.facts("Test topology", report.topology), "## ")
    yield "## Test configuration"
    for variant, values in report.configuration.items():
        yield from _table(parts.facts(parts.of_variant("Switches", variant), values), "### ")
    yield "## Host configuration"
    for variant, values in report.hosts.items():
        yield from _table(parts.facts(parts.of_variant("Hosts", variant), values), "### ")
    yield "## Test results"
    for test in report.tests:
        if test.status is Status.MEASURED:
            yield from _test(test)
    yield from _table(parts.health_table(report), "## ")
    yield "## Anomalies"
    yield _list(parts.anomalies(report)) or "None."
    yield "## Differences from the draft's procedures"
    yield _list(parts.scaled(report)) or "None."
    yield from _table(parts.repeatability_table(report), "## ")
    yield "## Made by"
    yield _list([f"{key}: {value}" for key, value in report.made_by.items()])


def _test(test: TestReport) -> Iterator[str]:
    yield f"### {escaped(parts.named(test))}"
    for table in test.measured.tables:
        yield from _table(table, "**")


def _table(table: ReportTable, heading: str) -> Iterator[str]:
    if not table.rows:
        return
    title = escaped(table.title)
    yield f"**{title}**" if heading == "**" else f"{heading}{title}"
    if table.note:
        yield f"{escaped(table.note[0].upper() + table.note[1:])}."
    yield markdown_table(table)


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
