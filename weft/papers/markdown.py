"""A result as Markdown: paper.md, and a section of docs/papers.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.papers.result import PaperResult
from weft.papers.study import Scale
from weft.quantities.readable import counted
from weft.report.markdown import markdown_table
from weft.results.report_parts import ReportTable


def markdown_of(result: PaperResult) -> str:
    """Return the page of a result."""
    return "\n".join([f"# {result.name}", "", *section_lines(result, with_tables=True)])


def section_lines(result: PaperResult, with_tables: bool = False) -> Iterable[str]:
    """Return the paragraphs of a result without its heading; `with_tables` adds what the runs found besides claims."""
    yield from (f"{result.citation}.", "")
    yield from (f"**Measured by its authors.** {result.measured_by_authors}", "")
    yield from (f"**Run here.** {result.run_here}", "")
    yield from (f"**Verdict: {verdict_sentence(result)}**", "")
    for table in (result.claims_table, result.shapes_table):
        yield from table_lines(table)
    yield from _items(result.explanations)
    yield from _items(result.notes)
    if with_tables:
        for table in result.tables:
            yield from (f"## {table.title}", "")
            yield from table_lines(table)


def verdict_sentence(result: PaperResult) -> str:
    """Return the verdict, and how many claims a reduced run could not judge."""
    if result.scale is Scale.FULL:
        return f"{result.verdict}."
    left = f"; {counted(result.unjudged, 'claim')} for the full size alone" if result.unjudged else ""
    return f"{result.verdict} at reduced size{left}."


def table_lines(table: ReportTable) -> Iterable[str]:
    """Return a table's lines and an empty one; nothing for a table without rows."""
    if table.is_empty:
        return
    yield from (markdown_table(table), "")
    if table.note:
        yield from (table.note, "")


def _items(sentences: Sequence[str]) -> Iterable[str]:
    if sentences:
        yield from (*(f"- {each}" for each in sentences), "")
