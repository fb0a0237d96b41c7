"""Converts the entries in a program to the form in which controllers write them."""

from __future__ import annotations

from weft.switch.backend import entities
from weft.switch.bmv2json import ConstantEntry, MatchKind, MatchValue, Table


def constant_table_entries(table: Table) -> list[entities.TableEntry]:
    """Return the program's entries of `table` with inverted priorities.

    In the result the higher priority wins.
    """
    lowest = 1 + max((entry.priority for entry in table.constant_entries), default=0)
    return [_constant_table_entry(table, entry, lowest) for entry in table.constant_entries]


def _constant_table_entry(table: Table, entry: ConstantEntry, lowest: int) -> entities.TableEntry:
    priority = lowest - entry.priority if table.needs_priority else 0
    key = tuple(_match(value) for value in entry.key)
    return entities.TableEntry(key, entities.ActionCall(entry.action.name, entry.arguments), priority)


def _match(value: MatchValue) -> entities.Match:
    if value.kind is MatchKind.LPM:
        return entities.LpmMatch(value.value, value.second)
    if value.kind is MatchKind.TERNARY:
        return entities.TernaryMatch(value.value, value.second)
    if value.kind is MatchKind.RANGE:
        return entities.RangeMatch(value.value, value.second)
    return entities.ExactMatch(value.value)
