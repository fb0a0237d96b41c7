"""Match tables and action profiles: entries from the control plane, and lookup by linear search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.switch.backend import (
    ActionCall,
    CapacityExceededError,
    CounterValue,
    EntryExistsError,
    EntryNotFoundError,
    ExactMatch,
    GroupMember,
    GroupRef,
    InvalidRequestError,
    LpmMatch,
    Match,
    MemberRef,
    NotPermittedError,
    NotReadyError,
    RangeMatch,
    TableAction,
    TableEntry,
    TableKey,
    TernaryMatch,
    checks,
    constant_table_entries,
)
from weft.switch.bmv2json import Action, ActionProfile, MatchKind, Table
from weft.switch.oracle.calculations import input_bytes
from weft.switch.oracle.hashes import algorithm
from weft.switch.oracle.meters import Meter
from weft.switch.oracle.state import PacketState

EntryKey = tuple[TableKey, int]


@dataclass(slots=True)
class InstalledEntry:
    """An entry with its data plane state."""

    action: TableAction | None
    idle_timeout_ns: int = 0
    last_hit_ns: int = 0
    last_report_ns: int = 0
    counter: CounterValue = field(default_factory=CounterValue)
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Result of a lookup: the entry (the default entry on a miss) and its match (None: a miss).

    `key` is the key looked up, with masks applied.
    """

    key: tuple[int, ...]
    match: EntryKey | None
    entry: InstalledEntry

    @property
    def hit(self) -> bool:
        """Whether an entry matches."""
        return self.match is not None


class OracleTable:
    """One table."""

    def __init__(self, table: Table, profile: OracleProfile | None) -> None:
        self.table = table
        self.profile = profile
        self.modifiable = not table.immutable
        self.entries: dict[EntryKey, InstalledEntry] = {
            (entry.key, entry.priority): InstalledEntry(entry.action) for entry in constant_table_entries(table)
        }
        self.default = InstalledEntry(_program_default(table))

    # control

    def insert(self, entry: TableEntry, now_ns: int) -> None:
        """Add an entry."""
        self._check(entry)
        checks.check_modifiable(self.table, self.modifiable)
        key = (entry.key, entry.priority)
        if key in self.entries:
            raise EntryExistsError(f"table {self.table.name!r}: the entry exists already")
        if len(self.entries) >= self.table.max_size:
            raise CapacityExceededError(f"table {self.table.name!r} is full ({self.table.max_size} entries)")
        self._check_reference(entry.action)
        self.entries[key] = InstalledEntry(entry.action, entry.idle_timeout_ns, now_ns)

    def modify(self, entry: TableEntry, now_ns: int) -> None:
        """Replace an entry's action and timeout."""
        self._check(entry)
        checks.check_modifiable(self.table, self.modifiable)
        installed = self.find(entry.key, entry.priority)
        self._check_reference(entry.action)
        installed.action = entry.action
        installed.idle_timeout_ns = entry.idle_timeout_ns
        installed.last_hit_ns = now_ns

    def delete(self, key: TableKey, priority: int) -> None:
        """Remove an entry."""
        checks.check_modifiable(self.table, self.modifiable)
        self.find(key, priority)
        del self.entries[(key, priority)]

    def find(self, key: TableKey | None, priority: int) -> InstalledEntry:
        """The entry; the default entry for key None."""
        if key is None:
            return self.default
        if (key, priority) not in self.entries:
            raise EntryNotFoundError(f"table {self.table.name!r}: there is no such entry")
        return self.entries[(key, priority)]

    def set_default(self, action: TableAction | None) -> None:
        """Set the action of a miss."""
        default = self.table.default_entry
        if default is not None and default.constant and action is not None:
            raise NotPermittedError(f"table {self.table.name!r}: its default action is constant")
        if action is None:
            self.default.action = _program_default(self.table)
            return
        if not isinstance(action, ActionCall):
            checks.check_table_action(self.table, action)
            self._check_reference(action)
        else:
            checks.check_call(f"table {self.table.name!r}", self.table.actions, action)
        self.default.action = action

    def entry(self, key: TableKey, priority: int) -> TableEntry:
        """The entry as the control plane wrote it."""
        installed = self.find(key, priority)
        assert installed.action is not None
        return TableEntry(key, installed.action, priority, installed.idle_timeout_ns)

    def _check(self, entry: TableEntry) -> None:
        checks.check_key(self.table, entry.key, entry.priority)
        checks.check_table_action(self.table, entry.action)
        if not self.table.key:
            raise InvalidRequestError(f"table {self.table.name!r} has no key, so it has a default entry only")
        if entry.idle_timeout_ns and not self.table.supports_timeout:
            raise InvalidRequestError(f"table {self.table.name!r} does not support idle timeouts")

    def _check_reference(self, action: TableAction) -> None:
        if self.profile is None:
            return
        if isinstance(action, MemberRef):
            self.profile.member(action.member_id)
        elif isinstance(action, GroupRef):
            self.profile.group(action.group_id)

    # data plane

    def look_up(self, packet: PacketState) -> Lookup:
        """Return the matching entry with the highest rank for a packet."""
        values = []
        for field_ in self.table.key:
            value = packet.key_value(field_.field) & ((1 << field_.field.width_bits) - 1)
            values.append(value if field_.mask is None else value & field_.mask)
        widths = [field_.field.width_bits for field_ in self.table.key]
        best: tuple[int, EntryKey, InstalledEntry] | None = None
        if self.table.key:
            for (key, priority), entry in self.entries.items():
                if all(map(_matches, key, values, widths)):
                    rank = self._rank(key, priority)
                    if best is None or rank > best[0]:
                        best = (rank, (key, priority), entry)
        if best is None:
            return Lookup(tuple(values), None, self.default)
        return Lookup(tuple(values), best[1], best[2])

    def _rank(self, key: TableKey, priority: int) -> int:
        """Return the rank: the prefix length in an LPM table, else the priority; among equals the older entry wins."""
        if self.table.kind is MatchKind.LPM:
            return next(match.prefix_length for match in key if isinstance(match, LpmMatch))
        return priority

    def action_of(self, entry: InstalledEntry, packet: PacketState) -> ActionCall | None:
        """Return an entry's action for a packet, through members and groups; None without one."""
        match entry.action:
            case MemberRef(member_id):
                assert self.profile is not None
                return self.profile.member(member_id)
            case GroupRef(group_id):
                assert self.profile is not None
                return self.profile.select(group_id, packet)
        assert entry.action is None or isinstance(entry.action, ActionCall)
        return entry.action

    def action_named(self, call: ActionCall) -> Action:
        """The program's action."""
        return self.table.action(call.action)


