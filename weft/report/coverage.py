"""A directory of coverage: coverage.json, to which further runs add; coverage.info for lcov; index.html to look at."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from pydantic import TypeAdapter

from weft.cache import UnreadableFileError, read_text
from weft.report.html import Section, html_page
from weft.results.json_files import read_whole
from weft.results.report_parts import ReportTable
from weft.switch.coverage.lcov import lcov_text
from weft.switch.coverage.model import ProgramCoverage, merged
from weft.switch.coverage.totals import never, totals
from weft.system.writing import written_whole

COUNTS, TRACEFILE, PAGE = "coverage.json", "coverage.info", "index.html"
MAX_BYTES = 256 << 20
MAX_SOURCE_BYTES = 4 << 20
MOST_ROWS = 200
_COVERAGES = TypeAdapter(list[ProgramCoverage])


def read_coverage(directory: Path) -> list[ProgramCoverage]:
    """Coverage of earlier runs; empty without one. BadInputError: coverage.json is something else."""
    path = directory / COUNTS
    if not path.exists():
        return []
    return read_whole(_COVERAGES, path, MAX_BYTES, "this file holds no coverage of Weft's")


def add_coverage(directory: Path, found: Sequence[ProgramCoverage]) -> list[ProgramCoverage]:
    """Add what was reached to a directory, which is made if need be, and return all that it has then.

    Raises:
        BadInputError: its coverage.json cannot be added to. EnvironmentLacksError: it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        together = merged([*read_coverage(directory), *found])
        texts = {
            COUNTS: _COVERAGES.dump_json(together, indent=1).decode(),
            TRACEFILE: lcov_text(together),
            PAGE: coverage_page(together),
        }
        for name, text in texts.items():
            with written_whole(directory / name) as partial:
                partial.write_text(text, encoding="utf-8")
    return together


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Concurrent tests add to a directory one after the other."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def coverage_page(coverages: Sequence[ProgramCoverage]) -> str:
    """Totals, what was never reached, and every source with the count of each line."""
    sections = []
    for coverage in coverages:
        sections.append(Section.table(totals_table(coverage)))
        sections.append(_never_section(coverage))
        sections += [_source(file, coverage) for file in coverage.lines]
    names = ", ".join(each.name for each in coverages)
    return html_page("Coverage", "", f"What packets reached of {names}", sections, {"figures": {}})


def totals_table(coverage: ProgramCoverage) -> ReportTable:
    """Reached and all, a row for each kind of thing."""
    rows = [
        (what, f"{reached} of {count}", f"{reached / count:.0%}" if count else "")
        for what, (reached, count) in totals(coverage).items()
    ]
    return ReportTable(coverage.name, ("", "reached", "share"), rows)


def never_table(coverage: ProgramCoverage, most_rows: int = MOST_ROWS) -> ReportTable:
    """Parts that no packet reached."""
    found = never(coverage)
    left_out = len(found) - most_rows
    note = f"{left_out} more are left out" if left_out > 0 else ""
    return ReportTable(f"Never reached in {coverage.name}", ("", "name"), found[:most_rows], note)


def _never_section(coverage: ProgramCoverage) -> str:
    table = never_table(coverage)
    return "" if table.is_empty else Section.table(table)


def _source(file: str, coverage: ProgramCoverage) -> str:
    counts = coverage.lines[file]
    try:
        text = read_text(file, MAX_SOURCE_BYTES)
    except (UnreadableFileError, OSError, ValueError):
        return ""  # the source is not where it was compiled: the tables above remain
    outcomes = outcomes_by_line(file, coverage)
    rows = "\n".join(
        _line(number, line, counts.get(number), outcomes.get(number, []))
        for number, line in enumerate(text.splitlines(), 1)
    )
    return f'<section class="source"><h2>{escape(Path(file).name)}</h2><p>{escape(file)}</p><pre>{rows}</pre></section>'


def outcomes_by_line(file: str, coverage: ProgramCoverage) -> dict[int, list[tuple[str, int]]]:
    """Outcomes of each line of a file that has conditions or cases, and their counts."""
    found: dict[int, list[tuple[str, int]]] = {}
    for branch in coverage.branches.values():
        if branch.file == file:
            found.setdefault(branch.line, []).extend(
                (f"{branch.text} is {outcome}", count)
                for outcome, count in (("true", branch.true), ("false", branch.false))
            )
    for name, choice in coverage.choices.items():
        for case in choice.cases if choice.file == file else ():
            found.setdefault(case.line, []).append((f"{name}: {case.text}", case.count))
    return found


def _line(number: int, text: str, count: int | None, outcomes: Sequence[tuple[str, int]]) -> str:
    is_partly = any(taken for _, taken in outcomes) and not all(taken for _, taken in outcomes)
    kind = "" if count is None else "missed" if count == 0 else "partly" if is_partly else "reached"
    shown = "" if count is None else str(count)
    told = escape("\n".join(f"{taken} × {what}" for what, taken in outcomes), quote=True)
    title = f' title="{told}"' if told else ""
    return f'<span class="{kind}"{title}><i>{number:>5}</i><b>{shown:>9}</b>  {escape(text)}</span>'
