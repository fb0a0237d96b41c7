"""The native switch as a `SwitchBackend`: programs compiled through LLVM, packets forwarded by the C++
engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from engine import _core
from switch.backend import (
    ActionCall,
    BackendError,
    CapacityExceededError,
    CloneSession,
    CounterValue,
    Digest,
    EntryExistsError,
    EntryNotFoundError,
    GroupMember,
    GroupRef,
    IdleTimeout,
    InvalidRequestError,
    MemberRef,
    MeterConfig,
    NotPermittedError,
    NotReadyError,
    PacketIn,
    Replica,
    StreamEvent,
    TableAction,
    TableEntry,
    TableKey,
    UnsupportedProgramError,
    constant_table_entries,
)
from switch.bmv2json import Action, Program, Table, TableType
from switch.lowering import CompiledProgram, UnsupportedError, compile_program
from switch.lowering.layout import RegisterLayout, action_data_layout, bytes_for
from switch.native_keys import KeyEncoder, NativeKey

_ACTION, _MEMBER, _GROUP = 0, 1, 2
_EVENT_POLL_S = 0.5
_MAX_ID = 0xFFFFFFFF

Binding: TypeAlias = tuple[int, int, bytes]
"""How C++ takes a table action: kind, action or member or group id, packed action data."""


class NativeSwitch:
    """A switch of the engine. All methods may be called from any thread.

    `engine` gives the clock; ports are attached to `native` (`native.attach_port(number, transmit_port)`).
    A switch without ports still runs packets through its pipelines by `process`.
    """

    def __init__(
        self,
        engine: Any = None,
        name: str = "switch",
        *,
        cpu_port: int = 510,
        drop_port: int = 511,
        depth_unit: str = "cells",
        time_unit: str = "ns",
    ) -> None:
        self.engine = engine if engine is not None else _core.Engine()
        self.name = name
        self.native = _core.Switch(
            self.engine,
            name=name,
            cpu_port=cpu_port,
            drop_port=drop_port,
            depth_unit=depth_unit,
            time_unit=time_unit,
        )
        self._compiled: CompiledProgram | None = None
        self._keys: dict[str, KeyEncoder] = {}
        self._table_index: dict[str, int] = {}
        self._profile_index: dict[str, int] = {}
        self._idle = IdleWatch()

    # ---- program

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        return self._compiled.lowered.program if self._compiled is not None else None

    def load(self, program: Program) -> None:
        """Replace the program and all state. UnsupportedProgramError leaves the switch as it was."""
        try:
            compiled = compile_program(program)
        except UnsupportedError as error:
            raise UnsupportedProgramError(f"the native switch does not implement {error}") from None
        with self.engine.lock():
            self.native.load(compiled.native)
            self._compiled = compiled
            self._keys = {name: KeyEncoder(table) for name, table in program.tables.items()}
            self._table_index = {name: index for index, name in enumerate(program.tables)}
            self._profile_index = {name: index for index, name in enumerate(program.action_profiles)}
            self._idle = IdleWatch()
            for table in program.tables.values():
                self._apply_default(table, None)
                for entry in constant_table_entries(table):
                    self._insert(table, entry)

    def _loaded(self) -> CompiledProgram:
        if self._compiled is None:
            raise NotReadyError(f"switch '{self.name}' has no forwarding pipeline yet")
        return self._compiled

    def _table(self, name: str) -> Table:
        return _lookup(self._loaded().lowered.program.tables, name, "table")

    # ---- tables

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """Add an entry."""
        target = self._table(table)
        _require_mutable(target)
        size = self.native.table_size(self._table_index[table])
        if size >= target.max_size:
            raise CapacityExceededError(f"table '{table}' is full ({target.max_size} entries)")
        self._insert(target, entry)

    def _insert(self, table: Table, entry: TableEntry) -> None:
        key = self._keys[table.name].encode(entry.key, entry.priority)
        kind, number, data = self._binding(table, entry.action)
        inserted = self._call(
            self.native.table_insert,
            self._table_index[table.name], *key, kind, number, data, entry.idle_timeout_ns,
        )  # fmt: skip
        if not inserted:
            raise EntryExistsError(f"table '{table.name}' has an entry with this key and priority already")
        self._idle.watch(table.name, entry, key)

    def table_modify(self, table: str, entry: TableEntry) -> None:
        """Replace action and timeout of an entry."""
        target = self._table(table)
        _require_mutable(target)
        key = self._keys[table].encode(entry.key, entry.priority)
        kind, number, data = self._binding(target, entry.action)
        modified = self._call(
            self.native.table_modify,
            self._table_index[table], *key, kind, number, data, entry.idle_timeout_ns,
        )  # fmt: skip
        if not modified:
            raise _no_entry(table)
        self._idle.watch(table, entry, key)

    def table_delete(self, table: str, key: TableKey, priority: int) -> None:
        """Remove an entry."""
        _require_mutable(self._table(table))
        encoded = self._keys[table].encode(key, priority)
        if not self.native.table_delete(self._table_index[table], *encoded):
            raise _no_entry(table)
        self._idle.forget(table, encoded)

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """Set the action of a miss; None restores the program's."""
        target = self._table(table)
        if target.default_entry is not None and target.default_entry.constant and action is not None:
            raise NotPermittedError(f"the default action of table '{table}' is constant")
        self._apply_default(target, action)

    def _apply_default(self, table: Table, action: TableAction | None) -> None:
        if action is not None:
            binding = self._binding(table, action)
        elif table.default_entry is not None:
            binding = self._direct(table.default_entry.action, table.default_entry.arguments)
        else:
            binding = (_ACTION, _core.switch_abi()["kNoAction"], b"")
        self._call(self.native.table_set_default, self._table_index[table.name], *binding)

    def table_idle_ns(self, table: str, key: TableKey, priority: int) -> int:
        """Time since the entry was last hit or written."""
        return int(self._with_entry(self.native.entry_idle_ns, table, key, priority))

    def _binding(self, table: Table, action: TableAction) -> Binding:
        match action:
            case ActionCall(name, arguments):
                if table.type is not TableType.SIMPLE:
                    raise InvalidRequestError(
                        f"table '{table.name}' takes members of its action profile only"
                    )
                return self._direct(_table_action(table, name), arguments)
            case MemberRef(member_id):
                if table.type is TableType.SIMPLE:
                    raise InvalidRequestError(f"table '{table.name}' has no action profile")
                return _MEMBER, _checked_id(member_id), b""
            case GroupRef(group_id):
                if table.type is not TableType.INDIRECT_WITH_SELECTOR:
                    raise InvalidRequestError(f"table '{table.name}' has no action selector")
                return _GROUP, _checked_id(group_id), b""

    def _direct(self, action: Action, arguments: Sequence[int]) -> Binding:
        return _ACTION, action.id, _packed(action, arguments)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """C++ says with ValueError that a member or group which an entry names does not exist."""
        try:
            return function(*arguments)
        except ValueError as error:
            raise EntryNotFoundError(str(error)) from None

    def _with_entry(
        self, function: Callable[..., Any], table: str, key: TableKey | None, priority: int, *arguments: Any
    ) -> Any:
        self._table(table)
        encoded = None if key is None else self._keys[table].encode(key, priority)
        try:
            return function(self._table_index[table], encoded, *arguments)
        except KeyError:
            raise _no_entry(table) from None

    # ---- action profiles

    def _profile(self, name: str) -> int:
        _lookup(self._loaded().lowered.program.action_profiles, name, "action profile")
        return self._profile_index[name]

    def _profile_action(self, profile: str, call: ActionCall) -> tuple[int, bytes]:
        program = self._loaded().lowered.program
        for table in program.tables.values():
            if table.action_profile == profile:
                action = _table_action(table, call.action)
                return action.id, _packed(action, call.arguments)
        raise InvalidRequestError(f"no table uses action profile '{profile}'")

    def _require_room(self, profile: str) -> None:
        program = self._loaded().lowered.program
        members, groups = self.native.profile_sizes(self._profile_index[profile])
        limit = program.action_profiles[profile].max_size
        if max(members, groups) >= limit:
            raise CapacityExceededError(f"action profile '{profile}' is full ({limit} members or groups)")

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member to an action profile."""
        index = self._profile(profile)
        number, data = self._profile_action(profile, action)
        self._require_room(profile)
        if not self.native.member_insert(index, _checked_id(member_id), number, data):
            raise EntryExistsError(f"action profile '{profile}' has a member {member_id} already")

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace a member's action."""
        index = self._profile(profile)
        number, data = self._profile_action(profile, action)
        self._in_profile(profile, self.native.member_modify, index, _checked_id(member_id), number, data)

    def member_delete(self, profile: str, member_id: int) -> None:
        """Remove a member."""
        index = self._profile(profile)
        if not self._in_profile(profile, self.native.member_delete, index, _checked_id(member_id)):
            raise NotReadyError(f"member {member_id} of action profile '{profile}' is in use")

    def group_insert(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Add a group."""
        index = self._selector(profile)
        self._require_room(profile)
        native_members = _native_members(members)
        if not self._in_profile(
            profile, self.native.group_insert, index, _checked_id(group_id), native_members
        ):
            raise EntryExistsError(f"action profile '{profile}' has a group {group_id} already")

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Replace a group's members."""
        index = self._selector(profile)
        native_members = _native_members(members)
        self._in_profile(profile, self.native.group_modify, index, _checked_id(group_id), native_members)

    def group_delete(self, profile: str, group_id: int) -> None:
        """Remove a group."""
        index = self._selector(profile)
        if not self._in_profile(profile, self.native.group_delete, index, _checked_id(group_id)):
            raise NotReadyError(f"group {group_id} of action profile '{profile}' is in use")

    def _selector(self, profile: str) -> int:
        index = self._profile(profile)
        if self._loaded().lowered.program.action_profiles[profile].selector_algorithm is None:
            raise InvalidRequestError(f"action profile '{profile}' has no selector, so no groups")
        return index

    def _in_profile(self, profile: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except KeyError as error:
            raise EntryNotFoundError(f"action profile '{profile}': {error.args[0]}") from None

    def set_port_up(self, port: int, up: bool) -> None:
        """Take members that watch `port` out of their groups, or back in."""
        for index in self._profile_index.values():
            self.native.set_watch_port_up(index, port, up)

    # ---- counters and meters

    def _counter(self, name: str, index: int | None = None) -> tuple[int, int]:
        """First cell and size of an indirect counter array."""
        compiled = self._loaded()
        array = _lookup(compiled.lowered.program.counter_arrays, name, "counter")
        if array.table is not None:
            raise InvalidRequestError(f"counter '{name}' is direct (of table '{array.table}')")
        if index is not None:
            _check_index(name, index, array.size)
        return compiled.lowered.counter_offsets[name], array.size

    def counter_read(self, counter: str, index: int) -> CounterValue:
        """One cell of an indirect counter array."""
        first, _ = self._counter(counter, index)
        return CounterValue(*self.native.counters_read(first + index, 1)[0])

    def counter_read_all(self, counter: str) -> Sequence[CounterValue]:
        """All cells of an indirect counter array."""
        return [CounterValue(*cell) for cell in self.native.counters_read(*self._counter(counter))]

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter array."""
        first, _ = self._counter(counter, index)
        self.native.counter_write(first + index, value.packets, value.bytes)

    def direct_counter_read(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """The counter of an entry, of the default action for key None."""
        self._require_counters(table)
        return CounterValue(*self._with_entry(self.native.entry_counter, table, key, priority))

    def direct_counter_write(
        self, table: str, key: TableKey | None, priority: int, value: CounterValue
    ) -> None:
        """Set the counter of an entry (key None: of the default action)."""
        self._require_counters(table)
        self._with_entry(self.native.set_entry_counter, table, key, priority, value.packets, value.bytes)

    def _require_counters(self, table: str) -> None:
        if not self._table(table).with_counters:
            raise InvalidRequestError(f"table '{table}' has no direct counter")

    def _meter(self, name: str, index: int) -> int:
        compiled = self._loaded()
        array = _lookup(compiled.lowered.program.meter_arrays, name, "meter")
        if array.table is not None:
            raise InvalidRequestError(f"meter '{name}' is direct (of table '{array.table}')")
        _check_index(name, index, array.size)
        return compiled.lowered.meter_offsets[name] + index

    def meter_read(self, meter: str, index: int) -> MeterConfig | None:
        """One cell of an indirect meter array; None lets everything pass green."""
        return _meter_config(self.native.meter_read(self._meter(meter, index)))

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array."""
        self.native.meter_write(self._meter(meter, index), _meter_tuple(config))

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterConfig | None:
        """The meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        return _meter_config(self._with_entry(self.native.entry_meter, table, key, priority))

    def direct_meter_write(
        self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None
    ) -> None:
        """Configure the meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        self._with_entry(self.native.set_entry_meter, table, key, priority, _meter_tuple(config))

    def _require_meter(self, table: str) -> None:
        if self._table(table).direct_meter is None:
            raise InvalidRequestError(f"table '{table}' has no direct meter")

    # ---- registers

    def _register(self, name: str) -> RegisterLayout:
        compiled = self._loaded()
        _lookup(compiled.lowered.program.register_arrays, name, "register")
        return compiled.lowered.registers[name]

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""
        layout = self._register(register)
        _check_index(register, index, layout.size)
        return self._register_cells(layout, index, 1)[0]

    def register_read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""
        layout = self._register(register)
        return self._register_cells(layout, 0, layout.size)

    def _register_cells(self, layout: RegisterLayout, first: int, count: int) -> list[int]:
        offset = layout.offset_bytes + first * layout.stride_bytes
        cell = layout.cell_bytes
        data = self.native.registers_read(offset, layout.stride_bytes, cell, count)
        return [int.from_bytes(data[at : at + cell], "little") for at in range(0, len(data), cell)]

    def register_write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""
        layout = self._register(register)
        _check_index(register, index, layout.size)
        self._register_fill(register, layout, index, 1, value)

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""
        layout = self._register(register)
        self._register_fill(register, layout, 0, layout.size, value)

    def _register_fill(self, name: str, layout: RegisterLayout, first: int, count: int, value: int) -> None:
        _check_width(f"register '{name}'", value, layout.width_bits)
        cell = value.to_bytes(layout.cell_bytes, "little")
        offset = layout.offset_bytes + first * layout.stride_bytes
        self.native.registers_fill(offset, layout.stride_bytes, cell, count)

    # ---- replication, value sets

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group."""
        if not 1 <= group_id <= 0xFFFF:
            raise InvalidRequestError(f"multicast group {group_id} (valid: 1 to 65535)")
        self.native.multicast_group_set(group_id, _native_replicas(replicas))

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group."""
        if group_id < 0 or not self.native.multicast_group_delete(group_id):
            raise EntryNotFoundError(f"multicast group {group_id}")

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""
        if not 0 <= session_id <= 0x7FFF:
            raise InvalidRequestError(f"clone session {session_id} (valid: 0 to 32767)")
        self.native.clone_session_set(
            session_id,
            _native_replicas(session.replicas),
            session.class_of_service,
            session.packet_length_bytes,
        )

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session."""
        if session_id < 0 or not self.native.clone_session_delete(session_id):
            raise EntryNotFoundError(f"clone session {session_id}")

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set, (value, mask) pairs laid out as a `Transition`'s
        value.
        """
        program = self._loaded().lowered.program
        _lookup(program.value_sets, value_set, "value set")
        size = _value_set_bytes(program, value_set)
        native = []
        for value, mask in members:
            _check_width(f"value set '{value_set}'", value, size * 8)
            _check_width(f"value set '{value_set}'", mask, size * 8)
            native.append((value.to_bytes(size, "big"), mask.to_bytes(size, "big")))
        self.native.value_set_write(list(program.value_sets).index(value_set), native)

    # ---- packets

    def packet_out(self, data: bytes) -> None:
        """Let the switch receive a packet on its CPU port."""
        self._loaded()
        self.native.packet_out(data)

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event of this switch; None when the time is over (None waits without end)."""
        left = math.inf if timeout_s is None else timeout_s
        while True:
            if (timeout := self._idle.next_event(self)) is not None:
                return timeout
            slice_s = min(left, _EVENT_POLL_S)
            event = self.native.wait_event(slice_s)
            if event is not None:
                return self._stream_event(*event)
            left -= slice_s
            if left <= 0:
                return None

    def _stream_event(self, kind: str, learn_list_id: int, data: bytes, _time_ps: int) -> StreamEvent:
        if kind == "packet_in":
            return PacketIn(data)
        values = []
        for element in self._loaded().lowered.program.learn_lists[learn_list_id].elements:
            size = bytes_for(getattr(element, "width_bits", None) or 0)
            values.append(int.from_bytes(data[:size], "big"))
            data = data[size:]
        return Digest(learn_list_id, tuple(values))

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Run one packet through both pipelines at once, without queues; what leaves, as (port, bytes)."""
        self._loaded()
        outputs: list[tuple[int, bytes]] = self.native.process(port, data)
        return outputs

    def drops(self) -> dict[str, int]:
        """Packets dropped since the start, by reason."""
        drops: dict[str, int] = self.native.drops()
        return drops


class IdleWatch:
    """Entries with an idle timeout, and which of them have been reported since they were last hit."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, NativeKey], TableEntry] = {}
        self._reported: set[tuple[str, NativeKey]] = set()

    def watch(self, table: str, entry: TableEntry, key: NativeKey) -> None:
        """Start, change or end the watch over an entry that was written."""
        self.forget(table, key)
        if entry.idle_timeout_ns:
            self._entries[table, key] = entry

    def forget(self, table: str, key: NativeKey) -> None:
        """End the watch over an entry."""
        self._entries.pop((table, key), None)
        self._reported.discard((table, key))

    def next_event(self, switch: NativeSwitch) -> IdleTimeout | None:
        """An entry that has become idle and was not reported yet."""
        for (table, key), entry in list(self._entries.items()):
            try:
                idle_ns = switch.table_idle_ns(table, entry.key, entry.priority)
            except BackendError:
                continue  # removed meanwhile
            if idle_ns < entry.idle_timeout_ns:
                self._reported.discard((table, key))
            elif (table, key) not in self._reported:
                self._reported.add((table, key))
                return IdleTimeout(table, entry.key, entry.priority)
        return None


# ---- checks and conversions


def _lookup(known: Any, name: str, what: str) -> Any:
    try:
        return known[name]
    except KeyError:
        valid = ", ".join(f"'{other}'" for other in known)
        raise InvalidRequestError(f"unknown {what} '{name}' (valid: {valid or 'none'})") from None


def _no_entry(table: str) -> EntryNotFoundError:
    return EntryNotFoundError(f"table '{table}' has no entry with this key and priority")


def _require_mutable(table: Table) -> None:
    if table.immutable:
        raise NotPermittedError(f"the entries of table '{table.name}' are constant")


def _check_index(name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise InvalidRequestError(f"index {index} of '{name}' (valid: 0 to {size - 1})")


def _check_width(what: str, value: int, width_bits: int) -> None:
    if not 0 <= value < 1 << width_bits:
        raise InvalidRequestError(f"{what}: value {value} does not fit into {width_bits} bits")


def _checked_id(number: int) -> int:
    if not 0 <= number <= _MAX_ID:
        raise InvalidRequestError(f"id {number} (valid: 0 to {_MAX_ID})")
    return number


def _table_action(table: Table, name: str) -> Action:
    try:
        return table.action(name)
    except KeyError:
        valid = ", ".join(f"'{action.name}'" for action in table.actions)
        raise InvalidRequestError(f"table '{table.name}': unknown action '{name}' (valid: {valid})") from None


def _packed(action: Action, arguments: Sequence[int]) -> bytes:
    if len(arguments) != len(action.parameters):
        raise InvalidRequestError(
            f"action '{action.name}' takes {len(action.parameters)} arguments, not {len(arguments)}"
        )
    for parameter, value in zip(action.parameters, arguments, strict=True):
        _check_width(f"action '{action.name}', parameter '{parameter.name}'", value, parameter.width_bits)
    return action_data_layout(action).pack(arguments)


def _native_members(members: Sequence[GroupMember]) -> list[tuple[int, int, int]]:
    for member in members:
        if not 1 <= member.weight <= 0xFFFF:
            raise InvalidRequestError(
                f"weight {member.weight} of member {member.member_id} (valid: 1 to 65535)"
            )
    ids = [member.member_id for member in members]
    if len(set(ids)) != len(ids):
        raise InvalidRequestError("a member appears twice in a group; give it a weight instead")
    return [
        (_checked_id(member.member_id), member.weight, -1 if member.watch_port is None else member.watch_port)
        for member in members
    ]


def _native_replicas(replicas: Sequence[Replica]) -> list[tuple[int, int]]:
    return [(_checked_id(replica.port), _checked_id(replica.instance)) for replica in replicas]


def _meter_config(values: tuple[float, int, float, int] | None) -> MeterConfig | None:
    return None if values is None else MeterConfig(int(values[0]), values[1], int(values[2]), values[3])


def _meter_tuple(config: MeterConfig | None) -> tuple[float, int, float, int] | None:
    if config is None:
        return None
    values = (config.committed_rate, config.committed_burst, config.peak_rate, config.peak_burst)
    if min(values) < 0:
        raise InvalidRequestError(f"meter configuration {config} has a negative value")
    return (
        float(config.committed_rate),
        config.committed_burst,
        float(config.peak_rate),
        config.peak_burst,
    )


def _value_set_bytes(program: Program, value_set: str) -> int:
    for parser in program.parsers.values():
        for state in parser.states.values():
            if any(item.value_set == value_set for item in state.transitions):
                return state.key_width_bits // 8
    return bytes_for(program.value_sets[value_set].width_bits)
