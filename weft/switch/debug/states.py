"""State of switches at a moment (entries, registers, counters, groups), and differences between two moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from weft.switch.backend import ActionCall, GroupRef, MemberRef, TableAction, TableEntry
from weft.switch.bmv2json import Program, Table
from weft.switch.coverage.sources import shown_tables
from weft.switch.native import NativeSwitch
from weft.switch.trace.values import key_text, number

MOST_VALUES = 200_000
"""Most values of a moment over all switches; further values are only counted."""
Value: TypeAlias = str | int
Section: TypeAlias = dict[str, dict[str, Value]]
"""Values by object (a table, an array) and by key (an entry's match, an index)."""
SECTIONS = ("entries", "registers", "counters", "groups")


class SwitchState(BaseModel):
    """State of one switch. Registers and counters have only cells that are not 0; counters are packets and bytes.

    `entries`: actions by table and match; `groups`: multicast groups, clone sessions, action profile groups.
    """

    model_config = ConfigDict(extra="forbid")

    program: str
    entries: Section = Field(default_factory=dict)
    registers: Section = Field(default_factory=dict)
    counters: Section = Field(default_factory=dict)
    groups: Section = Field(default_factory=dict)


class FabricState(BaseModel):
    """State of all switches at one moment; `left_out` values were beyond MOST_VALUES."""

    model_config = ConfigDict(extra="forbid")

    time_ps: int = Field(ge=0)
    switches: dict[str, SwitchState]
    left_out: int = 0


class StateReader:
    """Reads switches, up to MOST_VALUES in total."""

    def __init__(self) -> None:
        self._room = MOST_VALUES
        self.left_out = 0

    def read(self, switch: NativeSwitch, groups: Mapping[str, Mapping[str, str]]) -> SwitchState:
        """Return the state of a switch, with `groups` read over P4Runtime; empty without a program."""
        program = switch.program
        if program is None:
            return SwitchState(program="")
        state = SwitchState(program=PurePath(program.source).name)
        for table in shown_tables(program):
            self._table(switch, program, table, state)
        for name, register in program.register_arrays.items():
            cells = enumerate(switch.register_read_all(name))
            self._keep(state.registers, register.name, ((str(index), value) for index, value in cells if value))
        for name, counter in program.counter_arrays.items():
            if counter.table is None:
                counted = enumerate(switch.counter_read_all(name))
                cells_of = ((str(index), _count(each.packets, each.bytes)) for index, each in counted if each.packets)
                self._keep(state.counters, name, cells_of)
        for kind, found in groups.items():
            self._keep(state.groups, kind, iter(found.items()))
        return state

    def _table(self, switch: NativeSwitch, program: Program, table: Table, state: SwitchState) -> None:
        entries = list(switch.table_entries(table.name)) if table.key else []
        texts = sorted(((entry_text(table, entry), entry) for entry in entries), key=lambda pair: pair[0])
        actions = ((text, action_text(program, table, entry.action)) for text, entry in texts)
        self._keep(state.entries, table.name, actions)
        if table.with_counters:
            counts = (
                (text, switch.direct_counter_read(table.name, entry.key, entry.priority)) for text, entry in texts
            )
            self._keep(
                state.counters,
                table.name,
                ((text, _count(each.packets, each.bytes)) for text, each in counts if each.packets),
            )

    def _keep(self, section: Section, name: str, values: Iterator[tuple[str, Value]]) -> None:
        kept: dict[str, Value] = {}
        for key, value in values:
            if self._room:
                self._room -= 1
                kept[key] = value
            else:
                self.left_out += 1
        if kept:
            section[name] = kept


def _count(packets: int, size_bytes: int) -> str:
    return f"{packets} packets, {size_bytes} bytes"


def entry_text(table: Table, entry: TableEntry) -> str:
    """Return an entry's match as shown in traces, and its priority."""
    widths, names = [key.field.width_bits for key in table.key], [key.name for key in table.key]
    priority = f" (priority {entry.priority})" if entry.priority else ""
    return key_text(entry.key, widths, names) + priority


def action_text(program: Program, table: Table, action: TableAction) -> str:
    """Return an action with its arguments as shown in traces, or a member or group of an action profile."""
    match action:
        case MemberRef(member_id):
            return f"member {member_id}"
        case GroupRef(group_id):
            return f"group {group_id}"
        case ActionCall(name, arguments):
            parameters = table.action(name).parameters
            said = ", ".join(
                f"{parameter.name} = {number(value, parameter.width_bits, parameter.name)}"
                for parameter, value in zip(parameters, arguments, strict=True)
            )
            return f"{name}({said})"


@dataclass(frozen=True)
class Difference:
    """A change; `before` or `after` is None if the value did not exist."""

    switch: str
    section: str
    name: str
    key: str
    before: Value | None
    after: Value | None


def differences(before: FabricState, after: FabricState) -> Iterator[Difference]:
    """Yield all changes, by switch, section and name."""
    nothing = SwitchState(program="")
    for switch in dict.fromkeys((*before.switches, *after.switches)):
        first, second = before.switches.get(switch, nothing), after.switches.get(switch, nothing)
        for section in SECTIONS:
            of_first: Section = getattr(first, section)
            of_second: Section = getattr(second, section)
            for name in dict.fromkeys((*of_first, *of_second)):
                old, new = of_first.get(name, {}), of_second.get(name, {})
                for key in dict.fromkeys((*old, *new)):
                    if old.get(key) != new.get(key):
                        yield Difference(switch, section, name, key, old.get(key), new.get(key))
