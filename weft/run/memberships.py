"""From the controller's aggregation jobs to what hosts must know of them."""

from __future__ import annotations

from weft.controller.jobs import JobMembership
from weft.traffic.commands import Membership


def host_membership(membership: JobMembership) -> Membership:
    """Return what a host must know of its part in a job."""
    return Membership(
        plane=membership.plane,
        job_id=membership.job_id,
        epoch=membership.epoch,
        q_key=membership.q_key,
        rank=membership.rank,
        worker_count=membership.worker_count,
        slot_count=membership.slot_count,
        aggregation_address=str(membership.aggregation_address),
        aggregation_mac=membership.aggregation_mac,
        group_address=str(membership.group_address),
    )
