"""Scheduled events that the end of a run's traffic came before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weft.quantities.readable import format_time

_MOST_NAMED = 4


@dataclass
class ScheduledEvent:
    """A scheduled event and its progress; whether it may join hosts. Times count from when the fabric was up."""

    event: str
    at_ps: int
    joins: bool = False
    has_begun: bool = False
    has_ended: bool = False


@dataclass(frozen=True)
class UnfinishedEvent:
    """Scheduled events of one kind that had not happened, or had not ended, when the last item of the traffic ended."""

    event: str
    """The event: `p0l0<->p0s1 down`, `p0s1 drained`, `circuits long`."""
    at_ps: int
    """For when it was scheduled, the first of several; counted from when the fabric was up."""
    state: Literal["not begun", "not ended"]
    """Whether it had begun."""
    count: int = 1
    """How many such events: a link flaps many times."""


def unfinished(scheduled: Iterable[ScheduledEvent]) -> list[UnfinishedEvent]:
    """Return those that have not ended, in order of their times, equal ones together."""
    found: dict[tuple[str, bool], UnfinishedEvent] = {}
    for each in sorted(scheduled, key=lambda event: event.at_ps):
        if each.has_ended:
            continue
        key = each.event, each.has_begun
        one = UnfinishedEvent(each.event, each.at_ps, "not ended" if each.has_begun else "not begun")
        found[key] = replace(found[key], count=found[key].count + 1) if key in found else one
    return list(found.values())


def warnings_of(events: Sequence[UnfinishedEvent]) -> Iterator[str]:
    """Yield a sentence for the events that did not happen, and one for those that did not end."""
    for state, what in (("not begun", "did not happen"), ("not ended", "had not ended")):
        found = [each for each in events if each.state == state]
        if found:
            names = ", ".join(
                f"{each.event} at {format_time(each.at_ps)}"
                + (f" and {each.count - 1} more times" if each.count > 1 else "")
                for each in found[:_MOST_NAMED]
            )
            more = f" and {len(found) - _MOST_NAMED} others" if len(found) > _MOST_NAMED else ""
            yield f"the traffic ended before scheduled events, which {what}: {names}{more}"
