"""Aggregation jobs: admission, epochs, slot quotas, and the hosts' memberships.

`JobTable` is the aggregation manager's state, without I/O: events (add, remove, failures) go in, jobs come out.
`weft.controller.features.aggregation` derives the switches' entries from it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.job import LANE_COUNT, Job, PlannedTree
from weft.controller.job_rates import require_promise
from weft.controller.memberships import JobMembership, membership
from weft.controller.placement import DEFAULT_PLACEMENT, PLACEMENTS
from weft.controller.queue_keys import QueueKeys, random_queue_key
from weft.controller.slots import SlotPool
from weft.controller.tenants import NO_TENANTS, NOBODY, Tenant, TenantSettings, exceeds
from weft.controller.tree_load import TreeLoad
from weft.controller.trees import plan_tree
from weft.controller.worker_ranges import worker_numbers
from weft.topologies import Endpoint, FabricSpec
from weft.topologies.addressing import IpVersion

MAX_JOB_ID = 0xFFFF
MAX_EPOCH = 0xFFFF


class JobTable:
    """All jobs of a fabric.

    Args:
        fabric: the fabric.
        slot_capacity: slots of every switch (half the size of the program's slot registers), or by switch name.
            Tenants' quotas must fit the switch with the fewest, not counting switches without slots.
        tenants: the tenants and their quotas.
        placement: how trees are placed, a name from `weft.controller.placement`; SettingError for others.
        queue_keys: draws the jobs' secrets.
        first_epoch: epoch of the first job; every job and every rebuild takes the next one. Epoch 0 is never
            used, because registers start with epoch 0.
        lane_count: lanes of data packets.

    """

    def __init__(
        self,
        fabric: FabricSpec,
        slot_capacity: int | Mapping[str, int],
        queue_keys: QueueKeys = random_queue_key,
        first_epoch: int = 1,
        tenants: TenantSettings = NO_TENANTS,
        placement: str = DEFAULT_PLACEMENT,
        lane_count: int = LANE_COUNT,
    ) -> None:
        by_switch = (
            dict.fromkeys((switch.name for switch in fabric.switches), slot_capacity)
            if isinstance(slot_capacity, int)
            else slot_capacity
        )
        tenants.check(min(filter(None, by_switch.values()), default=0))
        tenants.check_promises(fabric.fastest_bps)
        self._placement = PLACEMENTS.named(placement)
        self._fabric = fabric
        self._tenants = tenants
        self._pools = {
            switch.name: SlotPool(switch.name, by_switch[switch.name], tenants.slots) for switch in fabric.switches
        }
        self._queue_keys = queue_keys
        self._next_epoch = first_epoch
        self._lane_count = lane_count
        self._seen_epochs: set[int] = set()
        self._jobs: dict[int, Job] = {}
        self._why_lost: dict[int, str] = {}
        self._evicted: set[int] = set()

    def copy(self) -> JobTable:
        """Return a copy of the table for trying out changes."""
        other = copy(self)
        other._pools = {name: pool.copy() for name, pool in self._pools.items()}
        other._seen_epochs = set(self._seen_epochs)
        other._jobs = dict(self._jobs)
        other._why_lost = dict(self._why_lost)
        other._evicted = set(self._evicted)
        return other

    def rewire(self, fabric: FabricSpec) -> None:
        """Plan new trees over the links of `fabric`; trees of present jobs stay."""
        self._fabric = fabric

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, in order of their ids."""
        return tuple(self._jobs[job_id] for job_id in sorted(self._jobs))

    def job(self, job_id: int) -> Job:
        """Return a job; JobError lists the known ids."""
        if job_id not in self._jobs:
            known = ", ".join(map(str, sorted(self._jobs))) or "there is none"
            raise JobError(f"unknown job {job_id}", valid=known)
        return self._jobs[job_id]

    def pool(self, switch: str) -> SlotPool:
        """Return the slot pool of a switch."""
        return self._pools[switch]

    def add(
        self,
        job_id: int,
        hosts: Sequence[str],
        slot_count: int,
        planes: Iterable[int] | None = None,
        failures: Failures = NO_FAILURES,
        ip_version: IpVersion = 4,
        tenant: str = "",
        share: float | None = None,
        place: int = 0,
    ) -> Job:
        """Admit a job with one tree per plane, all or none.

        `share` is the share of each link's rate promised to the job, by default its tenant's whole bandwidth. `place`
        says which of the hosts' NICs in each plane take part.

        Raises:
            JobError: id taken or out of range, no or repeated hosts, unknown plane, NIC or IP version, no slots, no
                root; unknown tenant, hosts of others, or a larger share of a link than the tenant has left.
            TopologyError: unknown host.

        """
        wanted = self._fabric.training_planes if planes is None else tuple(planes)
        self._check(job_id, hosts, slot_count, wanted)
        nics = min(len(self._fabric.nics_of_planes[plane]) for plane in wanted)
        if not 0 <= place < nics:
            raise JobError(f"job {job_id} wants the NICs at place {place} of a plane", valid=f"0 to {nics - 1}")
        if ip_version not in (4, 6):
            raise JobError(f"job {job_id} wants ip_version={ip_version!r}", valid="4, 6")
        owner = self._tenants.named(tenant)
        owner.check_hosts(job_id, hosts)
        promised = (owner.bandwidth or 0.0) if share is None else share
        most = owner.bandwidth or 0.0
        if promised < 0 or exceeds(promised, most):
            raise JobError(f"job {job_id} wants {promised:g} of each link", valid=f"0 to {most:g}")
        job = Job(
            job_id,
            tuple(hosts),
            wanted,
            slot_count,
            0,
            0,
            (),
            ip_version,
            tenant,
            promised,
            self._lane_count,
            place,
        )
        job = self._planned(job, owner, failures)
        # Only admitted jobs use up epochs, however often others are rejected.
        epoch = self._take_epoch()
        job = replace(job, epoch=epoch, q_key=self._queue_keys(job_id, epoch))
        self._jobs[job_id] = job
        self._why_lost.pop(job_id, None)
        self._evicted.discard(job_id)
        return job

    def put_back(self, job: Job) -> None:
        """Restore a removed job unchanged. Raises JobError if others have its id or slots by now."""
        self._require_free(job.job_id)
        self._reserve_held(job)
        self._jobs[job.job_id] = job

    def has_promise(self, job: Job) -> bool:
        """Return whether a job's promised share fits its tenant's bandwidth on all links, given the present jobs."""
        owner = self._tenants.named(job.tenant)
        load = self._load(owner, job)
        return not any(load.lacks(port) for planned in job.trees for port in planned.tree.ports())

    def adopt(self, found: Iterable[Job], epochs: Iterable[int] = ()) -> dict[int, str]:
        """Take over jobs found on switches; new jobs avoid epochs that slots have seen.

        Returns:
            For jobs that could not be taken over, the reason by id.

        """
        refused: dict[int, str] = {}
        self._seen_epochs |= set(epochs)
        for job in found:
            try:
                self._reserve_held(job)
            except JobError as error:
                refused[job.job_id] = str(error)
                continue
            self._jobs[job.job_id] = replace(job, lane_count=self._lane_count)
        return refused

    def _reserve_held(self, job: Job) -> None:
        """Reserve a job's slots on its switches. If one cannot be reserved, release all and raise JobError."""
        self._tenants.named(job.tenant).check_hosts(job.job_id, job.hosts)
        reserved: list[str] = []
        try:
            for planned in job.trees:
                for switch, base in planned.slot_base.items():
                    slots = range(base, base + job.slot_count)
                    self._pools[switch].adopt(job.job_id, slots, job.tenant)
                    reserved.append(switch)
        except JobError:
            for switch in reserved:
                self._pools[switch].release(job.job_id)
            raise

    def epoch(self, job_id: int) -> int | None:
        """Return a job's present epoch; None if the job does not exist, or no longer."""
        job = self._jobs.get(job_id)
        return job.epoch if job is not None else None

    def note_evicted(self, job_id: int) -> None:
        """Note, until it is added again or discarded, that a job was removed because others needed its slots."""
        self._evicted.add(job_id)

    def was_evicted(self, job_id: int) -> bool:
        """Return whether a job was removed because others needed its slots."""
        return job_id in self._evicted

    def why_lost(self, job_id: int) -> str | None:
        """Return why a failure left a job without a tree; None if it has one or never existed."""
        return self._why_lost.get(job_id)

    @property
    def has_lost(self) -> bool:
        """Whether jobs that lost their trees to failures have not been added again."""
        return bool(self._why_lost)

    def remove(self, job_id: int) -> Job:
        """Remove a job, free its slots and return it."""
        job = self.job(job_id)
        del self._jobs[job_id]
        self._release(job)
        return job

    def discard(self, job_id: int) -> None:
        """Remove the job with this id, if there is one."""
        self._evicted.discard(job_id)
        if job_id in self._jobs:
            self.remove(job_id)

    def is_hit_by(self, job_id: int, failures: Failures) -> bool:
        """Return whether a job's trees use anything in `failures`; False for an unknown job."""
        job = self._jobs.get(job_id)
        return job is not None and any(planned.tree.is_hit_by(failures) for planned in job.trees)

    def rebuild(self, failures: Failures, avoided: Failures = NO_FAILURES) -> tuple[list[Job], dict[int, str]]:
        """Plan jobs hit by failures again, in a new epoch; new trees bypass everything in `avoided`.

        Returns:
            The rebuilt jobs, which need new memberships at their hosts; and, for jobs that could not be rebuilt and
            were removed, the reason by id.

        """
        rebuilt: list[Job] = []
        lost: dict[int, str] = {}
        for job in self.jobs:
            if not self.is_hit_by(job.job_id, failures):
                continue
            # Removed before it is planned again, so that its own slots and promise do not count against it.
            self.remove(job.job_id)
            try:
                rebuilt.append(
                    self.add(
                        job.job_id,
                        job.hosts,
                        job.slot_count,
                        job.planes,
                        failures | avoided,
                        job.ip_version,
                        job.tenant,
                        job.share,
                        job.place,
                    )
                )
            except JobError as error:
                lost[job.job_id] = str(error)
        self._why_lost |= lost
        return rebuilt, lost

    def memberships(self, job_id: int) -> dict[str, tuple[JobMembership, ...]]:
        """Return a job's memberships by host name, one per plane."""
        job = self.job(job_id)
        numbers = [worker_numbers(planned.tree, job.hosts) for planned in job.trees]
        return {
            host: tuple(
                membership(self._fabric, job, planned.tree, host, each)
                for planned, each in zip(job.trees, numbers, strict=True)
            )
            for host in job.hosts
        }

    def _check(self, job_id: int, hosts: Sequence[str], slot_count: int, planes: tuple[int, ...]) -> None:
        if not 1 <= job_id <= MAX_JOB_ID:
            raise JobError(f"job id {job_id} is out of range", valid=f"1 to {MAX_JOB_ID}")
        self._require_free(job_id)
        if not hosts:
            raise JobError(f"job {job_id} has no hosts", valid="at least 1")
        repeated = [name for name, count in Counter(hosts).items() if count > 1]
        if repeated:
            raise JobError(f"job {job_id} names host {repeated[0]} more than once: one worker per job and port")
        for name in hosts:
            self._fabric.host(name)
        if slot_count < 1:
            raise JobError(f"job {job_id} wants slot_count={slot_count}", valid="1 or more")
        unknown = set(planes) - set(self._fabric.training_planes)
        if unknown or not planes or len(set(planes)) != len(planes):
            raise JobError(
                f"job {job_id} wants planes {list(planes)}",
                valid=f"different ones of 0 to {len(self._fabric.training_planes) - 1}",
            )

    def _require_free(self, job_id: int) -> None:
        if job_id in self._jobs:
            # The message does not list other jobs, because tenants should not see each other's.
            raise JobError(f"job {job_id} exists already", valid="an id that no job has")

    def _planned(self, job: Job, owner: Tenant, failures: Failures) -> Job:
        """Return the job with its trees and slots. Raises JobError after releasing everything."""
        load = self._load(owner, job)
        trees = [plan_tree(self._fabric, plane, job.hosts, failures, load, job.place) for plane in job.planes]
        for tree in trees:
            require_promise(self._fabric, job, tree)
            for port in tree.ports():
                if load.lacks(port):
                    raise JobError(
                        f"job {job.job_id} of {owner.name} wants {job.share:g} of the link at {port.node}:{port.port}, "
                        f"other jobs of the tenant have {load.own.get(port, 0.0):g}",
                        valid=f"{owner.bandwidth:g} together",
                    )
        # All trees or none, because a job's data are striped over all its planes.
        reserved: list[str] = []
        planned: list[PlannedTree] = []
        try:
            for tree in trees:
                bases = {}
                for node in tree.nodes:
                    pool = self._pools[node.switch]
                    bases[node.switch] = pool.allocate(job.job_id, job.slot_count, owner.name)
                    reserved.append(node.switch)
                planned.append(PlannedTree(tree, bases))
        except JobError:
            for switch in reserved:
                self._pools[switch].release(job.job_id)
            raise
        return replace(job, trees=tuple(planned))

    def _load(self, owner: Tenant, job: Job) -> TreeLoad:
        """Return the load of present jobs and the needs of a tenant's new job."""
        roots = Counter(planned.tree.root.switch for other in self._jobs.values() for planned in other.trees)
        promised, own = defaultdict[Endpoint, float](float), defaultdict[Endpoint, float](float)
        for other in self._jobs.values():
            for planned in other.trees:
                for port in planned.tree.ports():
                    promised[port] += other.weight
                    own[port] += other.share if owner is not NOBODY and other.tenant == owner.name else 0.0
        # A full switch is not excluded, only the last choice: the error then names the switch and its free range.
        full = {name for name, pool in self._pools.items() if not pool.has_room(job.slot_count, owner.name)}
        load = TreeLoad(roots, promised, own, owner.bandwidth, job.share, full)
        return self._placement.view(load, job.job_id)

    def _release(self, job: Job) -> None:
        for planned in job.trees:
            for switch in planned.slot_base:
                self._pools[switch].release(job.job_id)

    def _take_epoch(self) -> int:
        """Return the next epoch that no slot has seen, or just the next one if slots have seen all."""
        for _ in range(MAX_EPOCH):
            epoch = self._next_epoch
            self._next_epoch = epoch % MAX_EPOCH + 1
            if epoch not in self._seen_epochs:
                break
        return epoch
