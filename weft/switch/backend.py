"""What the P4Runtime server needs of a switch; the native switch and the oracle interpreter both provide it.

All names are those of BMv2 JSON (which P4Info shares). Values are non-negative integers; a backend checks
what it is given against its program and raises the errors below. The server keeps what controllers wrote
(metadata, one-shot sets, order); a backend keeps what forwards packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from weft.switch.bmv2json import ConstantEntry, MatchKind, MatchValue, Program, Table


class BackendError(Exception):
    """A request that the switch refuses; the subclass says why."""


class InvalidRequestError(BackendError):
    """The request does not fit the program: unknown name, value too wide, wrong kind of match…"""


class EntryNotFoundError(BackendError):
    """What should be read, changed or removed is not there."""


class EntryExistsError(BackendError):
    """What should be inserted is there already."""


class CapacityExceededError(BackendError):
    """A table, profile or group is full."""


class NotPermittedError(BackendError):
    """The program forbids the change (constant entries or constant default action)."""


class NotReadyError(BackendError):
    """No program is loaded, or something that refers to the entry keeps it from being removed."""


class UnsupportedProgramError(BackendError):
    """The program is well-formed but uses something that this backend does not implement.

    Says what and where.
    """


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """Equal to `value`; also for key fields of kind VALID (0 or 1)."""

    value: int


@dataclass(frozen=True, slots=True)
class LpmMatch:
    """The first `prefix_length` bits equal those of `value`, whose other bits are 0; length 0 matches all."""

    value: int
    prefix_length: int


@dataclass(frozen=True, slots=True)
class TernaryMatch:
    """The bits set in `mask` equal those of `value`, whose other bits are 0; mask 0 matches all."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class RangeMatch:
    """From `low` to `high`, both included."""

    low: int
    high: int


Match: TypeAlias = ExactMatch | LpmMatch | TernaryMatch | RangeMatch
TableKey: TypeAlias = tuple[Match, ...]
"""One match for every key field of the table, in the order of `Table.key`."""


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action of the table, by name, and its arguments in the order of its parameters."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRef:
    """A member of the table's action profile."""

    member_id: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A group of the table's action profile (only with a selector)."""

    group_id: int


TableAction: TypeAlias = ActionCall | MemberRef | GroupRef


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A **higher** `priority` wins (as in P4Runtime); 0 in tables without.

    `idle_timeout_ns` 0 never times out.

    Key and priority together identify an entry.
    """

    key: TableKey
    action: TableAction
    priority: int = 0
    idle_timeout_ns: int = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group; a weight of n counts as n copies.

    Members whose `watch_port` is down are skipped.
    """

    member_id: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class CounterValue:
    """What a counter has counted."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """RFC 2698 two-rate three-colour marker, or RFC 2697 single-rate marker if it has an `excess_burst`.

    Rates per second and bursts, in bytes or packets as the meter counts. A single-rate meter does not look at its
    peak rate and burst.
    """

    committed_rate: int
    committed_burst: int
    peak_rate: int
    peak_burst: int
    excess_burst: int | None = None


ColourCounts: TypeAlias = tuple[CounterValue, CounterValue, CounterValue]
"""What a meter has marked green, yellow and red."""
NO_COLOUR_COUNTS: ColourCounts = (CounterValue(), CounterValue(), CounterValue())


@dataclass(frozen=True, slots=True)
class MeterState:
    """A meter at some moment. Without `config` everything passes green.

    `buckets` is the backend's own, with its own clock's time in it, so it says nothing of equality.
    """

    config: MeterConfig | None
    counts: ColourCounts
    buckets: Any = field(compare=False)


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy: the port it leaves by and its `egress_rid`.

    While the port is down, the first of `backups` (which have none themselves) whose port is up stands in.
    """

    port: int
    instance: int = 0
    backups: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Where clones go; `packet_length_bytes` 0 keeps them whole."""

    replicas: tuple[Replica, ...]
    class_of_service: int = 0
    packet_length_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet sent to the CPU port, as the deparser left it (with the packet_in header, if the program has
    one). `time_ps`: when, in emulated time; None where there is none.
    """

    data: bytes
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Digest:
    """One `generate_digest`: the values of the learn list's elements. `time_ps` as a packet-in's."""

    learn_list_id: int
    values: tuple[int, ...]
    time_ps: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """An entry of `table` was not hit for its idle timeout; said once until it is hit again."""

    table: str
    key: TableKey
    priority: int


StreamEvent: TypeAlias = PacketIn | Digest | IdleTimeout


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
        `entries`, not `const entries`; only P4Info tells). UnsupportedProgramError leaves the switch as it was.
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

        Ports are up until told otherwise; `load` does not change them.
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


def constant_table_entries(table: Table) -> list[TableEntry]:
    """The entries that the program gives `table`, with priorities turned over.

    In the result the higher one wins.
    """
    lowest = 1 + max((entry.priority for entry in table.constant_entries), default=0)
    return [_constant_table_entry(table, entry, lowest) for entry in table.constant_entries]


def _constant_table_entry(table: Table, entry: ConstantEntry, lowest: int) -> TableEntry:
    priority = lowest - entry.priority if table.needs_priority else 0
    key = tuple(_match(value) for value in entry.key)
    return TableEntry(key, ActionCall(entry.action.name, entry.arguments), priority)


def _match(value: MatchValue) -> Match:
    if value.kind is MatchKind.LPM:
        return LpmMatch(value.value, value.second)
    if value.kind is MatchKind.TERNARY:
        return TernaryMatch(value.value, value.second)
    if value.kind is MatchKind.RANGE:
        return RangeMatch(value.value, value.second)
    return ExactMatch(value.value)
