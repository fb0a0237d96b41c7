"""Memberships: the data that hosts need to take part in an aggregation job."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from weft.controller.job_rates import promised_bps
from weft.controller.trees import AggregationTree
from weft.topologies import FabricSpec
from weft.topologies.addressing import result_group_address, result_group_mac

if TYPE_CHECKING:
    from weft.controller.job import Job


@dataclass(frozen=True)
class JobMembership:
    """Data that one host's NIC in one plane needs to take part in a job.

    Attributes:
        host: name of the host.
        plane: number of the host's NIC, in the tree's plane.
        job_id: field of the aggregation header.
        q_key: Queue Key of all the job's packets, its secret.
        epoch: field of the aggregation header.
        rank: field of the aggregation header: rank among the children of the host's leaf.
        worker_index: rank in the whole job, from 0.
        worker_count: workers of the whole job.
        worker_numbers: the tree's numbers of all workers, by rank (`weft.controller.worker_ranges`); empty if they
            equal the ranks.
        slot_count: slots of the job; the header's `slot` is 0 to slot_count - 1.
        aggregation_address: destination of contributions, the leaf's address.
        aggregation_mac: the leaf's MAC.
        group_address: multicast address of results.
        group_mac: multicast MAC of results.
        rate_bps: rate promised to the job, its share of the tree's slowest link; 0 is no promise.

    """

    host: str
    plane: int
    job_id: int
    q_key: int
    epoch: int
    rank: int
    worker_index: int
    worker_count: int
    worker_numbers: tuple[int, ...]
    slot_count: int
    aggregation_address: IPv4Address | IPv6Address
    aggregation_mac: str
    group_address: IPv4Address | IPv6Address
    group_mac: str
    rate_bps: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, addresses as text."""
        return {
            name: str(value) if isinstance(value, IPv4Address | IPv6Address) else value
            for name, value in vars(self).items()
        }


def membership(
    fabric: FabricSpec, job: Job, tree: AggregationTree, host: str, worker_numbers: tuple[int, ...]
) -> JobMembership:
    """Return a host's membership in the plane of one of its job's trees, given that tree's worker numbers."""
    nic = fabric.nics_of_planes[tree.plane][job.place]
    leaf = fabric.switch_of(host, nic)
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
        worker_numbers=worker_numbers,
        slot_count=job.slot_count,
        aggregation_address=leaf.address_of(job.ip_version),
        aggregation_mac=leaf.mac,
        group_address=result_group_address(job.job_id, job.ip_version),
        group_mac=result_group_mac(job.job_id, job.ip_version),
        rate_bps=promised_bps(fabric, job, tree),
    )
