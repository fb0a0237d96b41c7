"""The native switch as a `SwitchBackend`: one part for each kind of object, around one switch of the engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from weft.engine import _core
from weft.switch.backend import (
    ActionCall,
    CloneSession,
    CounterValue,
    GroupMember,
    MeterConfig,
    MeterState,
    Replica,
    StreamEvent,
    TableAction,
    TableEntry,
    TableKey,
    UnsupportedProgramError,
)
from weft.switch.backend.checks import check_capacity
from weft.switch.backend.live_replicas import Failover
from weft.switch.bmv2json import Program
from weft.switch.drop_sites import DropSite, Loss
from weft.switch.lowering import CompiledProgram, UnsupportedError, compile_program
from weft.switch.native.counters import Counters
from weft.switch.native.entries import TableEntries
from weft.switch.native.events import StreamEvents
from weft.switch.native.meters import Meters
from weft.switch.native.profiles import ActionProfiles
from weft.switch.native.registers import Registers
from weft.switch.native.replication import Replication
from weft.switch.native.running import RunningProgram
from weft.switch.native.trace import NativeTrace
from weft.switch.native.value_sets import ValueSets


@dataclass(frozen=True, slots=True)
class CodeInUse:
    """Machine code of a switch.

    Attributes:
        is_specialised: whether it takes contents of tables for granted (`specialise`).
        generalisations: how often a write has ended that.
        writes: to tables and members of action profiles since the program was loaded.

    """

    is_specialised: bool
    generalisations: int
    writes: int


class NativeSwitch:
    """A switch of the engine. All methods may be called from any thread.

    `engine` gives the clock; ports are attached to `native` (`native.attach_port(number, transmit_port)`).
    A switch without ports still runs packets through its pipelines by `process`.
    """

    def __init__(
        self,
        engine: _core.Engine | None = None,
        name: str = "switch",
        *,
        cpu_port: int = 510,
        drop_port: int = 511,
        depth_unit: str = "cells",
        cell_bytes: int = 80,
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
            cell_bytes=cell_bytes,
            time_unit=time_unit,
        )
        self.trace = NativeTrace(self.engine, self.native, name)
        self._running = RunningProgram(name)
        self._failover = Failover()
        self._entries = TableEntries(self.native, self._running)
        self._profiles = ActionProfiles(self.native, self._running)
        self._counters = Counters(self.native, self._running)
        self._meters = Meters(self.native, self._running)
        self._registers = Registers(self.native, self._running)
        self._value_sets = ValueSets(self.native, self._running)
        self._replication = Replication(self.native, self.engine, self._failover)
        self._events = StreamEvents(self.native, self._running, self._entries)

    # ---- program

    @property
    def program(self) -> Program | None:
        """The running program, None before `load`."""
        return self._running.program if self._running.is_loaded else None

    def verify(self, program: Program) -> None:
        """Compile a program without running it."""
        _compiled(program)

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """Replace the program and all state. UnsupportedProgramError leaves the switch as it was."""
        compiled = _compiled(program)
        # Before the lock is taken: compiling takes seconds, and packets wait for the lock.
        self.trace.prepare(program)
        with self.engine.lock():
            self.native.load(compiled.native)
            self.trace.loaded(compiled)
            self._running.replace(compiled, frozenset(preinitialized))
            self._failover.clear()
            # The new program's groups know nothing yet of ports that are down.
            for port in self._failover.ports_down:
                self._set_watch_port_up(port, False)
            self._entries.start()

    @property
    def code(self) -> CodeInUse:
        """The machine code in use."""
        return CodeInUse(*self.native.code) if self._running.is_loaded else CodeInUse(False, 0, 0)

    def atomically(self) -> AbstractContextManager[Any]:
        """Process no packets while inside."""
        lock: AbstractContextManager[Any] = self.engine.lock()
        return lock

    def set_port_up(self, port: int, up: bool) -> None:
        """Remove members that watch `port` from their groups or restore them; switch replicas to or from backups."""
        with self.engine.lock():
            self._failover.set_port_up(port, up)
            self._set_watch_port_up(port, up)

    def _set_watch_port_up(self, port: int, up: bool) -> None:
        for index in self._running.profile_indices:
            self.native.set_watch_port_up(index, port, up)

    # ---- packets

    def packet_out(self, data: bytes) -> None:
        """Send a packet to the switch's CPU port."""
        self._running.require()
        self.native.packet_out(data)

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Run one packet through both pipelines immediately, without queues; return the output as (port, bytes)."""
        self._running.require()
        return self.native.process(port, data)

    def drops(self) -> dict[str, int]:
        """Packets dropped since the start, by reason."""
        return self.native.drops()

    def losses(self) -> list[Loss]:
        """Packets lost in the switch since the start, except those that a port's queue refused."""
        with self.engine.lock():  # sites are numbered by program, and another one may be loaded
            found = self.native.losses()
            sites = self._running.drop_sites if any(site for _, site, *_ in found) else ()
        # Egress may drop without a mark: a site left by ingress in the packet's state is then not the reason.
        return [
            Loss(reason, port, packets, _of_pipeline(sites[number - 1], reason) if number else None, is_copy)
            for reason, number, port, is_copy, packets in found
        ]

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event of this switch; None after the timeout (a timeout of None waits forever)."""
        return self._events.wait(timeout_s)

    def next_idle_deadline_ns(self) -> int | None:
        """Time until an entry's idle timeout may be due; None without such entries."""
        return self._entries.idle.next_deadline_ns(self._entries.idle_ns)

    # ---- tables

    def prepare_key(self, table: str, key: TableKey, priority: int) -> object:
        """Prepare a table's key; see PreparesInserts."""
        return self._entries.prepare_key(table, key, priority)

    def prepare_action(self, table: str, action: ActionCall) -> object:
        """Prepare an entry's direct action; see PreparesInserts."""
        return self._entries.prepare_action(table, action)

    def insert_prepared(self, entries: Sequence[object]) -> int:
        """Add entries in order, each a prepared key and action; return how many before one was refused."""
        return self._entries.insert_prepared(entries)

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """Add an entry."""
        self._entries.insert(table, entry)

    def table_modify(self, table: str, entry: TableEntry) -> None:
        """Replace action and timeout of an entry."""
        self._entries.modify(table, entry)

    def table_delete(self, table: str, key: TableKey, priority: int) -> None:
        """Remove an entry."""
        self._entries.delete(table, key, priority)

    def table_entry(self, table: str, key: TableKey, priority: int) -> TableEntry:
        """The entry with this key and priority."""
        return self._entries.entry(table, key, priority)

    def table_entries(self, table: str) -> Iterator[TableEntry]:
        """All entries, in no particular order."""
        return self._entries.entries(table)

    def table_size(self, table: str) -> int:
        """Number of entries in a table."""
        return self._entries.count(table)

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """Set the action of a miss; None restores the program's."""
        self._entries.set_default(table, action)

    def table_idle_ns(self, table: str, key: TableKey, priority: int) -> int:
        """Time since the entry was last hit or written."""
        return self._entries.idle_ns(table, key, priority)

    # ---- action profiles

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member to an action profile."""
        self._profiles.insert_member(profile, member_id, action)

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace a member's action."""
        self._profiles.modify_member(profile, member_id, action)

    def member_delete(self, profile: str, member_id: int) -> None:
        """Remove a member."""
        self._profiles.delete_member(profile, member_id)

    def group_insert(
        self, profile: str, group_id: int, members: Sequence[GroupMember], *, random: bool = False
    ) -> None:
        """Add a group; with `random`, which is permanent, it chooses at random instead of by the selector's hash."""
        self._profiles.insert_group(profile, group_id, members, random=random)

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Replace a group's members."""
        self._profiles.modify_group(profile, group_id, members)

    def group_delete(self, profile: str, group_id: int) -> None:
        """Remove a group."""
        self._profiles.delete_group(profile, group_id)

    # ---- counters and meters

    def counter_read(self, counter: str, index: int) -> CounterValue:
        """One cell of an indirect counter array."""
        return self._counters.read(counter, index)

    def counter_read_all(self, counter: str) -> Sequence[CounterValue]:
        """All cells of an indirect counter array."""
        return self._counters.read_all(counter)

    def counter_read_cells(self, counter: str, first: int, count: int) -> Sequence[CounterValue]:
        """Return `count` cells of an indirect counter array from `first` on."""
        return self._counters.read_cells(counter, first, count)

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter array."""
        self._counters.write(counter, index, value)

    def direct_counter_read(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """The counter of an entry (key None: of the default action)."""
        return self._counters.read_direct(table, key, priority)

    def direct_counter_write(self, table: str, key: TableKey | None, priority: int, value: CounterValue) -> None:
        """Set the counter of an entry (key None: of the default action)."""
        self._counters.write_direct(table, key, priority, value)

    def entry_hits(self, table: str, key: TableKey, priority: int) -> int:
        """Packets that hit an entry, counted while `native.coverage` is in use."""
        return self._counters.hits(table, key, priority)

    def meter_read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""
        return self._meters.read(meter, index)

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array."""
        self._meters.write(meter, index, config)

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """Restore one cell to the state that `meter_read` returned."""
        self._meters.restore(meter, index, state)

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action)."""
        return self._meters.read_direct(table, key, priority)

    def direct_meter_write(self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None) -> None:
        """Configure the meter of an entry (key None: of the default action)."""
        self._meters.write_direct(table, key, priority, config)

    def direct_meter_restore(self, table: str, key: TableKey | None, priority: int, state: MeterState) -> None:
        """Restore an entry's meter to the state that `direct_meter_read` returned."""
        self._meters.restore_direct(table, key, priority, state)

    # ---- registers and value sets

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""
        return self._registers.read(register, index)

    def register_read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""
        return self._registers.read_all(register)

    def register_read_cells(self, register: str, first: int, count: int) -> Sequence[int]:
        """So many cells of a register array from the first on."""
        return self._registers.read_cells(register, first, count)

    def register_write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""
        self._registers.write(register, index, value)

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""
        self._registers.fill(register, value)

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set, (value, mask) pairs laid out like a `Transition`'s value."""
        self._value_sets.write(value_set, members)

    # ---- replication

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group."""
        self._replication.set_multicast_group(group_id, replicas)

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group."""
        self._replication.delete_multicast_group(group_id)

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""
        self._replication.set_clone_session(session_id, session)

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session."""
        self._replication.delete_clone_session(session_id)


def _compiled(program: Program) -> CompiledProgram:
    check_capacity(program)
    try:
        return compile_program(program)
    except UnsupportedError as error:
        raise UnsupportedProgramError(f"the native switch does not implement {error}") from None


def _of_pipeline(site: DropSite, reason: str) -> DropSite | None:
    """Return a site if it belongs to the pipeline that dropped the packets, else None."""
    return site if reason == f"program_{site.pipeline}" else None
