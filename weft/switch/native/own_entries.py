"""A program's entries and default actions, prepared once for all switches that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.engine import _core
from weft.switch.backend import constant_table_entries
from weft.switch.bmv2json import Program
from weft.switch.native.bindings import ACTION, default_binding
from weft.switch.native.tables import NativeKey, NativeTable

NO_ACTION = _core.switch_abi()["kNoAction"]

_UNLIMITED = 2**63
"""Size limit for a program's entries: a table accepts all of them."""


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """A program's default actions and constant entries.

    Attributes:
        defaults: table and prepared action, for all tables.
        entries: prepared key and action; all are different, as the loader has checked.
        metered: table and key of entries with meters.

    """

    defaults: list[tuple[int, object]]
    entries: list[tuple[object, object]]
    metered: list[tuple[int, NativeKey]]


_known: dict[str, OwnEntries] = {}
"""Prepared entries by content hash of the program."""
_MAX_PROGRAMS = 16


def own_entries(native: _core.Switch, program: Program, tables: Mapping[str, NativeTable]) -> OwnEntries:
    """Return the entries of the program that `native` runs, for any switch that runs it."""
    found = _known.get(program.content_hash)
    if found is None:
        if len(_known) >= _MAX_PROGRAMS:
            _known.clear()
        found = _known[program.content_hash] = _prepared(native, tables)
    return found


def _prepared(native: _core.Switch, tables: Mapping[str, NativeTable]) -> OwnEntries:
    found = OwnEntries([], [], [])
    for target in tables.values():
        _, number, data = default_binding(target.table.default_entry, NO_ACTION)
        found.defaults.append((target.index, native.prepare_action(number, data)))
        for entry in constant_table_entries(target.table):
            key = target.encode_key(entry.key, entry.priority)
            kind, number, data = target.encode_action(entry.action)
            assert kind == ACTION
            prepared_key = native.prepare_key(target.index, *key, _UNLIMITED)
            found.entries.append((prepared_key, native.prepare_action(number, data)))
            if target.table.direct_meter is not None:
                found.metered.append((target.index, key))
    return found
