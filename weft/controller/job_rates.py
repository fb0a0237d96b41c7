"""Rates that a job is promised on its trees' links: hosts send at them, and switches drop the excess."""

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
    """Return the rate (b/s of whole frames) at which each worker may contribute to a tree; 0 without a promise.

    It is the job's share of the tree's slowest link, because every link must carry the workers' rate.
    """
    return max(1, int(job.share * _slowest_bps(fabric, tree))) if job.share else 0


def require_promise(fabric: FabricSpec, job: Job, tree: AggregationTree) -> None:
    """Raise JobError if a job's promised share of a tree's links is too small to enforce."""
    if job.share and (why := objection_to_promise(job.share, _slowest_bps(fabric, tree))):
        raise JobError(f"job {job.job_id} of {job.tenant}: {why}")


def _slowest_bps(fabric: FabricSpec, tree: AggregationTree) -> int:
    return min(fabric.switch(port.node).port(port.port).link.rate_bps for port in tree.ports())


def packet_gap_s(fabric: FabricSpec, job: Job) -> float:
    """Return the longest time (s) between two packets of a worker with data to send; 0 without a promise."""
    if not job.share:
        return 0.0
    slowest = min(promised_bps(fabric, job, planned.tree) for planned in job.trees)
    return 8 * _frame_bytes(job) / max(slowest, 1)


def _frame_bytes(job: Job) -> int:
    return _HEADER_BYTES[job.ip_version] + _LANE_BYTES * job.lane_count


def meter_of_worker(job: Job, rate_bps: int) -> finsy.P4MeterConfig:
    """Return the meter that limits a job's worker to a rate; a worker that obeys the rate never exceeds the meter.

    The burst allows for all packets that such a worker may have in flight, one for each slot, in case they were held
    up and arrive together, and for the few that a host sends early to catch up after others used its link.
    """
    burst = (job.slot_count + _CATCH_UP_PACKETS) * _frame_bytes(job)
    rate = -(-rate_bps // (8 * _METER_STEP)) * _METER_STEP
    return finsy.P4MeterConfig(cir=rate, cburst=burst, pir=rate, pburst=burst)
