"""Aggregation jobs: admission, epochs, slot quotas, and what each host must know to take part.

`JobTable` is the aggregation manager's state, without I/O: events in (add, remove, failures), jobs out. What
switches must hold follows from it (`weft.controller.features.aggregation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from weft.controller.errors import JobError
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.queue_keys import QueueKeys, random_queue_key
from weft.controller.slots import SlotPool
from weft.controller.trees import AggregationTree, plan_tree
from weft.topologies import FabricSpec
from weft.topologies.addressing import IpVersion, result_group_address, result_group_mac

MAX_JOB_ID = 0xFFFF
MAX_EPOCH = 0xFFFF


@dataclass(frozen=True)
class JobMembership:
    """What one host's NIC in one plane must know to take part in a job.

    Attributes:
        host: name of the host.
        plane: number of the host's NIC, the first that it has in the tree's plane.
        job_id: of the aggregation header.
        q_key: Queue Key of all the job's packets, its secret.
        epoch: of the aggregation header.
        rank: of the aggregation header: rank among the children of the host's leaf.
        worker_index: rank in the whole job, from 0.
        worker_count: workers of the whole job.
        slot_count: slots of the job; `slot` counts from 0 below it.
        aggregation_address: where contributions go, the leaf's address.
        aggregation_mac: MAC of that leaf.
        group_address: where results come to.
        group_mac: MAC that results come to.

    """

    host: str
    plane: int
    job_id: int
    q_key: int
    epoch: int
    rank: int
    worker_index: int
    worker_count: int
    slot_count: int
    aggregation_address: IPv4Address | IPv6Address
    aggregation_mac: str
    group_address: IPv4Address | IPv6Address
    group_mac: str

    def to_dict(self) -> dict[str, int | str]:
        """Return plain JSON values, addresses as text."""
        return {
            name: str(value) if isinstance(value, IPv4Address | IPv6Address) else value
            for name, value in vars(self).items()
        }


@dataclass(frozen=True)
class PlannedTree:
    """A tree and the first slot of the job on each of its switches."""

    tree: AggregationTree
    slot_base: dict[str, int]


@dataclass(frozen=True)
class Job:
    """An admitted job: `hosts` in order of their ranks, one planned tree per plane, packets of one IP version."""

    job_id: int
    hosts: tuple[str, ...]
    planes: tuple[int, ...]
    slot_count: int
    epoch: int
    q_key: int
    trees: tuple[PlannedTree, ...]
    ip_version: IpVersion = 4


class JobTable:
    """All jobs of a fabric.

    Args:
        fabric: where.
        slot_capacity: slots of each switch (half the size of the program's slot registers).
        queue_keys: draws the jobs' secrets.
        first_epoch: epoch of the first job; every job and every rebuild takes the next one. Epoch 0 is never
            used, because registers start as epoch 0.

    """

    def __init__(
        self,
        fabric: FabricSpec,
        slot_capacity: int,
        queue_keys: QueueKeys = random_queue_key,
        first_epoch: int = 1,
    ) -> None:
        self._fabric = fabric
        self._pools = {switch.name: SlotPool(switch.name, slot_capacity) for switch in fabric.switches}
        self._queue_keys = queue_keys
        self._next_epoch = first_epoch
        self._jobs: dict[int, Job] = {}
        self._why_lost: dict[int, str] = {}

    def rewire(self, fabric: FabricSpec) -> None:
        """Plan trees over other links from now on; those of present jobs stay."""
        self._fabric = fabric

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, in order of their ids."""
        return tuple(self._jobs[job_id] for job_id in sorted(self._jobs))

    def job(self, job_id: int) -> Job:
        """Return a job; JobError names the ids there are."""
        if job_id not in self._jobs:
            known = ", ".join(map(str, sorted(self._jobs))) or "there is none"
            raise JobError(f"unknown job {job_id} (valid: {known})")
        return self._jobs[job_id]

    def pool(self, switch: str) -> SlotPool:
        """Return the slot quotas of a switch."""
        return self._pools[switch]

    def add(
        self,
        job_id: int,
        hosts: Sequence[str],
        slot_count: int,
        planes: Iterable[int] | None = None,
        failures: Failures = NO_FAILURES,
        ip_version: IpVersion = 4,
    ) -> Job:
        """Admit a job with one tree per plane; all or nothing.

        Raises:
            JobError: id taken or out of range, no or repeated hosts, unknown plane or IP version, no slots, no root.
            TopologyError: unknown host.

        """
        wanted = tuple(range(self._fabric.planes)) if planes is None else tuple(planes)
        self._check(job_id, hosts, slot_count, wanted)
        if ip_version not in (4, 6):
            raise JobError(f"job {job_id} wants ip_version={ip_version!r} (valid: 4, 6)")
        epoch = self._take_epoch()
        job = self._plan(job_id, tuple(hosts), wanted, slot_count, epoch, failures, ip_version)
        self._jobs[job_id] = job
        self._why_lost.pop(job_id, None)
        return job

    def epoch(self, job_id: int) -> int | None:
        """Return a job's present epoch, None if there is no such job (any more)."""
        job = self._jobs.get(job_id)
        return job.epoch if job is not None else None

    def why_lost(self, job_id: int) -> str | None:
        """Return why a failure has left a job without a tree; None if it has one, or never existed."""
        return self._why_lost.get(job_id)

    def remove(self, job_id: int) -> Job:
        """Remove a job, free its slots and return it."""
        job = self.job(job_id)
        del self._jobs[job_id]
        self._release(job)
        return job

    def discard(self, job_id: int) -> None:
        """Remove the job with this id, if there is one."""
        if job_id in self._jobs:
            self.remove(job_id)

    def is_hit_by(self, job_id: int, failures: Failures) -> bool:
        """Return whether a job's trees use what is in `failures`; not if there is no such job."""
        job = self._jobs.get(job_id)
        return job is not None and any(planned.tree.is_hit_by(failures) for planned in job.trees)

    def rebuild(
        self, failures: Failures, avoided: Failures = NO_FAILURES
    ) -> tuple[list[Job], dict[int, str]]:
        """Plan the jobs that failures hit again, in a new epoch; new trees use nothing that is to be `avoided`.

        Returns:
            The rebuilt jobs, whose hosts need their new memberships; and by id, why a job could not be
            rebuilt: it is removed.

        """
        rebuilt: list[Job] = []
        lost: dict[int, str] = {}
        for job in self.jobs:
            if not self.is_hit_by(job.job_id, failures):
                continue
            self.remove(job.job_id)
            try:
                rebuilt.append(
                    self.add(
                        job.job_id, job.hosts, job.slot_count, job.planes, failures | avoided, job.ip_version
                    )
                )
            except JobError as error:
                lost[job.job_id] = str(error)
        self._why_lost |= lost
        return rebuilt, lost

    def memberships(self, job_id: int) -> dict[str, tuple[JobMembership, ...]]:
        """What each host of a job must know, one membership per plane, by host name."""
        job = self.job(job_id)
        return {
            host: tuple(self._membership(job, planned.tree, host) for planned in job.trees)
            for host in job.hosts
        }

    def _check(self, job_id: int, hosts: Sequence[str], slot_count: int, planes: tuple[int, ...]) -> None:
        if not 1 <= job_id <= MAX_JOB_ID:
            raise JobError(f"job id {job_id} is out of range (valid: 1 to {MAX_JOB_ID})")
        if job_id in self._jobs:
            raise JobError(f"job {job_id} exists already (taken: {', '.join(map(str, sorted(self._jobs)))})")
        if not hosts:
            raise JobError(f"job {job_id} has no hosts (valid: at least 1)")
        repeated = [name for name, count in Counter(hosts).items() if count > 1]
        if repeated:
            raise JobError(
                f"job {job_id} names host {repeated[0]} more than once: one worker per job and port"
            )
        for name in hosts:
            self._fabric.host(name)
        if slot_count < 1:
            raise JobError(f"job {job_id} wants slot_count={slot_count} (valid: 1 or more)")
        unknown = [plane for plane in planes if not 0 <= plane < self._fabric.planes]
        if unknown or not planes or len(set(planes)) != len(planes):
            raise JobError(
                f"job {job_id} wants planes {list(planes)} "
                f"(valid: different ones of 0 to {self._fabric.planes - 1})"
            )

    def _plan(
        self,
        job_id: int,
        hosts: tuple[str, ...],
        planes: tuple[int, ...],
        slot_count: int,
        epoch: int,
        failures: Failures,
        ip_version: IpVersion,
    ) -> Job:
        roots = Counter(planned.tree.root.switch for job in self._jobs.values() for planned in job.trees)
        trees = [plan_tree(self._fabric, plane, hosts, failures, roots) for plane in planes]
        reserved: list[str] = []
        planned: list[PlannedTree] = []
        try:
            for tree in trees:
                bases = {}
                for node in tree.nodes:
                    bases[node.switch] = self._pools[node.switch].allocate(job_id, slot_count)
                    reserved.append(node.switch)
                planned.append(PlannedTree(tree, bases))
        except JobError:
            for switch in reserved:
                self._pools[switch].release(job_id)
            raise
        q_key = self._queue_keys(job_id, epoch)
        return Job(job_id, hosts, planes, slot_count, epoch, q_key, tuple(planned), ip_version)

    def _release(self, job: Job) -> None:
        for planned in job.trees:
            for switch in planned.slot_base:
                self._pools[switch].release(job.job_id)

    def _take_epoch(self) -> int:
        epoch = self._next_epoch
        self._next_epoch = epoch % MAX_EPOCH + 1
        return epoch

    def _membership(self, job: Job, tree: AggregationTree, host: str) -> JobMembership:
        nic = self._fabric.first_nics[tree.plane]
        leaf = self._fabric.switch_of(host, nic)
        node = tree.node(leaf.name)
        assert node is not None  # every worker's leaf is in its tree
        rank = next(child.rank for child in node.children if child.name == host)
        return JobMembership(
            host=host,
            plane=nic,
            job_id=job.job_id,
            q_key=job.q_key,
            epoch=job.epoch,
            rank=rank,
            worker_index=job.hosts.index(host),
            worker_count=len(job.hosts),
            slot_count=job.slot_count,
            aggregation_address=leaf.address_of(job.ip_version),
            aggregation_mac=leaf.mac,
            group_address=result_group_address(job.job_id, job.ip_version),
            group_mac=result_group_mac(job.job_id, job.ip_version),
        )
