"""What a controller saw and did, with times: a list of bounded length, the oldest entries of which are dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from weft.quantities.plain_data import PlainData

EventKind = Literal[
    "link down", "link up", "programmed", "damped", "reused", "lossy", "slow", "cordoned", "draining", "drained",
    "restored", "kept in use", "still busy", "failed",
    "plane lost", "plane found", "host lost", "host found", "swapped", "circuits", "evicted",
]  # fmt: skip
EVENT_KINDS = get_args(EventKind)
MOST_EVENTS = 4096


@dataclass(frozen=True)
class ControllerEvent(PlainData):
    """Something that a controller saw or did."""

    time_ps: int
    """When it began, counted from when the fabric was up; 0: before, from the start."""
    kind: EventKind
    """What it was."""
    element: str = ""
    """Link, switch, plane or job that it is about; empty where it is about all switches."""
    detail: str = ""
    """More of it, for people."""
    duration_ps: int | None = None
    """How long it took; null for what takes no time."""
    entries: int = 0
    """Written to switches."""
    switches: tuple[str, ...] = ()
    """That they were written to."""


class EventLog:
    """The latest `MOST_EVENTS` events, in the order in which they were added."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._events: deque[ControllerEvent] = deque(maxlen=most)
        self._added = 0

    def add(self, event: ControllerEvent) -> None:
        """Add an event; the oldest one goes if there are too many."""
        self._added += 1
        self._events.append(event)

    def __iter__(self) -> Iterator[ControllerEvent]:
        # A copy: the controller may run in another thread.
        return iter(list(self._events))

    def __len__(self) -> int:
        return len(self._events)

    @property
    def dropped(self) -> int:
        """How many old events are no longer there."""
        return self._added - len(self._events)
