"""The aggregation jobs of a fabric's hosts, joined before in-network reductions and left after a failed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from weft.clocks.endpoint_settings import default_slot_count
from weft.clocks.lab import Lab
from weft.controller.errors import JobError, LostTreesError
from weft.controller.memberships import JobMembership
from weft.errors import CheckFailedError
from weft.quantities.traffic_classes import DATA_CLASS
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
    """A job as its hosts know it: the numbers of the NICs with which they have joined it, each with a stream.

    `epochs` are the epochs of the controller's jobs that carry the streams, by id. A job carries the streams of one NIC
    in each plane: the first one has this job's id, and hosts with several NICs in a plane need further ones. A stream
    of a NIC without a tree goes over another NIC, in a separate job; then the streams are not `at_home`. Empty `epochs`
    mean that joining was interrupted.
    """

    group: ReducingGroup
    share: float
    hosts: tuple[str, ...]
    nics: tuple[int, ...] = ()
    epochs: Mapping[int, int] = field(default_factory=dict)
    at_home: bool = True


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

        All jobs use the same NICs: those in planes in use that have trees for every group. If a failure removes the
        trees of a job before its switches are programmed, all start again with the remaining NICs.

        Returns:
            The jobs' ids, in order of the groups. Hosts leave all other jobs.

        Raises:
            CheckFailedError: links that are down leave no tree. JobError: no tree exists even with all links up, or
                switches have no room for a job.
        """
        while True:
            nics = self._nics(endpoints, groups)
            try:
                return self._join_on(endpoints, groups, nics)
            except LostTreesError:
                continue  # once for each failure that hits a job
            except JobError as error:
                if self._nics(endpoints, groups) != nics:
                    continue
                if not (down := self._links_down()):
                    raise
                hosts = self._hosts_of(endpoints, groups)
                no_plane = "" if self._nics_with_trees(hosts) else "no plane in use has an aggregation tree: "
                raise CheckFailedError(f"{no_plane}{error}; links that are down: {', '.join(down)}") from error

    def nics(self, jobs: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of the NICs of jobs that were joined together, which are the same for all."""
        (nics,) = {self._joined[job_id].nics for job_id in jobs}
        return nics

    def _nics(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup]) -> tuple[int, ...]:
        """Return the NICs for jobs of these groups, in planes in use: those with trees, or all if none has trees."""
        if found := self._nics_with_trees(self._hosts_of(endpoints, groups)):
            return found
        nics_of_planes = self._lab.fabric.nics_of_planes
        return tuple(nic for plane in self._lab.operations.planes_in_use for nic in nics_of_planes[plane])

    def _nics_with_trees(self, hosts: Sequence[Sequence[str]]) -> tuple[int, ...]:
        """Return the NICs in planes in use over which each of these hosts' jobs currently has trees.

        If there are none, return the NICs in planes that have trees again but not yet all routes.
        """
        operations, controller = self._lab.operations, self._lab.controller
        return controller.nics_with_trees(operations.planes_in_use, hosts) or controller.nics_with_trees(
            operations.planes_not_cordoned, hosts
        )

    def _links_down(self) -> list[str]:
        """Return the names of the links that the controller considers down."""
        failures = self._lab.controller.failures
        return sorted(self._lab.fabric.link_name(self._lab.fabric.link_at(min(ends))) for ends in failures.links)

    def _join_on(self, endpoints: EndpointGroup, groups: Sequence[ReducingGroup], nics: tuple[int, ...]) -> list[int]:
        """Have hosts join a job for each group with these NICs unless they have already; see `join`."""
        shares = [self._share(group, groups) for group in groups]
        found = self._current(list(zip(groups, shares, strict=True)), nics)
        kept = [job_id for job_id in found if job_id is not None]
        if left := [job_id for job_id in self._joined if job_id not in kept]:
            for job_id in left:
                self._leave(job_id)
            endpoints.leave(kept)
        return [
            self._join(endpoints, group, share, nics) if job_id is None else job_id
            for group, share, job_id in zip(groups, shares, found, strict=True)
        ]

    def _share(self, group: ReducingGroup, groups: Sequence[ReducingGroup]) -> float:
        """Return the share of each link promised to a group's job: an equal part of its tenant's bandwidth."""
        tenant = self._lab.options.tenants.get(group.tenant)
        bandwidth = (tenant.bandwidth if tenant is not None else None) or 0.0
        return bandwidth / sum(other.tenant == group.tenant for other in groups)

    def _current(self, wanted: Sequence[tuple[ReducingGroup, float]], nics: tuple[int, ...]) -> list[int | None]:
        """Return a different current job for each group, None for groups without one."""
        free = [job_id for job_id in sorted(self._joined) if self._is_current(job_id, nics)]
        found: list[int | None] = []
        for group, share in wanted:
            joined = (job_id for job_id in free if self._joined[job_id].group == group)
            fitting = next((job_id for job_id in joined if self._joined[job_id].share == share), None)
            if fitting is not None:
                free.remove(fitting)
            found.append(fitting)
        return found

    def _join(self, endpoints: EndpointGroup, group: ReducingGroup, share: float, nics: tuple[int, ...]) -> int:
        job_id = self._free_id()
        ranks = self._ranks(group)
        hosts = self._hosts(endpoints, ranks)
        self._joined[job_id] = _Joined(group, share, tuple(hosts))
        try:
            memberships = self._added(job_id, self._joined[job_id], hosts, nics)
        except JobError:
            del self._joined[job_id]
            raise
        self._joined[job_id] = _Joined(group, share, tuple(hosts), nics, _epochs(memberships))
        lanes = self._lab.options.aggregation.lane_count
        endpoints.join(
            {
                rank: [
                    host_membership(of_host[name], lanes, group.traffic_class, job_id)
                    for of_host in memberships.values()
                ]
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
                    nic: host_membership(of_host[host], lanes, joined.group.traffic_class)
                    for nic, of_host in carrying.items()
                }
                for rank, host in zip(ranks, hosts, strict=True)
            }
        )
        at_home = all(each.plane == nic for nic, of_host in carrying.items() for each in of_host.values())
        self._joined[job_id] = replace(joined, epochs=_epochs(carrying), at_home=at_home)
        return _Moved(has_trees=True, repeated_messages=_repeated(stopped))

    def _carrying(
        self, job_id: int, joined: _Joined, hosts: Sequence[str]
    ) -> dict[int, dict[str, JobMembership]] | None:
        """Return the hosts' memberships for each stream, by its NIC; None if there are no trees.

        It does not wait until other jobs have been idle for a lease, as hosts have stopped: later jobs check that.
        """
        controller = self._lab.controller
        if list(joined.epochs) == [job_id] and self._is_there(job_id, joined):
            return _by_nic(controller.memberships(job_id))
        was_evicted = self._was_evicted(job_id, joined)
        for each in {job_id, *joined.epochs}:
            self._discard(each, joined)
        while nics := self._nics_with_trees([hosts]):
            carrying: dict[int, dict[str, JobMembership]] = {}
            try:
                self._add_carriers(carrying, job_id, joined, hosts, nics)
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
        nics: Sequence[int],
    ) -> None:
        """Add jobs for the hosts' streams over these NICs; add their memberships to `carrying`, by stream's NIC.

        A stream of another NIC goes over the NIC with the fewest streams.
        """
        over = {nic: nic for nic in joined.nics if nic in nics}
        at_home = list(over)
        streams = Counter(over.values())
        for moved in (nic for nic in joined.nics if nic not in nics):
            over[moved] = min(nics, key=lambda nic: (streams[nic], nic))
            streams[over[moved]] += 1
        # The streams of a plane may meet on links between switches.
        parted = replace(joined, share=joined.share / self._most_in_a_plane(over.values()))
        if at_home:
            self._add_at_home(carrying, job_id, parted, hosts, at_home, wait=False)
        for stream, nic in over.items():
            if stream not in at_home:
                [other] = self._by_place([nic]).items()
                (carrying[stream],) = self._add(self._free_id(), parted, hosts, *other, wait=False).values()

    def _added(
        self, job_id: int, joined: _Joined, hosts: Sequence[str], nics: Sequence[int]
    ) -> dict[int, dict[str, JobMembership]]:
        """Add jobs for streams over the NICs themselves; return the hosts' memberships by NIC.

        If one cannot be added, none is.
        """
        added: dict[int, dict[str, JobMembership]] = {}
        try:
            self._add_at_home(
                added, job_id, replace(joined, share=joined.share / self._most_in_a_plane(nics)), hosts, nics, wait=True
            )
        except JobError:
            for each in _epochs(added):
                self._lab.controller.discard_job(each)
            raise
        return added

    def _add_at_home(
        self,
        added: dict[int, dict[str, JobMembership]],
        job_id: int,
        joined: _Joined,
        hosts: Sequence[str],
        nics: Sequence[int],
        *,
        wait: bool,
    ) -> None:
        """Add a job for each place of NICs in their planes, the first with id `job_id`; add memberships to `added`."""
        for number, (place, planes) in enumerate(self._by_place(nics).items()):
            added |= self._add(
                self._free_id() if number else job_id, joined, hosts, place, planes, keep=_epochs(added), wait=wait
            )

    def _add(
        self,
        job_id: int,
        joined: _Joined,
        hosts: Sequence[str],
        place: int,
        planes: Sequence[int],
        *,
        wait: bool,
        keep: Collection[int] = (),
    ) -> dict[int, dict[str, JobMembership]]:
        memberships = self._lab.controller.add_job(
            job_id,
            hosts,
            self._slots_of(joined.group),
            planes,
            ip_version=self._lab.options.ip_version,
            tenant=joined.group.tenant,
            share=joined.share,
            keep=self._known_ids() | set(keep),
            wait=wait,
            place=place,
        )
        return _by_nic(memberships)

    def _by_place(self, nics: Iterable[int]) -> dict[int, list[int]]:
        """Return the planes of NICs by the NICs' place in them."""
        found: dict[int, list[int]] = {}
        for nic in nics:
            plane = self._lab.fabric.hosts[0].nic(nic).plane
            found.setdefault(self._lab.fabric.nics_of_planes[plane].index(nic), []).append(plane)
        return found

    def _most_in_a_plane(self, nics: Iterable[int]) -> int:
        """Return how many of these NICs are in the plane with most of them; one may occur several times."""
        return max(Counter(self._lab.fabric.hosts[0].nic(nic).plane for nic in nics).values())

    def _slots_of(self, group: ReducingGroup) -> int:
        """Return the slots of a group's job, few enough to leave room for the other jobs of its collective."""
        options = self._lab.options
        capacity = MAX_SLOTS * LANE_COUNT // options.aggregation.lane_count
        jobs = group.jobs * max(map(len, self._lab.fabric.nics_of_planes))
        return options.slots or min(self.slot_count, max(1, capacity // jobs))

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

    def _is_current(self, job_id: int, nics: tuple[int, ...]) -> bool:
        """Return whether a job has its trees and NICs and uses nothing cordoned (which does not move a tree)."""
        joined = self._joined[job_id]
        return (
            self._has_its_trees(job_id)
            and joined.at_home
            and joined.nics == nics
            and not any(self._lab.controller.job_uses_avoided(each) for each in joined.epochs)
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


def _by_nic(memberships: Mapping[str, Sequence[JobMembership]]) -> dict[int, dict[str, JobMembership]]:
    """Return the hosts' memberships by the number of their NIC."""
    found: dict[int, dict[str, JobMembership]] = {}
    for host, own in memberships.items():
        for each in own:
            found.setdefault(each.plane, {})[host] = each
    return found


def host_membership(
    membership: JobMembership, lane_count: int, traffic_class: int = DATA_CLASS, of_job: int | None = None
) -> Membership:
    """Return a host's membership in a job, with the lanes of its packets, their class and the job that runs name."""
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
        of_job=None if of_job == membership.job_id else of_job,
    )
