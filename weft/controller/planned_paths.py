"""The paths that a plane's routes allow: finds the path that an INT stack recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import xor

from weft.controller.failures import NO_FAILURES
from weft.controller.features.identity import switch_id
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.channels import PortDestinations
from weft.controller.routing.intermediates import Intermediates
from weft.topologies import FabricSpec, SwitchSpec

_MOST_SWITCHES = 16
"""Most switches on a path of unknown length."""
_MOST_STEPS = 200_000


@dataclass(frozen=True)
class FoundPath:
    """The names of a path's switches in order, or why the path is unknown."""

    switches: tuple[str, ...] = ()
    why_unknown: str = ""


class PlannedPaths:
    """The paths of a plane, given the destinations that its latest plan sends over each port.

    `destinations` come from `PlaneRouting.destinations`. If the kind of routing has `intermediates`, packets go
    directly or through one of them.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        plane: int,
        destinations: PortDestinations,
        intermediates: Intermediates | None = None,
    ) -> None:
        self._fabric = fabric
        self._switches = fabric.switches_of_plane(plane)
        self._places = {switch.name: place for place, switch in enumerate(self._switches)}
        self._destinations = destinations
        self._intermediates = intermediates
        self._steps = 0

    @classmethod
    def of_kind(cls, fabric: FabricSpec, routing: str, plane: int) -> PlannedPaths:
        """Return the paths of a kind of routing in a fabric without failures."""
        kind = ROUTING_KINDS.named(routing)
        planned = kind.in_plane(fabric, plane).plane(fabric, plane)
        planned.plan(NO_FAILURES)
        return cls(fabric, plane, planned.destinations(), kind.intermediates_of(fabric, plane))

    def with_id(self, first: str, last: str, path_id: int, count: int | None) -> FoundPath:
        """Return the path between two switches with the path id that INT recorded.

        Args:
            first: name of the sending host's switch.
            last: name of the receiving host's switch.
            path_id: XOR of the ids of all switches on the path.
            count: number of switches on the path; None if it exceeds INT's capacity.

        """
        self._steps = 0
        lengths = range(1, _MOST_SWITCHES + 1) if count is None else (count,)
        found = (
            path
            for length in lengths
            for path in self._paths(self._fabric.switch(first), self._fabric.switch(last), length)
            if reduce(xor, map(switch_id, path)) == path_id
        )
        names = list(islice(dict.fromkeys(tuple(switch.name for switch in path) for path in found), 2))
        if self._steps > _MOST_STEPS:
            return FoundPath(why_unknown="the routes have too many paths to search")
        if len(names) > 1:
            return FoundPath(why_unknown=f"several paths of the routes have the id {path_id:#05x}")
        if not names:
            return FoundPath(why_unknown=f"no path of the present routes has the id {path_id:#05x}")
        return FoundPath(names[0])

    def _paths(self, first: SwitchSpec, last: SwitchSpec, count: int) -> Iterator[tuple[SwitchSpec, ...]]:
        """Yield the paths with `count` switches: direct ones first, then paths through an intermediate."""
        yield from self._straight(first, last, count)
        chosen = self._intermediates
        if chosen is None or not chosen.are_enough:
            return
        ends = {chosen.of_switches[self._places[switch.name]] for switch in (first, last)}
        if len(ends) == 1:
            return
        for number in range(chosen.count):
            if number not in ends:
                for before in self._to_intermediate(first, number, count):
                    for after in self._straight(before[-1], last, count - len(before) + 1):
                        yield (*before, *after[1:])

    def _straight(self, first: SwitchSpec, last: SwitchSpec, count: int) -> Iterator[tuple[SwitchSpec, ...]]:
        place = self._places[last.name]
        for path in self._walks(first, count, place, lambda switch: switch.name == last.name):
            if len(path) == count:
                yield path

    def _to_intermediate(self, first: SwitchSpec, number: int, most: int) -> Iterator[tuple[SwitchSpec, ...]]:
        assert self._intermediates is not None
        of_switches = self._intermediates.of_switches
        return self._walks(
            first,
            most,
            len(self._switches) + number,
            lambda switch: of_switches[self._places[switch.name]] == number,
        )

    def _walks(
        self, first: SwitchSpec, most: int, bit: int, is_end: Callable[[SwitchSpec], bool]
    ) -> Iterator[tuple[SwitchSpec, ...]]:
        """Yield the walks along ports towards a destination bit, each up to the first switch with `is_end`."""
        unfinished: list[tuple[SwitchSpec, ...]] = [(first,)]
        while unfinished and self._steps <= _MOST_STEPS:
            self._steps += 1
            path = unfinished.pop()
            if is_end(path[-1]):
                yield path
            elif len(path) < most:
                unfinished += [(*path, following) for following in self._following(path[-1], bit)]

    def _following(self, switch: SwitchSpec, bit: int) -> Sequence[SwitchSpec]:
        ports = self._destinations.get(switch.name, {})
        names = {switch.port(number).peer.node: None for number, bits in ports.items() if bits >> bit & 1}
        return [self._fabric.switch(name) for name in names]
