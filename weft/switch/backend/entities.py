"""What controllers write and read: matches, actions, entries, members, counters, meters, replicas.

All names are those of BMv2 JSON, which P4Info shares. Values are non-negative integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


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
