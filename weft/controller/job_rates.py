"""What a job is promised of its trees' links as rates: hosts send at them, switches drop what exceeds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import finsy

from weft.controller.errors import JobError
from weft.controller.tenants import LEAST_PROMISE_BPS, objection_to_promise
from weft.controller.trees import AggregationTree
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.controller.job import Job

_HEADER_BYTES = {4: 86, 6: 106}
_LANE_BYTES = 4
_METER_STEP = LEAST_PROMISE_BPS // 8
_CATCH_UP_PACKETS = 16


def promised_bps(fabric: FabricSpec, job: Job, tree: AggregationTree) -> int:
    """Return the rate at which each worker may contribute to a tree, whole frames counted; 0: there is no promise.

    It is the job's share of the slowest link of the tree: every link has to carry what its workers send.
    """
    return max(1, int(job.share * _slowest_bps(fabric, tree))) if job.share else 0


def require_promise(fabric: FabricSpec, job: Job, tree: AggregationTree) -> None:
    """Raise JobError if a job is promised something of a tree's links, but too little."""
    if job.share and (why := objection_to_promise(job.share, _slowest_bps(fabric, tree))):
        raise JobError(f"job {job.job_id} of {job.tenant}: {why}")


def _slowest_bps(fabric: FabricSpec, tree: AggregationTree) -> int:
    return min(fabric.switch(port.node).port(port.port).link.rate_bps for port in tree.ports())


def packet_gap_s(fabric: FabricSpec, job: Job) -> float:
    """Return the longest time between two packets of a worker that has something to send; 0: there is no promise."""
    if not job.share:
        return 0.0
    slowest = min(promised_bps(fabric, job, planned.tree) for planned in job.trees)
    return 8 * _frame_bytes(job) / max(slowest, 1)


def _frame_bytes(job: Job) -> int:
    return _HEADER_BYTES[job.ip_version] + _LANE_BYTES * job.lane_count


def meter_of_worker(job: Job, rate_bps: int) -> finsy.P4MeterConfig:
    """Return the meter that holds a worker of a job to a rate. One that keeps to it never exceeds the meter.

    The burst is all that such a worker may have under way, a packet for each slot, should something have held it up and
    then let go all at once; and the few that a host sends ahead to make up for time in which others had its link.
    """
    burst = (job.slot_count + _CATCH_UP_PACKETS) * _frame_bytes(job)
    rate = -(-rate_bps // (8 * _METER_STEP)) * _METER_STEP
    return finsy.P4MeterConfig(cir=rate, cburst=burst, pir=rate, pburst=burst)
