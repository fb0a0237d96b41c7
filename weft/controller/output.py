"""Prints the CLI's rows: as a rich table on a terminal, as aligned plain lines elsewhere, as JSON on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from weft.controller.features.kind import Row


def print_rows(rows: Sequence[Row], as_json: bool, title: str) -> None:
    """Print rows with equal keys, or a message if there are none."""
    if as_json:
        click.echo(json.dumps(list(rows), indent=1))
    elif not rows:
        click.echo(f"{title}: none")
    elif sys.stdout.isatty():
        _print_table(rows, title)
    else:
        _print_plain(rows)


def _print_table(rows: Sequence[Row], title: str) -> None:
    table = Table(title=title, header_style="bold")
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float) or row[name] is None for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(text(value) for value in row.values()))
    Console().print(table)


def _print_plain(rows: Sequence[Row]) -> None:
    lines = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def text(value: Any) -> str:
    """Return a cell's value as text."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return " ".join(f"{name}={text(each)}" for name, each in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(text, value)) or "-"
    return str(value)
