"""One offline HTML page of a paper's result."""

from __future__ import annotations

from html import escape

from weft.papers.markdown import verdict_sentence
from weft.papers.result import PaperResult
from weft.papers.study import Verdict
from weft.report.html import Section, html_page


def paper_page(result: PaperResult) -> str:
    """Return the page; EnvironmentLacksError: it has figures, and plotly is missing."""
    good = result.verdict is not Verdict.NOT_REPRODUCED
    figures = {f"paper-{number}": figure for number, figure in enumerate(result.figures)}
    tables = [table for table in (result.claims_table, result.shapes_table, *result.tables) if not table.is_empty]
    return html_page(
        title=result.name,
        verdict=f'<span class="{"good" if good else "bad"}">{escape(verdict_sentence(result).rstrip("."))}</span>',
        subtitle=result.citation,
        sections=[
            Section.sentences("Measured by the authors", [result.measured_by_authors], is_notice=False),
            Section.sentences("Run here", [result.run_here, *result.notes], is_notice=False),
            *(Section.table(table) for table in tables[:2]),
            Section.sentences("Why values differ", result.explanations),
            *(Section.part(key, figure) for key, figure in figures.items()),
            *(Section.table(table) for table in tables[2:]),
        ],
        data={"figures": {key: figure.data() for key, figure in figures.items()}},
    )
