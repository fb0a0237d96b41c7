"""Entities that controllers write and read: matches, actions, entries, members, counters, meters, replicas.

All names are from BMv2 JSON, which P4Info shares. Values are non-negative integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """Matches `value` exactly; also for key fields of kind VALID (0 or 1)."""

    value: int


@dataclass(frozen=True, slots=True)
class LpmMatch:
    """Matches the first `prefix_length` bits of `value`, which has zeros elsewhere; length 0 matches all."""

    value: int
    prefix_length: int


@dataclass(frozen=True, slots=True)
class TernaryMatch:
    """Matches the bits of `value` that `mask` selects; its other bits are 0. Mask 0 matches all."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class RangeMatch:
    """Matches values from `low` to `high`, both included."""

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
    """A table entry; the **higher** `priority` wins (as in P4Runtime), 0 in tables without priorities.

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

    A member is skipped while its `watch_port` is down.
    """

    member_id: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class CounterValue:
    """Packets and bytes of a counter."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """RFC 2698 two-rate three-colour marker, or RFC 2697 single-rate marker if it has an `excess_burst`.

    Rates are per second; rates and bursts are in bytes or packets, as the meter counts. A single-rate meter ignores its
    peak rate and burst.
    """

    committed_rate: int
    committed_burst: int
    peak_rate: int
    peak_burst: int
    excess_burst: int | None = None


ColourCounts: TypeAlias = tuple[CounterValue, CounterValue, CounterValue]
"""Packets and bytes that a meter has marked green, yellow and red."""
NO_COLOUR_COUNTS: ColourCounts = (CounterValue(), CounterValue(), CounterValue())


@dataclass(frozen=True, slots=True)
class MeterState:
    """A meter's state at one moment. Without `config` all packets are green.

    `buckets` is private to the backend and includes its clock's time, so comparisons ignore it.
    """

    config: MeterConfig | None
    counts: ColourCounts
    buckets: Any = field(compare=False)


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy: its egress port and its `egress_rid`.

    While the port is down, the first of `backups` with a port that is up stands in; backups have none themselves.
    """

    port: int
    instance: int = 0
    backups: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Destinations of clones; `packet_length_bytes` 0 keeps clones whole."""

    replicas: tuple[Replica, ...]
    class_of_service: int = 0
    packet_length_bytes: int = 0
