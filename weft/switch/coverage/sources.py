"""Source places of a program's parts, and counts for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from weft.switch.bmv2json import Program, Table
from weft.switch.trace.places import Place, table_place

Source: TypeAlias = tuple[str, int]
"""File and line."""
Counted: TypeAlias = Mapping[Place, tuple[int, ...]]
"""How often each place had each of its outcomes."""


def located(source: str | None) -> Source | None:
    """Return file and line of `file:line: fragment`, None without them.

    The path is absolute if the file exists, because later runs in other folders read saved coverage.
    """
    file, _, rest = (source or "").partition(": ")[0].rpartition(":")
    if not file or not rest.isdecimal():
        return None
    return os.path.abspath(file) if os.path.isfile(file) else file, int(rest)


def shown_tables(program: Program) -> Iterator[Table]:
    """Return the tables that the program declares; compilers add others for statements."""
    return (table for table in program.tables.values() if not table.name.startswith("tbl_"))


def lookups(table: Table, counts: Counted) -> tuple[int, int]:
    """Return the misses and hits of a table."""
    misses, hits = counts[table_place(table)]
    return misses, hits
