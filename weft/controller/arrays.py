"""Reads a program's counters and registers over P4Runtime, by their names in P4Info."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import finsy
from finsy.proto import p4d, p4i, p4r

from weft.controller.counters import Count
from weft.controller.errors import SettingError
from weft.controller.session import SwitchSession

_SHOWN = 20


@dataclass(frozen=True)
class DirectCount:
    """Direct counter of a table entry or of the default entry; `entry` is its match as text."""

    entry: str
    count: Count


@dataclass(frozen=True)
class ProgramArrays:
    """A program's counters and registers by full name."""

    counters: Mapping[str, p4i.Counter]
    direct_counters: Mapping[str, p4i.DirectCounter]
    registers: Mapping[str, p4i.Register]

    @classmethod
    def of(cls, info: p4i.P4Info) -> ProgramArrays:
        """Return the arrays that P4Info lists."""
        return cls(
            {each.preamble.name: each for each in info.counters},
            {each.preamble.name: each for each in info.direct_counters},
            {each.preamble.name: each for each in info.registers},
        )

    @classmethod
    def all_of(cls, programs: Iterable[ProgramArrays]) -> ProgramArrays:
        """Return the arrays of several programs together."""
        each = list(programs)
        return cls(
            {name: info for one in each for name, info in one.counters.items()},
            {name: info for one in each for name, info in one.direct_counters.items()},
            {name: info for one in each for name, info in one.registers.items()},
        )

    def counter_names(self, patterns: Iterable[str]) -> list[str]:
        """Return the names of counters, including direct ones, that the patterns select.

        A pattern is a full name, a unique last part (P4Info's alias), or has wildcards (`*`, `?`).

        Raises:
            SettingError: a pattern selects nothing; the message lists the valid names.

        """
        return _selected({**self.counters, **self.direct_counters}, patterns, "counter")

    def register_names(self, patterns: Iterable[str]) -> list[str]:
        """Return the names of registers; see `counter_names`."""
        return _selected(self.registers, patterns, "register")


def _selected(objects: Mapping[str, Any], patterns: Iterable[str], what: str) -> list[str]:
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [
            name
            for name, each in objects.items()
            if pattern in (name, each.preamble.alias)
            or fnmatchcase(name, pattern)
            or fnmatchcase(each.preamble.alias, pattern)
        ]
        if not found:
            names = list(objects)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            valid = ", ".join(names[:_SHOWN]) + more if names else f"none: the program has no {what}"
            raise SettingError(f"the program has no {what} '{pattern}'", valid=valid)
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _one(objects: Mapping[str, Any], name: str, what: str) -> Any:
    for full_name, each in objects.items():
        if name in (full_name, each.preamble.alias):
            return each
    _selected(objects, [name] if not set("*?[") & set(name) else [], what)
    raise SettingError(f"'{name}' is not the name of one {what}")


async def read_counter(session: SwitchSession, name: str, index: int | None = None) -> dict[int, Count]:
    """Read one cell of a counter, or all cells if `index` is None; return counts by index.

    Raises:
        SettingError: no such counter, or it is a direct counter. RequestRefusedError: no such index.

    """
    arrays = ProgramArrays.of(session.schema.p4info)
    if any(name in (full, each.preamble.alias) for full, each in arrays.direct_counters.items()):
        raise SettingError(f"'{name}' is a table's direct counter: it has entries, not indices")
    info: p4i.Counter = _one(arrays.counters, name, "counter")
    query = p4r.CounterEntry(counter_id=info.preamble.id)
    if index is not None:
        query.index.index = index
    entities = await session.read_raw([p4r.Entity(counter_entry=query)])
    return {
        each.counter_entry.index.index: Count(each.counter_entry.data.packet_count, each.counter_entry.data.byte_count)
        for each in entities
    }


async def read_direct_counter(session: SwitchSession, name: str) -> list[DirectCount]:
    """Read the direct counters of a table's entries, the default entry last.

    Raises:
        SettingError: no such direct counter.

    """
    info: p4i.DirectCounter = _one(ProgramArrays.of(session.schema.p4info).direct_counters, name, "direct counter")
    table = next(
        each for each in session.schema.p4info.tables if each.preamble.id == info.direct_table_id
    ).preamble.name
    counted = finsy.P4CounterData()
    entries = await session.read(
        [
            finsy.P4TableEntry(table, counter_data=counted),
            finsy.P4TableEntry(table, is_default_action=True, counter_data=counted),
        ]
    )
    return [DirectCount(_entry_text(entry), _count_of(entry)) for entry in entries]


def _entry_text(entry: finsy.P4TableEntry) -> str:
    if entry.is_default_action:
        return "default"
    return ", ".join(f"{field}={value}" for field, value in (entry.match or {}).items()) or "any"


def _count_of(entry: finsy.P4TableEntry) -> Count:
    data = entry.counter_data
    return Count(data.packet_count, data.byte_count) if data is not None else Count()


async def read_register(session: SwitchSession, name: str, index: int | None = None) -> dict[int, int]:
    """Read one cell of a register, or all cells if `index` is None; return values by index.

    Raises:
        SettingError: no such register. RequestRefusedError: no such index, or the switch cannot read registers (BMv2).

    """
    info: p4i.Register = _one(ProgramArrays.of(session.schema.p4info).registers, name, "register")
    query = p4r.RegisterEntry(register_id=info.preamble.id)
    if index is not None:
        query.index.index = index
    is_signed = info.type_spec.bitstring.HasField("int")
    entities = await session.read_raw([p4r.Entity(register_entry=query)])
    return {each.register_entry.index.index: _value(each.register_entry.data, is_signed=is_signed) for each in entities}


def _value(data: p4d.P4Data, *, is_signed: bool) -> int:
    if data.HasField("bool"):
        return int(data.bool)
    return int.from_bytes(data.bitstring, "big", signed=is_signed)
