"""Converts the entries in a program to the form in which controllers write them."""

from __future__ import annotations

from weft.switch.backend.entities import (
    ActionCall,
    ExactMatch,
    LpmMatch,
    Match,
    RangeMatch,
    TableEntry,
    TernaryMatch,
)
from weft.switch.bmv2json import ConstantEntry, MatchKind, MatchValue, Table


def constant_table_entries(table: Table) -> list[TableEntry]:
    """Return the program's entries of `table` with inverted priorities.

    In the result the higher priority wins.
    """
    lowest = 1 + max((entry.priority for entry in table.constant_entries), default=0)
    return [_constant_table_entry(table, entry, lowest) for entry in table.constant_entries]


def _constant_table_entry(table: Table, entry: ConstantEntry, lowest: int) -> TableEntry:
    priority = lowest - entry.priority if table.needs_priority else 0
    key = tuple(_match(value) for value in entry.key)
    return TableEntry(key, ActionCall(entry.action.name, entry.arguments), priority)


def _match(value: MatchValue) -> Match:
    if value.kind is MatchKind.LPM:
        return LpmMatch(value.value, value.second)
    if value.kind is MatchKind.TERNARY:
        return TernaryMatch(value.value, value.second)
    if value.kind is MatchKind.RANGE:
        return RangeMatch(value.value, value.second)
    return ExactMatch(value.value)
