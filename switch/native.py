"""The native switch as a `SwitchBackend`: programs compiled through LLVM, packets forwarded by the C++
engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from engine import _core
from switch.backend import (
    ActionCall,
    CapacityExceededError,
    CloneSession,
    CounterValue,
    Digest,
    EntryExistsError,
    EntryNotFoundError,
    GroupMember,
    InvalidRequestError,
    MeterConfig,
    MeterState,
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
from switch.bmv2json import Program
from switch.checks import (
    check_clone_session,
    check_group,
    check_index,
    check_multicast_group,
    check_value,
    named,
)
from switch.live_replicas import Failover
from switch.lowering import CompiledProgram, UnsupportedError, compile_program
from switch.lowering.layout import RegisterLayout, bytes_for
from switch.native_idle import IdleWatch
from switch.native_tables import NativeTable
from switch.native_trace import NativeTrace
from switch.native_values import (
    checked_id,
    default_binding,
    member_action,
    meter_state,
    meter_state_tuple,
    meter_tuple,
    native_members,
    native_replicas,
    value_set_bytes,
)

_EVENT_POLL_S = 0.5
MAX_TABLE_SIZE = 2**63
"""Of what the program itself puts into its tables."""


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
        self._tables: dict[str, NativeTable] = {}
        self._profile_index: dict[str, int] = {}
        self._idle = IdleWatch()
        self._failover = Failover()
        self.trace = NativeTrace(self.engine, self.native, name)

    # ---- program

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        return self._compiled.program if self._compiled is not None else None

    def verify(self, program: Program) -> None:
        """Compile a program without running it."""
        self._compile(program)

    def _compile(self, program: Program) -> CompiledProgram:
        try:
            return compile_program(program)
        except UnsupportedError as error:
            raise UnsupportedProgramError(f"the native switch does not implement {error}") from None

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """Replace the program and all state. UnsupportedProgramError leaves the switch as it was."""
        compiled = self._compile(program)
        self.trace.prepare(program)
        with self.engine.lock():
            self.native.load(compiled.native)
            self.trace.loaded(compiled)
            self._compiled = compiled
            self._tables = {
                name: NativeTable(
                    table, index, modifiable=not table.immutable or table.name in preinitialized
                )
                for index, (name, table) in enumerate(program.tables.items())
            }
            self._profile_index = {name: index for index, name in enumerate(program.action_profiles)}
            self._idle = IdleWatch()
            self._failover.clear()
            for port in self._failover.ports_down:
                for index in self._profile_index.values():
                    self.native.set_watch_port_up(index, port, False)
            for table in self._tables.values():
                self._apply_default(table, None)
                for entry in constant_table_entries(table.table):
                    self._insert(table, entry)

    def atomically(self) -> AbstractContextManager[Any]:
        """While inside, no packet is processed."""
        lock: AbstractContextManager[Any] = self.engine.lock()
        return lock

    def _loaded(self) -> CompiledProgram:
        if self._compiled is None:
            raise NotReadyError(f"switch '{self.name}' has no forwarding pipeline yet")
        return self._compiled

    def _table(self, name: str) -> NativeTable:
        found = self._tables.get(name)
        if found is None:
            self._loaded()
            return named(self._tables, name, "table")
        return found

    # ---- tables

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """Add an entry."""
        target = self._table(table)
        _check_modifiable(target)
        self._insert(target, entry, target.table.max_size)

    def _insert(self, target: NativeTable, entry: TableEntry, max_size: int = MAX_TABLE_SIZE) -> None:
        key = target.encode_key(entry.key, entry.priority)
        binding = target.encode_action(entry.action)
        name = target.table.name
        try:
            inserted = self.native.table_insert(target.index, *key, *binding, entry.idle_timeout_ns, max_size)
        except ValueError as error:
            raise EntryNotFoundError(str(error)) from None
        except OverflowError:
            raise CapacityExceededError(f"table '{name}' is full ({max_size} entries)") from None
        if not inserted:
            raise EntryExistsError(f"table '{name}' has an entry with this key and priority already")
        if target.table.direct_meter is not None:
            self.native.set_entry_meter(target.index, key, None)  # counts from now on, configured or not
        self._idle.watch(name, entry, key)

    def table_modify(self, table: str, entry: TableEntry) -> None:
        """Replace action and timeout of an entry."""
        target = self._table(table)
        _check_modifiable(target)
        key = target.encode_key(entry.key, entry.priority)
        binding = target.encode_action(entry.action)
        if not self._call(self.native.table_modify, target.index, *key, *binding, entry.idle_timeout_ns):
            raise _no_entry(table)
        self._idle.watch(table, entry, key)

    def table_delete(self, table: str, key: TableKey, priority: int) -> None:
        """Remove an entry."""
        target = self._table(table)
        _check_modifiable(target)
        encoded = target.encode_key(key, priority)
        if not self.native.table_delete(target.index, *encoded):
            raise _no_entry(table)
        self._idle.forget(table, encoded)

    def table_entry(self, table: str, key: TableKey, priority: int) -> TableEntry:
        """The entry with this key and priority."""
        action = self._with_entry(self.native.entry_action, table, key, priority)
        return self._table(table).entry(key, priority, *action)

    def table_entries(self, table: str) -> Iterator[TableEntry]:
        """All entries, in no particular order."""
        target = self._table(table)
        return (target.decode_entry(*each) for each in self.native.table_entries(target.index))

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """Set the action of a miss; None restores the program's."""
        target = self._table(table)
        default = target.table.default_entry
        if default is not None and default.constant and action is not None:
            raise NotPermittedError(f"the default action of table '{table}' is constant")
        self._apply_default(target, action)

    def _apply_default(self, target: NativeTable, action: TableAction | None) -> None:
        if action is not None:
            binding = target.encode_action(action)
        else:
            binding = default_binding(target.table.default_entry, _core.switch_abi()["kNoAction"])
        self._call(self.native.table_set_default, target.index, *binding)

    def table_idle_ns(self, table: str, key: TableKey, priority: int) -> int:
        """Time since the entry was last hit or written."""
        return int(self._with_entry(self.native.entry_idle_ns, table, key, priority))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """C++ says with ValueError that a member or group which an entry names does not exist."""
        try:
            return function(*arguments)
        except ValueError as error:
            raise EntryNotFoundError(str(error)) from None

    def _with_entry(
        self, function: Callable[..., Any], table: str, key: TableKey | None, priority: int, *arguments: Any
    ) -> Any:
        target = self._table(table)
        encoded = None if key is None else target.encode_key(key, priority)
        try:
            return function(target.index, encoded, *arguments)
        except KeyError:
            raise _no_entry(table) from None

    # ---- action profiles

    def _profile(self, name: str) -> int:
        named(self._loaded().program.action_profiles, name, "action profile")
        return self._profile_index[name]

    def _require_room(self, profile: str, what: str) -> None:
        """There is room for one more of `what`, members or groups."""
        members, groups = self.native.profile_sizes(self._profile_index[profile])
        limit = self._loaded().program.action_profiles[profile].max_size
        if (members if what == "members" else groups) >= limit:
            raise CapacityExceededError(f"action profile '{profile}' is full ({limit} {what})")

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member to an action profile."""
        index = self._profile(profile)
        number, data = member_action(self._loaded().program, profile, action)
        checked_id("member", member_id)
        self._require_room(profile, "members")
        if not self.native.member_insert(index, member_id, number, data):
            raise EntryExistsError(f"action profile '{profile}' has a member {member_id} already")

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace a member's action."""
        index = self._profile(profile)
        number, data = member_action(self._loaded().program, profile, action)
        self._in_profile(
            profile, self.native.member_modify, index, checked_id("member", member_id), number, data
        )

    def member_delete(self, profile: str, member_id: int) -> None:
        """Remove a member."""
        index = self._profile(profile)
        if not self._in_profile(profile, self.native.member_delete, index, checked_id("member", member_id)):
            raise NotReadyError(f"member {member_id} of action profile '{profile}' is in use")

    def group_insert(
        self, profile: str, group_id: int, members: Sequence[GroupMember], *, random: bool = False
    ) -> None:
        """Add a group, for good with `random` choice instead of by the selector's hash."""
        index = self._selector(profile)
        check_group(group_id, members)
        self._require_room(profile, "groups")
        native = native_members(members)
        if not self._in_profile(profile, self.native.group_insert, index, group_id, native, random):
            raise EntryExistsError(f"action profile '{profile}' has a group {group_id} already")

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Replace a group's members."""
        index = self._selector(profile)
        check_group(group_id, members)
        self._in_profile(profile, self.native.group_modify, index, group_id, native_members(members))

    def group_delete(self, profile: str, group_id: int) -> None:
        """Remove a group."""
        index = self._selector(profile)
        if not self._in_profile(profile, self.native.group_delete, index, checked_id("group", group_id)):
            raise NotReadyError(f"group {group_id} of action profile '{profile}' is in use")

    def _selector(self, profile: str) -> int:
        index = self._profile(profile)
        if self._loaded().program.action_profiles[profile].selector_algorithm is None:
            raise InvalidRequestError(f"action profile '{profile}' has no selector, so no groups")
        return index

    def _in_profile(self, profile: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except KeyError as error:
            raise EntryNotFoundError(f"action profile '{profile}': {error.args[0]}") from None

    def set_port_up(self, port: int, up: bool) -> None:
        """Take members that watch `port` out of their groups, or back in; let replicas' backups stand in."""
        with self.engine.lock():
            self._failover.set_port_up(port, up)
            for index in self._profile_index.values():
                self.native.set_watch_port_up(index, port, up)

    # ---- counters and meters

    def _counter(self, name: str, index: int | None = None) -> tuple[int, int]:
        """First cell and size of an indirect counter array."""
        compiled = self._loaded()
        array = named(compiled.program.counter_arrays, name, "counter")
        if array.table is not None:
            raise InvalidRequestError(f"counter '{name}' is direct (of table '{array.table}')")
        if index is not None:
            check_index("counter", name, index, array.size)
        return compiled.shape.counter_offsets[name], array.size

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
        if not self._table(table).table.with_counters:
            raise InvalidRequestError(f"table '{table}' has no direct counter")

    def _meter(self, name: str, index: int) -> int:
        compiled = self._loaded()
        array = named(compiled.program.meter_arrays, name, "meter")
        if array.table is not None:
            raise InvalidRequestError(f"meter '{name}' is direct (of table '{array.table}')")
        check_index("meter", name, index, array.size)
        return compiled.shape.meter_offsets[name] + index

    def meter_read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""
        return meter_state(self.native.meter_read(self._meter(meter, index)))

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array."""
        self.native.meter_write(self._meter(meter, index), meter_tuple(config))

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """Make one cell what it was when `meter_read` gave `state`."""
        self.native.meter_restore(self._meter(meter, index), meter_state_tuple(state))

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        return meter_state(self._with_entry(self.native.entry_meter, table, key, priority))

    def direct_meter_write(
        self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None
    ) -> None:
        """Configure the meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        self._with_entry(self.native.set_entry_meter, table, key, priority, meter_tuple(config))

    def direct_meter_restore(
        self, table: str, key: TableKey | None, priority: int, state: MeterState
    ) -> None:
        """Make an entry's meter what it was when `direct_meter_read` gave `state`."""
        self._require_meter(table)
        native = meter_state_tuple(state)
        self._with_entry(self.native.restore_entry_meter, table, key, priority, native)

    def _require_meter(self, table: str) -> None:
        if self._table(table).table.direct_meter is None:
            raise InvalidRequestError(f"table '{table}' has no direct meter")

    # ---- registers

    def _register(self, name: str) -> RegisterLayout:
        compiled = self._loaded()
        named(compiled.program.register_arrays, name, "register")
        return compiled.shape.registers[name]

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""
        layout = self._register(register)
        check_index("register", register, index, layout.size)
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
        check_index("register", register, index, layout.size)
        self._register_fill(register, layout, index, 1, value)

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""
        layout = self._register(register)
        self._register_fill(register, layout, 0, layout.size, value)

    def _register_fill(self, name: str, layout: RegisterLayout, first: int, count: int, value: int) -> None:
        check_value(f"register {name!r}", value, layout.width_bits)
        cell = value.to_bytes(layout.cell_bytes, "little")
        offset = layout.offset_bytes + first * layout.stride_bytes
        self.native.registers_fill(offset, layout.stride_bytes, cell, count)

    # ---- replication, value sets

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group."""
        check_multicast_group(group_id, replicas)
        with self.engine.lock():
            self._failover.apply(
                ("multicast group", group_id),
                replicas,
                lambda live: self.native.multicast_group_set(group_id, native_replicas(live)),
            )

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group."""
        with self.engine.lock():
            self._failover.forget(("multicast group", group_id))
            if group_id < 0 or not self.native.multicast_group_delete(group_id):
                raise EntryNotFoundError(f"multicast group {group_id}")

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""
        check_clone_session(session_id, session)
        rest = session.class_of_service, session.packet_length_bytes
        with self.engine.lock():
            self._failover.apply(
                ("clone session", session_id),
                session.replicas,
                lambda live: self.native.clone_session_set(session_id, native_replicas(live), *rest),
            )

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session."""
        with self.engine.lock():
            self._failover.forget(("clone session", session_id))
            if session_id < 0 or not self.native.clone_session_delete(session_id):
                raise EntryNotFoundError(f"clone session {session_id}")

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set, (value, mask) pairs laid out as a `Transition`'s
        value.
        """
        program = self._loaded().program
        named(program.value_sets, value_set, "value set")
        size = value_set_bytes(program, value_set)
        native = []
        for value, mask in members:
            check_value(f"value set {value_set!r}", value, size * 8)
            check_value(f"value set {value_set!r}, mask", mask, size * 8)
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
            if (timeout := self._idle.next_event(self.table_idle_ns)) is not None:
                return timeout
            slice_s = min(left, _EVENT_POLL_S)
            event = self.native.wait_event(slice_s)
            if event is not None and (read := self._stream_event(*event)) is not None:
                return read
            left -= slice_s
            if left <= 0:
                return None

    def next_idle_deadline_ns(self) -> int | None:
        """How long until an entry's idle timeout may be due; None without such entries."""
        return self._idle.next_deadline_ns(self.table_idle_ns)

    def _stream_event(self, kind: str, learn_list_id: int, data: bytes, _time_ps: int) -> StreamEvent | None:
        """The event; None for a digest of a program that has been replaced meanwhile."""
        if kind == "packet_in":
            return PacketIn(data)
        learn_list = self._loaded().program.learn_lists.get(learn_list_id)
        if learn_list is None:
            return None
        values = []
        for element in learn_list.elements:
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


def _check_modifiable(target: NativeTable) -> None:
    if not target.modifiable:
        raise NotPermittedError(f"table {target.table.name!r}: the program's entries are constant")


def _no_entry(table: str) -> EntryNotFoundError:
    return EntryNotFoundError(f"table {table!r} has no entry with this key and priority")