def _program_default(table: Table) -> ActionCall | None:
    default = table.default_entry
    return None if default is None else ActionCall(default.action.name, default.arguments)


def _matches(match: Match, value: int, width_bits: int) -> bool:
    match match:
        case ExactMatch(wanted):
            return value == wanted
        case LpmMatch(wanted, length):
            return value >> (width_bits - length) == wanted >> (width_bits - length)
        case TernaryMatch(wanted, mask):
            return value & mask == wanted
        case RangeMatch(low, high):
            return low <= value <= high
    raise TypeError(f"unknown match {match!r}")


@dataclass(slots=True)
class OracleProfile:
    """One action profile."""

    profile: ActionProfile
    actions: Sequence[Action]
    random_between: Callable[[int, int], int]
    members: dict[int, ActionCall] = field(default_factory=dict)
    groups: dict[int, tuple[GroupMember, ...]] = field(default_factory=dict)
    tables: list[OracleTable] = field(default_factory=list)
    ports_down: set[int] = field(default_factory=set)
    random_groups: set[int] = field(default_factory=set)
    """Groups that choose a member at random instead of by hash."""

    def member(self, member_id: int) -> ActionCall:
        """The member's action."""
        if member_id not in self.members:
            raise EntryNotFoundError(f"action profile {self.profile.name!r} has no member {member_id}")
        return self.members[member_id]

    def group(self, group_id: int) -> tuple[GroupMember, ...]:
        """The group's members."""
        if group_id not in self.groups:
            raise EntryNotFoundError(f"action profile {self.profile.name!r} has no group {group_id}")
        return self.groups[group_id]

    def insert_member(self, member_id: int, action: ActionCall) -> None:
        """Add a member."""
        checks.check_range("member", member_id, 0, checks.MAX_ID)
        checks.check_call(f"action profile {self.profile.name!r}", self.actions, action)
        if member_id in self.members:
            raise EntryExistsError(f"action profile {self.profile.name!r} has a member {member_id} already")
        if len(self.members) >= self.profile.max_size:
            raise CapacityExceededError(
                f"action profile {self.profile.name!r} is full ({self.profile.max_size} members)"
            )
        self.members[member_id] = action

    def modify_member(self, member_id: int, action: ActionCall) -> None:
        """Replace a member's action."""
        self.member(member_id)
        checks.check_call(f"action profile {self.profile.name!r}", self.actions, action)
        self.members[member_id] = action

    def delete_member(self, member_id: int) -> None:
        """Remove an unused member."""
        self.member(member_id)
        if any(member_id == each.member_id for group in self.groups.values() for each in group):
            raise NotReadyError(f"member {member_id} of {self.profile.name!r} is in a group")
        self._check_unused(MemberRef(member_id))
        del self.members[member_id]

    def set_group(self, group_id: int, members: Sequence[GroupMember], *, new: bool) -> None:
        """Add or replace a group."""
        if self.profile.selector_algorithm is None:
            raise InvalidRequestError(f"action profile {self.profile.name!r} has no selector")
        if new and group_id in self.groups:
            raise EntryExistsError(f"action profile {self.profile.name!r} has a group {group_id} already")
        checks.check_group(group_id, members)
        if not new:
            self.group(group_id)
        elif len(self.groups) >= self.profile.max_size:
            raise CapacityExceededError(
                f"action profile {self.profile.name!r} is full ({self.profile.max_size} groups)"
            )
        for each in members:
            self.member(each.member_id)
        # In order of id, so that a hash's choice does not depend on how the group was written.
        self.groups[group_id] = tuple(sorted(members, key=lambda each: each.member_id))

    def delete_group(self, group_id: int) -> None:
        """Remove a group that no entry uses."""
        self.group(group_id)
        self._check_unused(GroupRef(group_id))
        del self.groups[group_id]
        self.random_groups.discard(group_id)

    def _check_unused(self, reference: TableAction) -> None:
        for table in self.tables:
            if any(entry.action == reference for entry in (*table.entries.values(), table.default)):
                raise NotReadyError(f"table {table.table.name!r} has an entry that uses {reference}")

    def select(self, group_id: int, packet: PacketState) -> ActionCall | None:
        """Return the action of the member chosen by the selector's hash, or at random in a random group.

        A member of weight n counts n times. None if no member is live.
        """
        live = [
            each.member_id
            for each in self.groups[group_id]
            for _ in range(each.weight)
            if each.watch_port not in self.ports_down
        ]
        if not live:
            return None
        if group_id in self.random_groups:
            return self.members[live[self.random_between(0, len(live) - 1)]]
        assert self.profile.selector_algorithm is not None
        compute = algorithm(self.profile.selector_algorithm, f"action profile {self.profile.name!r}")
        chosen = compute(input_bytes(self.profile.selector_input, packet)) % len(live)
        return self.members[live[chosen]]
