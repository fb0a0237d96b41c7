"""The interface of a switch: the P4Runtime server needs it, the native switch and the oracle provide it.

A backend checks what it is given against its program and raises the errors of `errors`. The server keeps what
controllers wrote (metadata, one-shot sets, order); a backend keeps what forwards packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

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
from weft.switch.backend.events import StreamEvent
from weft.switch.bmv2json import Program


class SwitchBackend(Protocol):
    """A switch. Methods may be called from several threads.

    Errors: InvalidRequestError for names, ids, values or indices which the program does not have;
    NotReadyError before `load`; otherwise as each method says.
    """

    @property
    def program(self) -> Program | None:
        """The program that runs."""

    def verify(self, program: Program) -> None:
        """Make sure that `load` would take the program. UnsupportedProgramError."""

    def load(self, program: Program, preinitialized: Collection[str] = ()) -> None:
        """Replace the program; everything starts afresh, with the program's own entries and default actions.

        The program's entries are constant, except in the tables named `preinitialized` (declared with
        `entries`, not `const entries`, which only P4Info shows). UnsupportedProgramError leaves the switch as it was.
        """

    def atomically(self) -> AbstractContextManager[Any]:
        """While inside, no packet is processed: it finds either all that is written inside, or nothing."""

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
        """All entries as they are now, the program's included, in no particular order."""

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
        """Add a group, for good with `random` choice instead of by the selector's hash.

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
        """The counter of an entry, of the default action for key None. EntryNotFoundError."""

    def direct_counter_write(
        self, table: str, key: TableKey | None, priority: int, value: CounterValue
    ) -> None:
        """Set the counter of an entry (key None: of the default action). EntryNotFoundError."""

    def meter_read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array, with full buckets; it counts on."""

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """Make one cell what it was when `meter_read` gave `state`, counts included."""

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action). EntryNotFoundError."""

    def direct_meter_write(
        self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None
    ) -> None:
        """Configure the meter of an entry (key None: of the default action). EntryNotFoundError."""

    def direct_meter_restore(
        self, table: str, key: TableKey | None, priority: int, state: MeterState
    ) -> None:
        """Make an entry's meter what it was when `direct_meter_read` gave `state`. EntryNotFoundError."""

    def register_read(self, register: str, index: int) -> int:
        """One cell of a register array."""

    def register_read_all(self, register: str) -> Sequence[int]:
        """All cells of a register array."""

    def register_write(self, register: str, index: int, value: int) -> None:
        """Set one cell of a register array."""

    def register_fill(self, register: str, value: int) -> None:
        """Set all cells of a register array."""

    def set_port_up(self, port: int, up: bool) -> None:
        """Say that a port is up or down, for members that watch it and replicas with backups.

        Ports are up at first; `load` does not change their states.
        """

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace a multicast group (ids from 1)."""

    def multicast_group_delete(self, group_id: int) -> None:
        """Remove a multicast group; packets to it are dropped and counted. EntryNotFoundError."""

    def clone_session_set(self, session_id: int, session: CloneSession) -> None:
        """Create or replace a clone session."""

    def clone_session_delete(self, session_id: int) -> None:
        """Remove a clone session; clones to it are not made. EntryNotFoundError."""

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members of a parser value set.

        (value, mask) pairs, laid out as a `Transition`'s value.
        """

    def packet_out(self, data: bytes) -> None:
        """Let the switch receive a packet on its CPU port."""

    def wait_stream_event(self, timeout_s: float | None) -> StreamEvent | None:
        """The next event of this switch; None when the time is over (None waits without end)."""


@runtime_checkable
class PreparesInserts(Protocol):
    """A backend that takes many entries at once, prepared once for all its kind that run the same program."""

    def prepare_key(self, table: str, key: TableKey, priority: int) -> object:
        """A table and the key of an entry in it. InvalidRequestError, NotPermittedError."""

    def prepare_action(self, table: str, action: ActionCall) -> object:
        """An action of an entry's own. InvalidRequestError."""

    def insert_prepared(self, entries: Sequence[object]) -> int:
        """Add entries in order, each a prepared key and action of one table; how many until one that is refused."""
