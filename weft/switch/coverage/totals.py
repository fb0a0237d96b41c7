"""Totals of coverage: reached and all lines, branches, actions, states, tables and entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.switch.coverage.choices import Choice
from weft.switch.coverage.model import ProgramCoverage


def totals(coverage: ProgramCoverage) -> dict[str, tuple[int, int]]:
    """Return (reached, all) by kind. A condition has two branches."""
    return {
        "lines": _reached(count for lines in coverage.lines.values() for count in lines.values()),
        "branches": _reached(count for branch in coverage.branches.values() for count in (branch.false, branch.true)),
        "cases": _reached(case.count for _, choice in _choices(coverage) for case in choice.cases),
        "actions": _reached(coverage.actions.values()),
        "parser states": _reached(coverage.states.values()),
        "tables": _reached(sum(counts) for counts in coverage.tables.values()),
        "entries": _reached(hits for entries in coverage.entries.values() for hits in entries.values()),
    }


def _reached(counts: Iterable[int]) -> tuple[int, int]:
    known = list(counts)
    return sum(count > 0 for count in known), len(known)


def never(coverage: ProgramCoverage) -> list[tuple[str, str]]:
    """Return everything that no packet reached, as (kind, name)."""
    found = [("action", name) for name, count in coverage.actions.items() if not count]
    found += [("parser state", name) for name, count in coverage.states.items() if not count]
    found += [("table", name) for name, counts in coverage.tables.items() if not sum(counts)]
    found += [
        ("entry", f"{table}: {entry}")
        for table, entries in coverage.entries.items()
        for entry, hits in entries.items()
        if not hits
    ]
    found += [
        ("branch", f"{branch.text} is never {outcome} (line {branch.line})")
        for branch in coverage.branches.values()
        for outcome, count in (("false", branch.false), ("true", branch.true))
        if not count and branch.false + branch.true
    ]
    found += [
        ("case", f"{name}: {case.text}" + (f" (line {case.line})" if case.line else ""))
        for name, choice in _choices(coverage)
        for case in choice.cases
        if not case.count
    ]
    return found


def _choices(coverage: ProgramCoverage) -> Iterator[tuple[str, Choice]]:
    """Yield the choices except entries, which are counted separately."""
    return ((name, choice) for name, choice in coverage.choices.items() if choice.kind != "entries")
