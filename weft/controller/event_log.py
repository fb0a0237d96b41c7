"""Log of a controller's observations and actions, with times; of limited length, the oldest events are dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from weft.quantities.plain_data import PlainData

EventKind = Literal[
    "link down", "link up", "programmed", "damped", "reused", "lossy", "slow", "flapping", "pausing", "straggling",
    "cordoned", "draining", "drained", "restored", "kept in use", "still busy", "failed",
    "plane lost", "plane found", "host lost", "host found", "swapped", "circuits", "evicted",
]  # fmt: skip
EVENT_KINDS = get_args(EventKind)
MOST_EVENTS = 4096


@dataclass(frozen=True)
class ControllerEvent(PlainData):
    """An observation or action of a controller."""

    time_ps: int
    """Beginning of the event, counted from when the fabric was up; 0 for earlier events."""
    kind: EventKind
    """Kind of event."""
    element: str = ""
    """Affected link, switch, plane or job; empty if the event affects all switches."""
    detail: str = ""
    """Further details, as text."""
    duration_ps: int | None = None
    """Duration of the event; null if it is instantaneous."""
    entries: int = 0
    """Entries written to switches."""
    switches: tuple[str, ...] = ()
    """Switches that entries were written to."""


class EventLog:
    """The latest `MOST_EVENTS` events, in the order added."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._events: deque[ControllerEvent] = deque(maxlen=most)
        self._added = 0

    def add(self, event: ControllerEvent) -> None:
        """Add an event and drop the oldest if there are too many."""
        self._added += 1
        self._events.append(event)

    def __iter__(self) -> Iterator[ControllerEvent]:
        # A copy: the controller may run in another thread.
        return iter(list(self._events))

    def __len__(self) -> int:
        return len(self._events)

    @property
    def dropped(self) -> int:
        """Number of old events that were dropped."""
        return self._added - len(self._events)
