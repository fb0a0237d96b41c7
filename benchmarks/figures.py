"""What every benchmark prints: figures, each with its comparison and its goal, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rich.console import Console
from rich.table import Table

TABLE_WIDTH = 120
"""At least; a figure cut short says nothing."""


@dataclass(frozen=True)
class Figure:
    """One measured value.

    `ratio` relates it to what `beside` names, measured in the same run; `goal` is what `ratio` (the value itself
    without one) should reach, or stay below where `at_most`.
    """

    name: str
    value: float
    unit: str
    beside: str = ""
    ratio: float | None = None
    goal: float | None = None
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        measured = self.value if self.ratio is None else self.ratio
        return measured <= self.goal if self.at_most else measured >= self.goal


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="schedule what is measured before all ordinary processes (SCHED_RR), on a machine that is not quiet",
    )
    return parser


def report(title: str, figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print them."""
    if as_json:
        rows = [{**asdict(figure), "reached": figure.reached} for figure in figures]
        print(json.dumps({"benchmark": title, "figures": rows}, indent=1))
        return
    table = Table(title=title, title_justify="left")
    for heading in ("figure", "value", "", "ratio", "to", "goal", ""):
        numeric = heading in ("value", "ratio", "goal")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for figure in figures:
        table.add_row(
            figure.name,
            _number(figure.value),
            figure.unit,
            "" if figure.ratio is None else f"{_number(figure.ratio)} x",
            figure.beside,
            "" if figure.goal is None else f"{'<=' if figure.at_most else '>='} {_number(figure.goal)}",
            {True: "reached", False: "MISSED", None: ""}[figure.reached],
        )
    Console(width=max(Console().width, TABLE_WIDTH)).print(table)


def report_rows(title: str, rows: Sequence[Any], *, as_json: bool) -> None:
    """Print dataclass instances of one class, a row each; numbers stand on the right, and None is an empty cell."""
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    table = Table(title=title, title_justify="left")
    for each in fields(rows[0]):
        is_text = isinstance(getattr(rows[0], each.name), str)
        table.add_column(each.name.replace("_", " "), justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*map(_cell, asdict(row).values()))
    Console(width=max(Console().width, TABLE_WIDTH)).print(table)


def _cell(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def figures_by_full_name(rows: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """Figures from a benchmark's JSON. The name of an indented one begins with the name of the last that is not."""
    figures = []
    heading = ""
    for row in rows:
        name = str(row["name"])
        if not name.startswith(" "):
            heading = name
        full = heading if name == heading else f"{heading}: {name.strip()}"
        known = {each.name: row[each.name] for each in fields(Figure) if each.name in row}
        figures.append(Figure(**{**known, "name": full}))
    return figures


_SCALES = ((1e9, " G"), (1e6, " M"))


def quantity(value: float, unit: str) -> str:
    """A value to three digits with its unit, as prose has it: 2.86 M packets/s."""
    shown = "/s" if unit == "1/s" else f" {unit}" if unit else ""
    for scale, prefix in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:#.3g}".rstrip(".") + prefix + shown
    return _number(value) + shown
