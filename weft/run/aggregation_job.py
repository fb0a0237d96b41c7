"""The aggregation jobs of a fabric's hosts, joined before in-network reductions and left after a failed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from weft.clocks.endpoint_settings import default_slot_count
from weft.clocks.lab import Lab
from weft.controller.errors import JobError, LostTreesError
from weft.controller.memberships import JobMembership
from weft.errors import BadInputError, CheckFailedError
from weft.quantities.traffic_classes import DATA_CLASS
from weft.run.algorithms import objection_to_nics
from weft.run.reducing_groups import ReducingGroup
from weft.run.ring_without_trees import has_ring, reduce_in_ring
from weft.run.spare_hosts import members
from weft.scenario.options import MAX_SLOTS
from weft.traffic.aggregation_format import LANE_COUNT
from weft.traffic.commands.aggregation import Membership
from weft.traffic.control import EndpointGroup
from weft.traffic.moved_streams import StoppedStreams

_LEAST_SLOTS = 16
JOB_ID = 1
"""Id of the first job; further jobs have the next ids."""


@dataclass(frozen=True)
class _Joined:
    """A job as its hosts know it: the planes where they have joined it, each with a stream of messages.

    `epochs` are the epochs of the controller's jobs that carry the streams, by id. The job itself carries the streams
    of planes with a tree; each other stream goes over another plane in a separate job. Empty `epochs` mean that joining
    was interrupted.
    """

    group: ReducingGroup
    share: float
    hosts: tuple[str, ...]
    planes: tuple[int, ...] = ()
    epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Moved:
    """Whether a reduction has trees after a failure, and the messages that workers repeat; None if it waits."""

    has_trees: bool
    repeated_messages: int | None = None


class AggregationJobs:
    """Jobs over the planes in use, one for each group of ranks that reduces at a time.

    A job is kept while its trees are valid and successive in-network reductions use it.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._joined: dict[int, _Joined] = {}
        self._is_following = False

    @property
    def slot_count(self) -> int:
        """Slots of each job: the option, or two bandwidth-delay products."""
        options = self._lab.options
        if options.slots:
            return options.slots
        slots = default_slot_count(
            self._lab.fabric, options.ip_version, options.switching.latency, options.aggregation.lane_count
        )
        return max(_LEAST_SLOTS, -(-slots // options.trees))

    def join(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup]) -> list[int]:
        """Have hosts join a job for each group, unless they have already joined it with its current trees.

        All jobs use the same planes: those in use that have trees for every group. If a failure removes the trees of a
        job before its switches are programmed, all start again with the remaining planes.

        Returns:
            The jobs' ids, in order of the groups. Hosts leave all other jobs.

        Raises:
            BadInputError: hosts do not have one NIC per plane. CheckFailedError: links that are down leave no tree.
            JobError: no tree exists even with all links up, or switches have no room for a job.
        """
        if objection := objection_to_nics(self._lab.fabric):
            raise BadInputError(objection)
        while True:
            planes = self._planes(endpoints, groups)
            try:
                return self._join_on(endpoints, groups, planes)
            except LostTreesError:
                continue  # once for each failure that hits a job
            except JobError as error:
                if self._planes(endpoints, groups) != planes:
                    continue
                if not (down := self._links_down()):
                    raise
                hosts = self._hosts_of(endpoints, groups)
                no_plane = "" if self._planes_with_trees(hosts) else "no plane in use has an aggregation tree: "
                raise CheckFailedError(f"{no_plane}{error}; links that are down: {', '.join(down)}") from error

    def planes(self, jobs: Sequence[int]) -> tuple[int, ...]:
        """Return the planes of jobs that were joined together, which are the same for all."""
        (planes,) = {self._joined[job_id].planes for job_id in jobs}
        return planes

    def _planes(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup]) -> tuple[int, ...]:
        """Return the planes for jobs of these groups: the planes in use with trees, or all in use if none has trees."""
        hosts = self._hosts_of(endpoints, groups)
        return self._planes_with_trees(hosts) or self._lab.operations.planes_in_use

    def _planes_with_trees(self, hosts: Sequence[Sequence[str]]) -> tuple[int, ...]:
        """Return the planes in use that currently have trees for each of these hosts' jobs.

        If there are none, return the planes that have trees again but not yet all routes.
        """
        operations, controller = self._lab.operations, self._lab.controller
        return controller.planes_with_trees(operations.planes_in_use, hosts) or controller.planes_with_trees(
            operations.planes_not_cordoned, hosts
        )

    def _links_down(self) -> list[str]:
        """Return the names of the links that the controller considers down."""
        failures = self._lab.controller.failures
        return sorted(self._lab.fabric.link_name(self._lab.fabric.link_at(min(ends))) for ends in failures.links)

    def _join_on(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup], planes: tuple[int, ...]) -> list[int]:
        """Have hosts join a job for each group on these planes unless they have already; see `join`."""
        shares = [self._share(group, groups) for group in groups]
        found = self._current(list(zip(groups, shares, strict=True)), planes)
        kept = [job_id for job_id in found if job_id is not None]
        if left := [job_id for job_id in self._joined if job_id not in kept]:
            for job_id in left:
                self._leave(job_id)
            endpoints.leave(kept)
        return [
            self._join(endpoints, group, share, planes) if job_id is None else job_id
            for group, share, job_id in zip(groups, shares, found, strict=True)
        ]

    def _share(self, group: ReducingGroup, groups: Sequence[ReducingGroup]) -> float:
        """Return the share of each link promised to a group's job: an equal part of its tenant's bandwidth."""
        tenant = self._lab.options.tenants.get(group.tenant)
        bandwidth = (tenant.bandwidth if tenant is not None else None) or 0.0
        return bandwidth / sum(other.tenant == group.tenant for other in groups)

    def _current(self, wanted: Sequence[tuple[ReducingGroup, float]], planes: tuple[int, ...]) -> list[int | None]:
        """Return a different current job for each group, None for groups without one."""
        free = [job_id for job_id in sorted(self._joined) if self._is_current(job_id, planes)]
        found: list[int | None] = []
        for group, share in wanted:
            joined = (job_id for job_id in free if self._joined[job_id].group == group)
            fitting = next((job_id for job_id in joined if self._joined[job_id].share == share), None)
            if fitting is not None:
                free.remove(fitting)
            found.append(fitting)
        return found

    def _join(self, endpoints: EndpointGroup, group: ReducingGroup, share: float, planes: tuple[int, ...]) -> int:
        job_id = self._free_id()
        ranks = self._ranks(group)
        hosts = self._hosts(endpoints, ranks)
        self._joined[job_id] = _Joined(group, share, tuple(hosts))
        try:
            memberships = self._added(job_id, self._joined[job_id], hosts, planes)
        except JobError:
            del self._joined[job_id]
            raise
        self._joined[job_id] = _Joined(group, share, tuple(hosts), planes, _epochs(memberships))
        lanes = self._lab.options.aggregation.lane_count
        endpoints.join(
            {
                rank: [host_membership(of_host[name], lanes, group.traffic_class) for of_host in memberships.values()]
                for rank, name in zip(ranks, hosts, strict=True)
            }
        )
        return job_id

    def has_moved(self) -> bool:
        """Return whether a failure has changed or removed trees that hosts have joined."""
        return any(joined.epochs and not self._has_its_trees(job_id) for job_id, joined in self._joined.items())

    def follow(self, endpoints: EndpointGroup) -> bool:
        """Resume reductions with changed trees over other trees, from where their slowest worker was.

        Without trees, hosts reduce the messages that all of them have posted in a ring; if the ring has no path either,
        they wait for one. Returns whether a reduction has no trees.
        """
        if self._is_following:
            return False  # this waits for the ring
        self._is_following = True
        try:
            hit = [
                job_id for job_id, joined in self._joined.items() if joined.epochs and not self._has_its_trees(job_id)
            ]
            moved = [self._move(endpoints, job_id, self._joined[job_id]) for job_id in hit]
        finally:
            self._is_following = False
        repeated = [each.repeated_messages for each in moved if each.repeated_messages is not None]
        if repeated:
            self._lab.link_events.note_resumed(sum(repeated))
        return not all(each.has_trees for each in moved)

    def _move(self, endpoints: EndpointGroup, job_id: int, joined: _Joined) -> _Moved:
        """Resume a reduction if possible."""
        ranks = self._ranks(joined.group)
        hosts = self._hosts(endpoints, ranks)
        stopped = endpoints.stop_streams(job_id, ranks)
        are_posted = any(each.posted > each.first_message for each in stopped.agreed.values())
        if not are_posted and self._was_evicted(job_id, joined):
            return _Moved(has_trees=False)  # others need its slots more, until there is something to reduce
        carrying = self._carrying(job_id, joined, hosts)
        if carrying is None:
            if are_posted and has_ring(self._lab, hosts):
                reduce_in_ring(self._lab, endpoints, stopped, ranks, joined.group.traffic_class)
                return _Moved(has_trees=False, repeated_messages=_repeated(stopped))
            return _Moved(has_trees=False)
        lanes = self._lab.options.aggregation.lane_count
        stopped.move(
            {
                rank: {
                    plane: host_membership(of_host[host], lanes, joined.group.traffic_class)
                    for plane, of_host in carrying.items()
                }
                for rank, host in zip(ranks, hosts, strict=True)
            }
        )
        self._joined[job_id] = replace(joined, epochs=_epochs(carrying))
        return _Moved(has_trees=True, repeated_messages=_repeated(stopped))

    def _carrying(
        self, job_id: int, joined: _Joined, hosts: Sequence[str]
    ) -> dict[int, dict[str, JobMembership]] | None:
        """Return the hosts' memberships for each stream, by its plane; None if there are no trees.

        It does not wait until other jobs have been idle for a lease, as hosts have stopped: later jobs check that.
        """
        controller = self._lab.controller
        if list(joined.epochs) == [job_id] and self._is_there(job_id, joined):
            return _by_plane(controller.memberships(job_id))
        was_evicted = self._was_evicted(job_id, joined)
        for each in {job_id, *joined.epochs}:
            self._discard(each, joined)
        while planes := self._planes_with_trees([hosts]):
            carrying: dict[int, dict[str, JobMembership]] = {}
            try:
                self._add_carriers(carrying, job_id, joined, hosts, planes)
                return carrying
            except JobError as error:
                for added in _epochs(carrying):
                    controller.discard_job(added)
                if not isinstance(error, LostTreesError):
                    break
        if was_evicted:
            controller.note_evicted(job_id)
        return None

    def _add_carriers(
        self,
        carrying: dict[int, dict[str, JobMembership]],
        job_id: int,
        joined: _Joined,
        hosts: Sequence[str],
        planes: Sequence[int],
    ) -> None:
        """Add jobs on these planes for the hosts' streams; add their memberships to `carrying`, by stream's plane.

        A stream of another plane goes over the plane with the fewest streams.
        """
        over = {plane: plane for plane in joined.planes if plane in planes}
        at_home = list(over)
        streams = Counter(over.values())
        for moved in (plane for plane in joined.planes if plane not in planes):
            over[moved] = min(planes, key=lambda plane: (streams[plane], plane))
            streams[over[moved]] += 1
        parted = replace(joined, share=joined.share / max(streams.values()))
        if at_home:
            carrying |= self._added(job_id, parted, hosts, at_home, wait=False)
        for stream, plane in over.items():
            if stream not in at_home:
                other = self._added(self._free_id(), parted, hosts, [plane], wait=False)
                (carrying[stream],) = other.values()

    def _added(
        self, job_id: int, joined: _Joined, hosts: Sequence[str], planes: Sequence[int], wait: bool = True
    ) -> dict[int, dict[str, JobMembership]]:
        memberships = self._lab.controller.add_job(
            job_id,
            hosts,
            self._slots_of(joined.group),
            planes,
            ip_version=self._lab.options.ip_version,
            tenant=joined.group.tenant,
            share=joined.share,
            keep=self._known_ids(),
            wait=wait,
        )
        return _by_plane(memberships)

    def _slots_of(self, group: ReducingGroup) -> int:
        """Return the slots of a group's job, few enough to leave room for the other jobs of its collective."""
        options = self._lab.options
        capacity = MAX_SLOTS * LANE_COUNT // options.aggregation.lane_count
        return options.slots or min(self.slot_count, max(1, capacity // group.jobs))

    def _free_id(self) -> int:
        """Return an id used neither by the controller's jobs nor by jobs that only hosts still know."""
        taken = {job.job_id for job in self._lab.controller.jobs} | self._known_ids()
        return next(number for number in count(JOB_ID) if number not in taken)

    def _known_ids(self) -> set[int]:
        return {*self._joined, *(each for other in self._joined.values() for each in other.epochs)}

    def _ranks(self, group: ReducingGroup) -> Sequence[int]:
        return range(self._lab.fabric.rank_count) if group.ranks is None else group.ranks

    def _hosts_of(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup]) -> list[list[str]]:
        return [self._hosts(endpoints, self._ranks(group)) for group in groups]

    def _hosts(self, endpoints: EndpointGroup, ranks: Sequence[int]) -> list[str]:
        names = members(self._lab.fabric, endpoints)
        return [names[rank] for rank in ranks]

    def _has_its_trees(self, job_id: int) -> bool:
        """Return whether a job has the trees that its hosts know: after a failure it has others in a new epoch."""
        epochs = self._joined[job_id].epochs
        return bool(epochs) and all(self._lab.controller.job_epoch(each) == epoch for each, epoch in epochs.items())

    def _is_current(self, job_id: int, planes: tuple[int, ...]) -> bool:
        """Return whether a job has its trees and planes and uses nothing cordoned (which does not move a tree)."""
        return (
            self._has_its_trees(job_id)
            and list(self._joined[job_id].epochs) == [job_id]
            and self._joined[job_id].planes == planes
            and not self._lab.controller.job_uses_avoided(job_id)
        )

    def leave(self) -> None:
        """Remove all jobs."""
        for job_id in list(self._joined):
            self._leave(job_id)

    def _leave(self, job_id: int) -> None:
        joined = self._joined.pop(job_id)
        for each in {job_id, *joined.epochs}:
            self._discard(each, joined)

    def _discard(self, job_id: int, joined: _Joined) -> None:
        """Remove a job, unless other hosts have got its id after an eviction."""
        if self._is_there(job_id, joined) or self._lab.controller.job_epoch(job_id) is None:
            self._lab.controller.discard_job(job_id)

    def _was_evicted(self, job_id: int, joined: _Joined) -> bool:
        return any(self._lab.controller.was_evicted(each) for each in {job_id, *joined.epochs})

    def _is_there(self, job_id: int, joined: _Joined) -> bool:
        jobs = self._lab.controller.jobs
        return any(job.job_id == job_id and job.hosts == joined.hosts for job in jobs)


def _repeated(stopped: StoppedStreams) -> int:
    return sum(each.repeated for each in stopped.agreed.values())


def _epochs(carrying: Mapping[int, Mapping[str, JobMembership]]) -> dict[int, int]:
    """Return the epochs of the controller's jobs that carry streams, by id."""
    memberships = (next(iter(of_host.values())) for of_host in carrying.values())
    return {each.job_id: each.epoch for each in memberships}


def _by_plane(memberships: Mapping[str, Sequence[JobMembership]]) -> dict[int, dict[str, JobMembership]]:
    """Return the hosts' memberships in each plane."""
    found: dict[int, dict[str, JobMembership]] = {}
    for host, own in memberships.items():
        for each in own:
            found.setdefault(each.plane, {})[host] = each
    return found


def host_membership(membership: JobMembership, lane_count: int, traffic_class: int = DATA_CLASS) -> Membership:
    """Return a host's membership in a job, with the lanes of its packets and their class."""
    return Membership(
        plane=membership.plane,
        job_id=membership.job_id,
        epoch=membership.epoch,
        q_key=membership.q_key,
        rank=membership.rank,
        worker_index=membership.worker_index,
        worker_count=membership.worker_count,
        worker_numbers=membership.worker_numbers,
        slot_count=membership.slot_count,
        lane_count=lane_count,
        aggregation_address=str(membership.aggregation_address),
        aggregation_mac=membership.aggregation_mac,
        group_address=str(membership.group_address),
        traffic_class=traffic_class,
        rate_bps=membership.rate_bps,
    )
