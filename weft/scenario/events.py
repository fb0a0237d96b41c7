"""What happens to a fabric while it runs: links that fail and come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from weft.errors import BadInputError
from weft.scenario.links import LinkChoice
from weft.scenario.values import Section, TimePs


def _two_nodes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    choice = LinkChoice.parse(value)
    if not choice.both_ways:
        raise ValueError("a link fails in both directions; valid: NODE<->NODE")
    return choice.sender, choice.receiver


class LinkEventSection(Section):
    """A `link` between two nodes (p0l0<->p0s1) fails (`down`) or comes back (`up`).

    `at`: that time after the fabric is up. Without it, it is down from the start, before the first packet.
    """

    link: Annotated[tuple[str, str], BeforeValidator(_two_nodes)]
    state: Literal["down", "up"]
    at: TimePs | None = None

    @property
    def ends(self) -> frozenset[str]:
        """Return the nodes, in no order."""
        return frozenset(self.link)

    @property
    def name(self) -> str:
        """Return the link's name, as it was given."""
        return "<->".join(self.link)


def check_events(events: Sequence[LinkEventSection], place: str) -> None:
    """Check that each link fails before it comes back, and the other way round. Raises BadInputError."""
    is_up: dict[frozenset[str], bool] = {}
    last_ps: dict[frozenset[str], int] = {}
    for index in in_order(events):
        event = events[index]
        where = f"{place}: events[{index}]"
        if len(event.ends) != 2:
            raise BadInputError(f"{where}.link: {event.name} joins a node to itself")
        up = event.state == "up"
        if is_up.get(event.ends, True) == up:
            raise BadInputError(f"{where}.state: {event.name} is {event.state} already at that time")
        if event.at is not None and last_ps.get(event.ends) == event.at:
            raise BadInputError(f"{where}.at: {event.name} has another event at that time, {event.at} ps")
        is_up[event.ends] = up
        if event.at is not None:
            last_ps[event.ends] = event.at


def in_order(events: Sequence[LinkEventSection]) -> list[int]:
    """Return the places of events in order of their times, first those from the start."""
    return sorted(range(len(events)), key=lambda index: -1 if (at := events[index].at) is None else at)
