"""The interface of a switch: the P4Runtime server uses it, the native switch and the oracle implement it.

A backend checks arguments against its program and raises the errors in `errors`. The server keeps what forwarding does
not need (metadata, one-shot sets, order); a backend keeps the forwarding state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from weft.switch.backend.entities import (
    ActionCall,
    CloneSession,
    CounterValue,
    GroupMember,
    MeterConfig,
    MeterState,
    Replica,
    TableAction,
    TableEntry,
    TableKey,
)
from weft.switch.bmv2json import Program


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet sent to the CPU port, as deparsed (with the packet_in header, if the program has
    one). `time_ps` is by the engine's clock; None without one.
    """

    data: bytes
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Digest:
    """One `generate_digest`: the values of the learn list's elements. `time_ps` as in PacketIn."""

    learn_list_id: int
    values: tuple[int, ...]
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """No packet hit an entry of `table` for its idle timeout; reported once until the next hit."""

    table: str
    key: TableKey
    priority: int


StreamEvent: TypeAlias = PacketIn | Digest | IdleTimeout


class SwitchBackend(Protocol):
    """A switch. Methods may be called from several threads.

    Errors: InvalidRequestError for names, ids, values or indices that the program does not have;
    NotReadyError before `load`; otherwise as each method says.
    """

    @property
    def program(self) -> Program | None:
        """The running program, None before `load`."""

    def verify(self, program: Program) -> None:
        """Check that `load` would accept the program. UnsupportedProgramError."""

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """Replace the program and reset all state to the program's entries and default actions.

        The program's entries are constant, except in the tables named `preinitialized` (declared with
        `entries`, not `const entries`, which only P4Info shows). UnsupportedProgramError leaves the switch as it was.
        """

    def atomically(self) -> AbstractContextManager[Any]:
        """Process no packets while inside, so that a packet sees either all writes inside or none."""

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """Add an entry.

        EntryExistsError, CapacityExceededError, NotPermittedError, EntryNotFoundError (member).
        """

    def table_modify(self, table: str, entry: TableEntry) -> None:
        """Replace action and timeout of the entry with this key and priority.

        EntryNotFoundError, NotPermittedError.
        """

    def table_delete(self, table: str, key: TableKey, priority: int) -> None:
        """Remove an entry. EntryNotFoundError, NotPermittedError."""

    def table_entry(self, table: str, key: TableKey, priority: int) -> TableEntry:
        """The entry with this key and priority. EntryNotFoundError."""

    def table_entries(self, table: str) -> Iterator[TableEntry]:
        """All current entries, including the program's, in no particular order."""

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """Set the action of a miss; None restores the program's. NotPermittedError if it is constant."""

    def table_idle_ns(self, table: str, key: TableKey, priority: int) -> int:
        """Time since the entry was last hit or written. EntryNotFoundError."""

    def member_insert(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Add a member to an action profile. EntryExistsError, CapacityExceededError."""

    def member_modify(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Replace a member's action; groups and entries that use it follow. EntryNotFoundError."""

    def member_delete(self, profile: str, member_id: int) -> None:
        """Remove a member. EntryNotFoundError; NotReadyError while a group or an entry uses it."""

    def group_insert(
        self, profile: str, group_id: int, members: Sequence[GroupMember], *, random: bool = False
    ) -> None:
        """Add a group; with `random`, which is permanent, it chooses at random instead of by the selector's hash.

        EntryExistsError, EntryNotFoundError (member).
        """

    def group_modify(self, profile: str, group_id: int, members: Sequence[GroupMember]) -> None:
        """Replace a group's members. EntryNotFoundError."""

    def group_delete(self, profile: str, group_id: int) -> None:
        """Remove a group. EntryNotFoundError; NotReadyError while an entry uses it."""

    def counter_read(self, counter: str, index: int) -> CounterValue:
        """One cell of an indirect counter array."""

    def counter_read_all(self, counter: str) -> Sequence[CounterValue]:
        """All cells of an indirect counter array."""

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter array."""

    def direct_counter_read(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """The counter of an entry (key None: of the default action). EntryNotFoundError."""

    def direct_counter_write(self, table: str, key: TableKey | None, priority: int, value: CounterValue) -> None:
        """Set the counter of an entry (key None: of the default action). EntryNotFoundError."""

    def meter_read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array, with full buckets; its counts continue."""

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """Restore one cell to the state that `meter_read` returned, including counts."""

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action). EntryNotFoundError."""

    def direct_meter_write(self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None) -> None:
        """Configure the meter of an entry (key None: of the default action). EntryNotFoundError."""

    def direct_meter_restore(self, table: str, key: TableKey | None, priority: int, state: MeterState) -> None:
        """Restore an entry's meter to the state that `direct_meter_read` returned. EntryNotFoundError."""

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""

    def register_read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""

    def register_write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""

    def set_port_up(self, port: int, up: bool) -> None:
        """Set whether a port is up, for members that watch it and replicas with backups.

        Ports are initially up; `load` does not change their states.
        """

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group (ids from 1)."""

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group; packets to it are dropped and counted. EntryNotFoundError."""

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session; the switch then makes no clones for it. EntryNotFoundError."""

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set.

        Members are (value, mask) pairs, laid out like a `Transition`'s value.
        """

    def packet_out(self, data: bytes) -> None:
        """Send a packet to the switch's CPU port."""

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event of this switch; None after the timeout (a timeout of None waits forever)."""


@runtime_checkable
class PreparesInserts(Protocol):
    """A backend that inserts many prepared entries at once; all such backends with the same program share them."""

    def prepare_key(self, table: str, key: TableKey, priority: int) -> object:
        """Prepare a table's key. InvalidRequestError, NotPermittedError."""

    def prepare_action(self, table: str, action: ActionCall) -> object:
        """Prepare an entry's direct action. InvalidRequestError."""

    def insert_prepared(self, entries: Sequence[object]) -> int:
        """Add entries in order, each a prepared key and action of one table; return how many before one was refused."""
