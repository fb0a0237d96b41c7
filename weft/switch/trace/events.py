"""Events of a packet and its copies as a tree: a copy's events are nested where it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from weft.switch.backend import TableKey
from weft.switch.trace.places import Place

CLONES = (1, 2)
"""Instance types of clones, from ingress and from egress."""


@dataclass(frozen=True, slots=True)
class Received:
    """A pass through parser and ingress begins; `timestamp` is the switch's, in its units."""

    port: int
    instance_type: int
    data: bytes
    timestamp: int = field(default=0, compare=False)


@dataclass(slots=True)
class Copied:
    """A copy was made, or the packet continues as a new one (resubmitted, recirculated)."""

    instance_type: int
    copy: CopyTrace


@dataclass(frozen=True, slots=True)
class Multicast:
    """The packet goes to a multicast group with `replicas` replicas."""

    group: int
    replicas: int


@dataclass(frozen=True, slots=True)
class NoCloneSession:
    """A clone was requested, but its session does not exist."""

    session: int


@dataclass(frozen=True, slots=True)
class DigestSent:
    """A digest was made from a learn list."""

    learn_list: int


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The packet was put in a port's queue."""

    port: int
    queue_class: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The port's queue had no room for the packet, so it was cut to this length and put in another queue."""

    length_bytes: int
    queue_class: int


@dataclass(frozen=True, slots=True)
class EgressStarted:
    """Egress begins, as the packet leaves its queue; queue metadata are in the switch's units."""

    port: int
    replication_id: int
    instance_type: int
    enqueue_depth: int = field(default=0, compare=False)
    dequeue_depth: int = field(default=0, compare=False)
    waited: int = field(default=0, compare=False)
    enqueue_timestamp: int = field(default=0, compare=False)
    timestamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """The packet left."""

    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Dropped:
    """The packet was dropped; the reason is as in the switch's drop counters."""

    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """A place of the program reported its values; `data` are an extracted header's bytes.

    `match` is the entry that a table found, with its priority; None is a miss.
    """

    place: Place
    values: tuple[int, ...] = ()
    data: bytes = b""
    match: tuple[TableKey, int] | None = None


Event: TypeAlias = (
    Received
    | Copied
    | Multicast
    | NoCloneSession
    | DigestSent
    | Enqueued
    | Trimmed
    | EgressStarted
    | Sent
    | Dropped
    | Step
)


@dataclass(slots=True)
class CopyTrace:
    """The events of one copy, in order; `times_ps` are their times, if known."""

    events: list[Event] = field(default_factory=list)
    times_ps: list[int] = field(default_factory=list, compare=False)
    # Read for every packet that waits in a queue: searching all events each time would take most of a run.
    _copies: list[CopyTrace] = field(default_factory=list, init=False, repr=False, compare=False)
    _is_gone: bool = field(default=False, init=False, repr=False, compare=False)
    _goes_on_as_copy: bool = field(default=False, init=False, repr=False, compare=False)

    def add(self, event: Event, time_ps: int = 0) -> None:
        """Append an event."""
        self.events.append(event)
        self.times_ps.append(time_ps)
        if isinstance(event, Copied):
            self._copies.append(event.copy)
            # Of a clone, the original goes on, too.
            self._goes_on_as_copy |= event.instance_type not in CLONES
        elif isinstance(event, Sent | Dropped):
            self._is_gone = True

    @property
    def ended(self) -> bool:
        """Whether this copy and all its copies have left or were dropped."""
        return (self._is_gone or self._goes_on_as_copy) and all(copy.ended for copy in self._copies)


@dataclass(slots=True)
class PacketTrace:
    """A packet with its number in the trace."""

    number: int
    root: CopyTrace
