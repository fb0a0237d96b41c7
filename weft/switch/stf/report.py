"""Outcomes of cases as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.switch.stf.cases import Outcome, Verdict

_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.REFUSED: "yellow"}


def counts(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Return the number of cases by architecture and verdict."""
    found: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.architecture, Counter())[outcome.verdict.value] += 1
    return {name: {verdict.value: found[name][verdict.value] for verdict in Verdict} for name in sorted(found)}


def as_json(outcomes: Sequence[Outcome], switch: str) -> dict[str, Any]:
    """Return the table's data, with every reason in full."""
    return {
        "switch": switch,
        "counts": counts(outcomes),
        "cases": [
            {
                "name": outcome.case.name,
                "program": str(outcome.case.program),
                "script": str(outcome.case.script),
                "architecture": outcome.architecture,
                "verdict": outcome.verdict.value,
                "reasons": list(outcome.reasons),
            }
            for outcome in outcomes
        ],
    }


def print_outcome(outcome: Outcome) -> None:
    """Print a single case: the verdict, then every reason in full."""
    click.secho(f"{outcome.case.name}: {outcome.verdict.value}", fg=_STYLES[outcome.verdict].split()[-1])
    for reason in outcome.reasons:
        click.echo(f"  {reason}")


def print_table(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print a row per case with its first reason, then a line of figures per architecture."""
    table = Table("case", "architecture", "outcome", "reason")
    for outcome in outcomes:
        verdict = Text(outcome.verdict.value, style=_STYLES[outcome.verdict])
        table.add_row(outcome.case.name, outcome.architecture, verdict, Text(_short_reason(outcome)))
    console.print(table)
    for name, figures in counts(outcomes).items():
        total = sum(figures.values())
        console.print(
            f"{name}: {figures['pass']} of {total} pass, {figures['fail']} fail, {figures['refused']} refused"
        )


def _short_reason(outcome: Outcome) -> str:
    if not outcome.reasons:
        return ""
    more = len(outcome.reasons) - 1
    return outcome.reasons[0] + (f" (and {more} more)" if more else "")
