"""Which ranks of the fabric send to which while a stretch of the critical path lasts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.collectives import collective_named
from weft.traffic.jobs.critical_path import Stretch, StretchKind
from weft.traffic.jobs.job import Job
from weft.traffic.jobs.placing import PlacedCall, RankPlaces, placed_call

Pair = tuple[int, int]
"""The fabric's ranks of a sender and a receiver on different hosts."""


class PairsOfStretches:
    """Pairs of a job, with rank r placed on the fabric's rank `ranks[r]`."""

    def __init__(self, job: Job, ranks: Sequence[int], places: RankPlaces) -> None:
        self._job, self._ranks, self._places = job, tuple(ranks), places
        self._of_groups: dict[tuple[int, int], tuple[Pair, ...]] = {}

    def of(self, stretch: Stretch) -> tuple[Pair, ...]:
        """Return the pairs: sender and receiver of a message, those that a collective joins, else none."""
        if stretch.kind is StretchKind.TRANSFER and stretch.source != stretch.rank:
            return self._on_different_hosts([(stretch.source, stretch.rank)])
        if stretch.kind is not StretchKind.COLLECTIVE:
            return ()
        part = self._job.parts[stretch.rank]
        slot, call = part.operations.calls[int(part.operations.target[stretch.operation])]
        key = part.groups[slot], call
        if key not in self._of_groups:
            self._of_groups[key] = self._of_collective(*key)
        return self._of_groups[key]

    def _of_collective(self, group: int, call: int) -> tuple[Pair, ...]:
        members = self._job.groups[group].ranks
        hosts = [self._places.hosts[self._ranks[rank]] for rank in members]
        placed = placed_call(self._job.calls[call], hosts, self._places)
        return self._on_different_hosts(
            [(members[own], members[peer]) for own in range(len(members)) for peer in _written_peers(placed, own)]
        )

    def _on_different_hosts(self, pairs: Sequence[Pair]) -> tuple[Pair, ...]:
        placed = [(self._ranks[one], self._ranks[other]) for one, other in pairs]
        hosts = self._places.hosts
        return tuple(pair for pair in placed if hosts[pair[0]] != hosts[pair[1]])


def _written_peers(call: PlacedCall, rank: int) -> list[int]:
    return collective_named(call.collective).schedule(call.algorithm, call.spec, rank).written_peers()
