"""Where a job's ranks are on a fabric, and what each of them has to do there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from weft.traffic.collectives import collective_named
from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.group_shape import group_shape
from weft.traffic.jobs.job import CollectiveCall, Group, Job, JobError, RankPart
from weft.traffic.jobs.rank_job import SHARE_UNIT, PeerPaths, RankCall, RankJob
from weft.traffic.schedule_nodes import Channel, scale_up_label
from weft.traffic.schedules import CollectiveSpec


@dataclass(frozen=True)
class RankPlaces:
    """What of a fabric a job depends on: each rank's host, and each plane's rate, 0 where it is out of use."""

    hosts: tuple[int, ...]
    plane_rates_bps: tuple[int, ...]


class PlacedRanks:
    """A job whose rank r is the fabric's rank `ranks[r]`.

    Raises JobError for ranks that the fabric has not, too few or too many of them, or one twice.
    """

    def __init__(self, job: Job, ranks: Sequence[int], places: RankPlaces) -> None:
        self.job, self.ranks, self.places = job, tuple(ranks), places
        if len(self.ranks) != len(job.parts):
            raise JobError(f"{len(self.ranks)} places for a job of {len(job.parts)} ranks")
        if len(set(self.ranks)) < len(self.ranks):
            raise JobError("two ranks of a job in one place")
        for rank in self.ranks:
            if not 0 <= rank < len(places.hosts):
                raise JobError(
                    f"a job's rank on rank {rank} of the fabric (valid: 0 to {len(places.hosts) - 1})"
                )
        self._group_ranks = [{rank: place for place, rank in enumerate(group.ranks)} for group in job.groups]
        self._fabric_ranks = [tuple(self.ranks[rank] for rank in group.ranks) for group in job.groups]
        self._calls: dict[tuple[int, int], tuple[str, str, CollectiveSpec]] = {}

    def check(self) -> None:
        """Raise JobError if the job cannot come to an end, or a collective cannot be."""
        check_job(self.job)
        for part in self.job.parts:
            for group_slot, call in part.operations.calls:
                self._call(part.groups[group_slot], call)

    def parts(self, label: str, run_tag: int) -> Iterator[RankJob]:
        """Yield what each rank does, in order, over connections of this label. Raises JobError."""
        for rank, part in enumerate(self.job.parts):
            yield RankJob(
                peers=tuple(
                    self._paths(rank, peer, label) for peer in part.peers[: part.operations.peer_slots]
                ),
                calls=tuple(self._rank_calls(rank, part, label)),
                run_tag=run_tag,
                compute_scale=part.compute_scale,
            )

    def _paths(self, rank: int, peer: int, label: str) -> PeerPaths:
        own, other = self.ranks[rank], self.ranks[peer]
        if self.places.hosts[own] == self.places.hosts[other]:
            return PeerPaths((Channel(0, other, scale_up_label(label)),), (SHARE_UNIT,))
        rates = self.places.plane_rates_bps
        planes = [plane for plane, rate in enumerate(rates) if rate]
        ends = accumulate(rates[plane] for plane in planes)
        return PeerPaths(
            tuple(Channel(plane, other, label) for plane in planes),
            tuple(SHARE_UNIT * end // sum(rates) for end in ends),
        )

    def _rank_calls(self, rank: int, part: RankPart, label: str) -> Iterator[RankCall]:
        for group_slot, call in part.operations.calls:
            group = part.groups[group_slot]
            collective, algorithm, spec = self._call(group, call)
            yield RankCall(
                collective=collective,
                algorithm=algorithm,
                spec=spec,
                group_rank=self._group_ranks[group][rank],
                ranks=self._fabric_ranks[group],
                label=f"{label}/group{group}",
            )

    def _call(self, group: int, call: int) -> tuple[str, str, CollectiveSpec]:
        known = self._calls.get((group, call))
        if known is None:
            known = self._calls[group, call] = self._made_call(self.job.groups[group], self.job.calls[call])
        return known

    def _made_call(self, group: Group, call: CollectiveCall) -> tuple[str, str, CollectiveSpec]:
        try:
            return made_call(call, [self.places.hosts[self.ranks[rank]] for rank in group.ranks], self.places)
        except ValueError as error:
            raise JobError(
                f"{call.collective} of {call.size_bytes} B in group {group.name!r}: {error}"
            ) from None


def made_call(
    call: CollectiveCall, hosts: Sequence[int], places: RankPlaces
) -> tuple[str, str, CollectiveSpec]:
    """Return the collective's reference, algorithm and spec of a call in a group whose ranks are on these hosts.

    A size that does not divide among the ranks is rounded up. Raises ValueError for what cannot be.
    """
    collective = collective_named(call.collective)
    ranks = len(hosts)
    least_bytes = collective.least_size_bytes(ranks)
    size_bytes = -(-call.size_bytes // least_bytes) * least_bytes
    shape = group_shape(hosts)
    spec = CollectiveSpec(
        rank_count=ranks,
        element_count=collective.element_count(collective.input_elements(size_bytes, ranks), ranks),
        dtype=call.dtype,
        operation=call.operation,
        plane_rates_bps=places.plane_rates_bps,
        root=call.root,
        **shape._asdict(),
    )
    in_network = {each.name for each in collective.algorithms if each.in_network}
    if call.algorithm in in_network:
        raise ValueError("the network reduces nothing in jobs (valid: an algorithm of hosts)")
    if call.algorithm:
        collective.check(call.algorithm, spec)
        return collective.reference, call.algorithm, spec
    suitable = [name for name in collective.suitable(spec) if name not in in_network]
    if not suitable:
        raise ValueError(collective.unsuitable(spec) or "no algorithm suits it")
    return collective.reference, suitable[0], spec
