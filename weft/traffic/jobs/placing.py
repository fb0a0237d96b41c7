"""Where a job's ranks are on a fabric, and what each of them has to do there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.collectives import collective_named
from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.classes import JobClasses, Slots
from weft.traffic.jobs.job import CollectiveCall, Group, Job, JobError
from weft.traffic.jobs.operations import Kind
from weft.traffic.jobs.rank_job import SHARE_UNIT, PeerPaths, RankCall, RankJob, shares_of_planes
from weft.traffic.jobs.readers import Readers, readers_of
from weft.traffic.jobs.reducing import JobReduction, first_unordered
from weft.traffic.schedule_nodes import Channel, scale_up_label
from weft.traffic.schedules import CollectiveSpec


class GroupShape(NamedTuple):
    """The fields of `CollectiveSpec` that say which ranks share a host."""

    ranks_per_host: int = 1
    rank_stride: int = 1
    hosts: tuple[int, ...] = ()


def group_shape(hosts: Sequence[int]) -> GroupShape:
    """Return the shape of a group, given the host of each of its ranks.

    Hosts with as many ranks each, at equal distances, are described by numbers alone; others rank by rank, numbered in
    order of their first rank, so that groups that lie alike have the same shape.
    """
    counts = Counter(hosts)
    size = counts[hosts[0]]
    if len(counts) == len(hosts):
        return GroupShape()
    if set(counts.values()) == {size}:
        stride = hosts.index(hosts[0], 1)
        block = size * stride
        if len(hosts) % block == 0 and all(
            host == hosts[rank - rank % block + rank % stride] for rank, host in enumerate(hosts)
        ):
            return GroupShape(size, stride)
    numbers = {host: number for number, host in enumerate(counts)}
    return GroupShape(hosts=tuple(numbers[host] for host in hosts))


_NO_READERS = Readers()
_ALIGNMENT_BYTES = 4


def _aligned(size_bytes: int) -> int:
    # Elements of every type lie on multiples of their size behind it.
    return -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


@dataclass(frozen=True)
class RankPlaces:
    """The fabric, as a job needs it: each rank's host, each plane's rate (0: out of use), the classes of data that
    switches keep apart, and whether the fabric is a scale-up domain, or switches inside its hosts reduce.
    """

    hosts: tuple[int, ...]
    plane_rates_bps: tuple[int, ...]
    traffic_classes: tuple[int, ...] = (DATA_CLASS,)
    is_scale_up: bool = False
    host_reductions: bool = False


@dataclass(frozen=True)
class PlacedCall:
    """A call in a group as it is carried out there."""

    collective: str
    algorithm: str
    spec: CollectiveSpec
    is_in_network: bool = False


@dataclass(frozen=True)
class RankCollective:
    """A rank's part in the collective `number` of a group; its data begin at an offset in all its collectives' data."""

    group: int
    number: int
    group_rank: int
    call: PlacedCall
    traffic_class: int
    offset_bytes: int


class PlacedRanks:
    """A job, with rank r placed on the fabric's rank `ranks[r]`.

    Raises JobError for ranks that the fabric lacks, too few or too many of them, or one twice.
    """

    def __init__(self, job: Job, ranks: Sequence[int], places: RankPlaces) -> None:
        self.job, self.ranks, self.places = job, tuple(ranks), places
        if len(self.ranks) != len(job.parts):
            raise JobError(f"{len(self.ranks)} places for a job of {len(job.parts)} ranks", valid="one for each rank")
        for rank in self.ranks:
            if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank < len(places.hosts):
                raise JobError(f"a job's rank on rank {rank!r} of the fabric", valid=f"0 to {len(places.hosts) - 1}")
        twice = [rank for rank, count in Counter(self.ranks).items() if count > 1]
        if twice:
            raise JobError(f"two ranks of a job on rank {twice[0]} of the fabric", valid="each on its own")
        self._group_ranks = [{rank: place for place, rank in enumerate(group.ranks)} for group in job.groups]
        self._fabric_ranks = [tuple(self.ranks[rank] for rank in group.ranks) for group in job.groups]
        self._calls: dict[tuple[int, int], PlacedCall] = {}
        self._aggregation_jobs: dict[tuple[int, int], int] = {}
        self._readers = readers_of(job)
        self._classes = JobClasses(job)

    def check(self) -> None:
        """Raise JobError if the job cannot come to an end, or the fabric cannot do what it asks."""
        self._classes.check(self.places.traffic_classes)
        check_job(self.job)
        for part in self.job.parts:
            for group_slot, call in part.operations.calls:
                self._call(part.groups[group_slot], call)
        self._check_reductions()

    def _check_reductions(self) -> None:
        """Raise JobError unless each rank does a group's collectives that the network reduces one after the other."""
        if not any(self._reduces(group, call) for group, call in self._calls):
            return
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for rank, part in enumerate(self.job.parts):
            operations = part.operations
            if (id(operations), part.groups) in seen:
                continue
            seen.add((id(operations), part.groups))
            rows = operations.of_kind(Kind.COLLECTIVE).tolist()
            reduced: dict[tuple[int, int], list[int]] = {}
            for row, each in zip(rows, self.collectives(rank), strict=True):
                if each.call.is_in_network:
                    reduced.setdefault((each.group, each.traffic_class), []).append(row)
            for (group, _), of_group in reduced.items():
                if (found := first_unordered(operations, of_group)) is not None:
                    raise JobError(
                        f"group {self.job.groups[group].name!r}: the network reduces rank {rank}'s operations "
                        f"{found[0]} and {found[1]}, which may overlap",
                        valid="each depends on the one before",
                    )

    def _reduces(self, group: int, call: int) -> bool:
        return self._call(group, call).is_in_network

    def reductions(self) -> tuple[JobReduction, ...]:
        """Return for which groups the network reduces, by class; each needs an aggregation job. Raises JobError."""
        found: dict[tuple[int, int], None] = {}
        for rank, part in enumerate(self.job.parts):
            for slot, traffic_class in self.slots(rank).calls:
                group_slot, call = part.operations.calls[slot]
                group = part.groups[group_slot]
                if self._reduces(group, call):
                    found[group, traffic_class] = None
        return tuple(JobReduction(group, each, self._fabric_ranks[group]) for group, each in sorted(found))

    def collectives(self, rank: int) -> Iterator[RankCollective]:
        """Yield what a rank takes part in, in order of its operations. Raises JobError."""
        part, offset_bytes = self.job.parts[rank], 0
        operations = part.operations
        slots = operations.target[operations.of_kind(Kind.COLLECTIVE)].tolist()
        numbers, classes = operations.collective_numbers().tolist(), self.slots(rank).collective_classes()
        for slot, number, traffic_class in zip(slots, numbers, classes, strict=True):
            group_slot, call = operations.calls[slot]
            group = part.groups[group_slot]
            group_rank, placed = self._group_ranks[group][rank], self._call(group, call)
            yield RankCollective(group, number, group_rank, placed, traffic_class, offset_bytes)
            offset_bytes += _aligned(placed.spec.size_bytes)

    def slots(self, rank: int) -> Slots:
        """Return the slots of a rank's operations, by class: one object for all ranks that have the same."""
        return self._classes.slots(rank)

    def data_bytes(self, rank: int) -> int:
        """Return the size of a rank's data of all collectives."""
        sizes = (_aligned(each.call.spec.size_bytes) for each in self.collectives(rank))
        return sum(sizes)

    def parts(
        self,
        label: str,
        run_tag: int,
        *,
        with_data: bool = False,
        aggregation_jobs: Sequence[int] = (),
    ) -> Iterator[RankJob]:
        """Yield what each rank does, in order, over connections of this label. Raises JobError.

        `with_data`, each collective has data of its own; otherwise lengths stand for them. `aggregation_jobs` are those
        that the ranks of `reductions` have joined, in the same order.
        """
        calls = self._calls_with_data if with_data else self._calls_of_lengths
        self._aggregation_jobs = {
            (each.group, each.traffic_class): job_id
            for each, job_id in zip(self.reductions(), aggregation_jobs, strict=True)
        }
        for rank, part in enumerate(self.job.parts):
            yield RankJob(
                peers=tuple(self._paths(rank, *each, label) for each in self._peers(rank)),
                calls=tuple(calls(rank, label)),
                run_tag=run_tag,
                compute_scale=part.compute_scale,
                communication_share=part.communication_share,
                read_bytes=self._readers.get(rank, _NO_READERS).largest_bytes,
            )

    def _peers(self, rank: int) -> tuple[tuple[int, int], ...]:
        """Return the peer and the class of each slot, then of each other rank that reads this one's memory."""

        def pairs(of: int) -> Iterator[tuple[int, int]]:
            peers = self.job.parts[of].peers
            return ((peers[slot], traffic_class) for slot, traffic_class in self.slots(of).peers)

        own = tuple(pairs(rank))
        readers = self._readers.get(rank, _NO_READERS).ranks
        others = ((reader, number) for reader in readers for peer, number in pairs(reader) if peer == rank)
        return (*own, *(each for each in others if each not in own))

    def _paths(self, rank: int, peer: int, traffic_class: int, label: str) -> PeerPaths:
        own, other = self.ranks[rank], self.ranks[peer]
        if self.places.hosts[own] == self.places.hosts[other]:
            inside = Channel(0, other, scale_up_label(label), traffic_class)
            return PeerPaths((inside,), (SHARE_UNIT,))
        planes, shares = shares_of_planes(self.places.plane_rates_bps)
        clearing = self.job.clear_to_send
        channels = (Channel(plane, other, label, traffic_class, clear_to_send=clearing) for plane in planes)
        return PeerPaths(tuple(channels), shares)

    def _calls_of_lengths(self, rank: int, label: str) -> Iterator[RankCall]:
        """Yield a call for each of a rank's slots for calls."""
        part = self.job.parts[rank]
        for slot, traffic_class in self.slots(rank).calls:
            group_slot, call = part.operations.calls[slot]
            group = part.groups[group_slot]
            yield self._rank_call(rank, group, self._call(group, call), label, traffic_class)

    def _calls_with_data(self, rank: int, label: str) -> Iterator[RankCall]:
        """Yield a call for each of a rank's collectives."""
        for each in self.collectives(rank):
            call = self._rank_call(rank, each.group, each.call, label, each.traffic_class)
            # Nothing is registered, nor written to, where there are no elements.
            name = f"{label}/group{each.group}/{each.number}" if each.call.spec.element_count else None
            yield replace(call, data=name, offset_bytes=each.offset_bytes)

    def _rank_call(self, rank: int, group: int, call: PlacedCall, label: str, traffic_class: int) -> RankCall:
        return RankCall(
            collective=call.collective,
            algorithm=call.algorithm,
            spec=call.spec,
            group_rank=self._group_ranks[group][rank],
            ranks=self._fabric_ranks[group],
            label=f"{label}/group{group}",
            traffic_class=traffic_class,
            aggregation_job=self._aggregation_jobs.get((group, traffic_class)) if call.is_in_network else None,
        )

    def _call(self, group: int, call: int) -> PlacedCall:
        known = self._calls.get((group, call))
        if known is None:
            known = self._calls[group, call] = self._made_call(self.job.groups[group], self.job.calls[call])
        return known

    def _made_call(self, group: Group, call: CollectiveCall) -> PlacedCall:
        try:
            return placed_call(call, [self.places.hosts[self.ranks[rank]] for rank in group.ranks], self.places)
        except ValueError as error:
            raise JobError(f"{call.name} of {call.size_bytes} B in group {group.name!r}: {error}") from None


