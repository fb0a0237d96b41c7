"""Which ranks of the fabric send to which while a stretch of the critical path lasts, and how many messages in turn."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives import collective_named
from weft.traffic.costs import Links, Wire
from weft.traffic.jobs.critical_path import Stretch, StretchKind
from weft.traffic.jobs.job import Job
from weft.traffic.jobs.placing import PlacedCall, RankPlaces, placed_call

Pair = tuple[int, int]
"""The fabric's ranks of a sender and a receiver on different hosts."""
_LATENCIES = Links(between=Wire(1.0, 0.0), inside=Wire(0.0, 0.0), aggregation=Wire(1.0, 0.0))
"""On these links an algorithm costs as much as messages between hosts wait for each other."""


class PairsOfStretches:
    """Pairs of a job, with rank r placed on the fabric's rank `ranks[r]`."""

    def __init__(self, job: Job, ranks: Sequence[int], places: RankPlaces) -> None:
        self._job, self._ranks, self._places = job, tuple(ranks), places
        self._of_groups: dict[tuple[int, int], tuple[Pair, ...]] = {}
        self._latencies: dict[tuple[int, int], float] = {}

    def of(self, stretch: Stretch) -> tuple[Pair, ...]:
        """Return the pairs: sender and receiver of a message, those that a collective joins, else none."""
        if stretch.kind is StretchKind.TRANSFER and stretch.source != stretch.rank:
            return self._on_different_hosts([(stretch.source, stretch.rank)])
        if stretch.kind is not StretchKind.COLLECTIVE:
            return ()
        key = self._call(stretch)
        if key not in self._of_groups:
            self._of_groups[key] = self._of_collective(*key)
        return self._of_groups[key]

    def latencies(self, stretch: Stretch) -> float:
        """Return how many messages between hosts a stretch lasts, one after the other, as the algorithms' costs say."""
        if stretch.kind is StretchKind.TRANSFER:
            part = self._job.parts[stretch.rank]
            peer = part.peers[int(part.operations.target[stretch.operation])]
            return float(len(self._on_different_hosts([(peer, stretch.rank)])))
        if stretch.kind is not StretchKind.COLLECTIVE:
            return 0.0
        key = self._call(stretch)
        if key not in self._latencies:
            placed = self._placed(*key)
            algorithms = collective_named(placed.collective).algorithms
            (algorithm,) = (each for each in algorithms if each.name == placed.algorithm)
            self._latencies[key] = algorithm.cost(placed.spec, _LATENCIES).total_ps
        return self._latencies[key]

    def _call(self, stretch: Stretch) -> tuple[int, int]:
        """Return the group and the call of a collective's stretch."""
        part = self._job.parts[stretch.rank]
        slot, call = part.operations.calls[int(part.operations.target[stretch.operation])]
        return part.groups[slot], call

    def _placed(self, group: int, call: int) -> PlacedCall:
        hosts = [self._places.hosts[self._ranks[rank]] for rank in self._job.groups[group].ranks]
        return placed_call(self._job.calls[call], hosts, self._places)

    def _of_collective(self, group: int, call: int) -> tuple[Pair, ...]:
        members, placed = self._job.groups[group].ranks, self._placed(group, call)
        return self._on_different_hosts(
            [(members[own], members[peer]) for own in range(len(members)) for peer in _written_peers(placed, own)]
        )

    def _on_different_hosts(self, pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        placed = [(self._ranks[one], self._ranks[other]) for one, other in pairs]
        hosts = self._places.hosts
        return tuple(pair for pair in placed if hosts[pair[0]] != hosts[pair[1]])


def _written_peers(call: PlacedCall, rank: int) -> list[int]:
    return collective_named(call.collective).schedule(call.algorithm, call.spec, rank).written_peers()
