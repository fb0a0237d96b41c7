"""Contents of tables that machine code may take for granted, so that a switch does not pay for what no table uses.

A table without entries needs no lookup, an action that nothing names no code, a parameter with the same value
everywhere no load. The engine holds code against every write (`SwitchObjects::specialise`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from weft.engine import _core
from weft.switch.bmv2json import Action, Program, Table
from weft.switch.lowering.layout import action_data_layout, native_bytes


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the tables of several switches have in common.

    Attributes:
        empty: names of tables without entries, with the id of their default action.
        arguments: by id of an action that an entry, a default entry or a member names, the value of each parameter;
            None where it differs.

    """

    empty: Mapping[str, int]
    arguments: Mapping[int, tuple[int | None, ...]]

    @classmethod
    def of_contents(cls, program: Program, contents: _core.CommonContents) -> Assumptions:
        """Return what may be assumed of tables with these contents."""
        tables, data = contents.tables, contents.actions
        empty = {}
        for name, number in program.table_numbers.items():
            has_entries, default = tables[number]
            if not has_entries and default is not None:
                empty[name] = default
        used = (each for each in program.actions.values() if each.id in data)
        return cls(empty, {each.id: _arguments(each, *data[each.id]) for each in used})

    def uses(self, action: Action) -> bool:
        """Whether any table or member names the action."""
        return action.id in self.arguments

    def argument(self, action: Action, index: int) -> int | None:
        """Return the value that a parameter always has, or None."""
        return self.arguments[action.id][index] if self.uses(action) else None

    def varies(self, action: Action) -> bool:
        """Whether the action has a parameter with different values."""
        return None in self.arguments[action.id]

    def default_of(self, table: Table) -> Action | None:
        """Return the action of all lookups in a table without entries; None if the table may have entries."""
        number = self.empty.get(table.name)
        return next((each for each in table.actions if each.id == number and self.uses(each)), None)

    def contents(self, program: Program) -> _core.CommonContents:
        """Return them in the engine's form, with which it compares writes."""
        numbers = {number: name for name, number in program.table_numbers.items()}
        tables = [(numbers[each] not in self.empty, self.empty.get(numbers[each])) for each in sorted(numbers)]
        actions = {
            each.id: _fixed_data(each, self.arguments[each.id]) for each in program.actions.values() if self.uses(each)
        }
        return _core.CommonContents(tables, actions)

    def to_text(self) -> str:
        """Return them as text: equal for equal assumptions."""
        return json.dumps([sorted(self.empty.items()), sorted(self.arguments.items())])


def _arguments(action: Action, data: bytes, fixed: bytes) -> tuple[int | None, ...]:
    layout = action_data_layout(action)
    values = layout.unpack(data)
    return tuple(
        value if all(fixed[offset : offset + native_bytes(width)]) else None
        for value, offset, width in zip(values, layout.offsets, layout.widths_bits, strict=True)
    )


def _fixed_data(action: Action, arguments: tuple[int | None, ...]) -> tuple[bytes, bytes]:
    """Return the data of an action, and 0xff for each byte of a fixed argument."""
    layout = action_data_layout(action)
    fixed = bytearray(layout.size_bytes)
    for value, offset, width in zip(arguments, layout.offsets, layout.widths_bits, strict=True):
        if value is not None:
            size = native_bytes(width)
            fixed[offset : offset + size] = bytes([0xFF]) * size
    return layout.pack(value or 0 for value in arguments), bytes(fixed)