def placed_call(call: CollectiveCall, hosts: Sequence[int], places: RankPlaces) -> PlacedCall:
    """Return how a group with ranks on these hosts carries out a call.

    A size that does not divide among the ranks is rounded up; the network reduces only where the call says so. Raises
    ValueError for an impossible call.
    """
    collective = collective_named(call.collective)
    ranks = len(hosts)
    least = collective.least_elements(ranks)
    size_elements = -(-call.size_bytes // (least * call.dtype.element_bytes)) * least
    shape = group_shape(hosts)
    spec = CollectiveSpec(
        rank_count=ranks,
        element_count=collective.element_count(collective.input_elements(size_elements, ranks), ranks),
        dtype=call.dtype,
        operation=call.operation,
        plane_rates_bps=places.plane_rates_bps,
        root=call.root,
        protocol=call.protocol,
        clear_to_send=call.clear_to_send,
        is_scale_up=places.is_scale_up,
        host_reductions=places.host_reductions,
        **shape._asdict(),
    )
    in_network = {each.name for each in collective.algorithms if each.on(spec).in_network}
    if call.clear_to_send and call.algorithm in in_network:
        raise InvalidValueError(
            f"{call.algorithm} sends aggregation packets, which switches answer: receivers cannot clear them",
            valid="another algorithm, or no clear_to_send",
        )
    if call.algorithm:
        if collective.check(call.algorithm, spec).by_rail:
            raise InvalidValueError(f"{call.algorithm} is for all ranks of a fabric", valid="another algorithm")
        return PlacedCall(collective.reference, call.algorithm, spec, call.algorithm in in_network)
    suitable = [name for name in collective.suitable(spec) if name not in in_network]
    if not suitable:
        raise ValueError(collective.unsuitable(spec) or "no algorithm suits it")
    return PlacedCall(collective.reference, suitable[0], spec)
