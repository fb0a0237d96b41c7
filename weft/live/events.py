"""Events of a lab as rows of a list: from its controller's log and from its counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.controller.event_log import EventLog
from weft.controller.output import text
from weft.controller.views import event_row
from weft.live.samples import DROPPED, MARKED, PAUSES, Sample

MOST_EVENTS = 500
_MOST_OF_A_KIND = 8
"""Most ports named when many begin or end a spell at once."""
_SPELLS = {DROPPED: "drops", PAUSES: "pauses", MARKED: "marks"}


@dataclass(frozen=True)
class Event:
    """A row: time since the lab was up (by its clock), event, place, and details."""

    at: str
    what: str
    where: str = ""
    more: str = ""

    def as_row(self) -> list[str]:
        """Return the row's cells."""
        return [self.at, self.what, self.where, self.more]


@dataclass
class EventRows:
    """The latest `MOST_EVENTS` events, numbered from 0."""

    port_names: Sequence[str]
    link_names: Sequence[str]
    added: int = 0
    _rows: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    _noted: int = 0
    _spells: dict[int, dict[int, int]] = field(default_factory=lambda: {series: {} for series in _SPELLS})
    _jobs: frozenset[str] = frozenset()
    _down: frozenset[int] = frozenset()

    def since(self, number: int) -> list[list[str]]:
        """Return the rows from a number on that are still kept."""
        left = max(0, min(len(self._rows), self.added - number))
        return [event.as_row() for event in list(self._rows)[len(self._rows) - left :]]

    def add(self, event: Event) -> None:
        """Add a row and drop the oldest if there are too many."""
        self._rows.append(event)
        self.added += 1

    def follow_log(self, log: EventLog) -> None:
        """Add the controller's events since the last call."""
        events = list(log)
        total = log.dropped + len(events)
        for event in events[max(0, len(events) - (total - self._noted)) :]:
            row = event_row(event.as_dict())
            more = [text(row["more"])] if row["more"] else []
            if row["entries"]:
                more.append(f"{row['entries']} entries to {len(row['switches'])} switches")
            if row["took"]:
                more.append(f"in {row['took']}")
            self.add(Event(row["at"], row["what"], event.element, ", ".join(more)))
        self._noted = total

    def follow_links(self, down: frozenset[int], at: str) -> None:
        """Add links that failed or came back, for labs with a controller that does not log them."""
        for link in sorted(down ^ self._down):
            self.add(Event(at, "link down" if link in down else "link up", self.link_names[link]))
        self._down = down

    def follow_sample(self, sample: Sample, at: str) -> None:
        """Add ports that begin or end to drop, to be paused or to mark, and jobs that begin or end."""
        for job in sorted(sample.jobs ^ self._jobs):
            self.add(Event(at, f"job {'begins' if job in sample.jobs else 'ends'}", f"job {job}"))
        self._jobs = sample.jobs
        for series, what in _SPELLS.items():
            going = self._spells[series]
            counted = sample.ports[:, series]
            now = {int(port): int(counted[port]) for port in np.flatnonzero(counted)}
            ended = {port: going.pop(port) for port in [*going] if port not in now}
            begun = [port for port in now if port not in going]
            for port, count in now.items():
                going[port] = going.get(port, 0) + count
            self._add_spells(at, f"{what} begin", [(self.port_names[port], "") for port in begun])
            # Ports with a spell that is over, and the spell's total.
            self._add_spells(
                at,
                f"{what} end",
                [(self.port_names[port], f"{count} in all") for port, count in ended.items()],
            )

    def _add_spells(self, at: str, what: str, ports: Iterable[tuple[str, str]]) -> None:
        listed: list[Any] = list(ports)
        for where, more in listed[:_MOST_OF_A_KIND]:
            self.add(Event(at, what, where, more))
        if len(listed) > _MOST_OF_A_KIND:
            self.add(Event(at, what, f"{len(listed) - _MOST_OF_A_KIND} more ports"))
