"""Reductions that share links: with each other, and with RoCE in a class of its own (Jain's index of fairness)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from weft import Fabric, Flow
from weft.run.jobs import PlacedJob
from weft.scenario import AggregationSection, EcnSection, SchedulingSection
from weft.topologies import leaf_spine
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart

RATE_BPS = 100 * 10**9
# Hosts 0 to 3 below one leaf, 4 to 7 below the other; one link joins each leaf to the spine, at a host's rate.
TOPOLOGY = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=RATE_BPS, delay_ps=10**6)
ECN = EcnSection(kmin=20_000, kmax=80_000, pmax=0.2)
# A contribution over IPv4 with 64 lanes, and what Ethernet adds on the link: preamble, check sequence, gap.
LANES_BYTES, ON_LINK_BYTES = 256, 342 + 24
NARROW = AggregationSection(lanes=64)


def jain(shares: Sequence[float]) -> float:
    """Jain, Chiu and Hawe, DEC-TR-301 (1984)."""
    return sum(shares) ** 2 / (len(shares) * sum(each**2 for each in shares))


def reduction(size_bytes: int, traffic_class: int | None = None) -> Job:
    """Return an all-reduce of two ranks."""
    builder = OperationsBuilder()
    builder.collective(0, 0)
    part = RankPart(builder.build(), (), (0,))
    call = CollectiveCall("allreduce", size_bytes, "in-network", DataType.INT32)
    classes = {} if traffic_class is None else {"allreduce": traffic_class}
    return Job("pair", (part, part), (Group("pair", (0, 1)),), (call,), classes)


def least_ps(jobs: int, size_bytes: int) -> int:
    """Return how long contributions of some jobs take on a link at least."""
    return jobs * size_bytes // LANES_BYTES * ON_LINK_BYTES * 8 * 10**12 // RATE_BPS


def windows(fabric: Fabric) -> list[tuple[float, int]]:
    """Return each worker's window, and the marks it has seen."""
    found = [host["planes"][0]["aggregation"] for host in fabric.hosts.stats()]
    return [(each["window_messages"], each["ce_marked_packets"]) for each in found if each is not None]


def test_a_reduction_alone_keeps_all_its_slots_in_flight() -> None:
    with Fabric(TOPOLOGY, clock="virtual", aggregation=NARROW, ecn=ECN) as fabric:
        fabric.run_job(reduction(400_000), (0, 4), data="random")
        assert windows(fabric) == [(fabric.slot_count, 0)] * 2


@pytest.mark.parametrize("jobs", [2, 4])
def test_jobs_share_a_link_fairly(jobs: int) -> None:
    """Their queue is at the uplinks, where only contributions pass: switches hand the marks on to results."""
    size_bytes = 1_600_000
    with Fabric(TOPOLOGY, clock="virtual", aggregation=NARROW, ecn=ECN) as fabric:
        placed = [PlacedJob(reduction(size_bytes), (number, 4 + number), data="random") for number in range(jobs)]
        runs = fabric.run_jobs(placed)
        for run in runs:
            assert run.verdict is not None
            assert (run.verdict.wrong, run.verdict.identical) == (0, True)
        assert jain([1 / run.duration_ps for run in runs]) >= 0.9
        # The link is busy with what is new: what is sent again takes a tenth at most.
        assert max(run.duration_ps for run in runs) < 1.5 * least_ps(jobs, size_bytes)
        for window, marks in windows(fabric):
            assert marks > 0
            assert window < fabric.slot_count / 2


def test_jobs_share_a_link_where_nothing_is_marked() -> None:
    """Queues are as long as all windows together then, and timeouts grow beyond them."""
    size_bytes, jobs = 3_200_000, 4
    topology = leaf_spine(
        planes=1,
        leaves=2,
        spines=1,
        hosts_per_leaf=4,
        host_rate_bps=RATE_BPS,
        delay_ps=10**6,
        queue_capacity_bytes=4 << 20,
    )
    unmarked = EcnSection(kmin=4 << 20, kmax=8 << 20, pmax=0.2)
    with Fabric(topology, clock="virtual", aggregation=NARROW, ecn=unmarked, slots=512) as fabric:
        runs = fabric.run_jobs([PlacedJob(reduction(size_bytes), (each, 4 + each)) for each in range(jobs)])
        assert not any(marks for _, marks in windows(fabric))
    # Nearly all of the link is busy with what is new; with the least timeout all the time it would be two fifths.
    assert max(run.duration_ps for run in runs) < 1.2 * least_ps(jobs, size_bytes)
    assert jain([1 / run.duration_ps for run in runs]) >= 0.9


def test_reductions_and_roce_have_the_shares_of_their_classes() -> None:
    scheduling = SchedulingSection(classes=[4], quantum={3: 2048, 4: 2048})
    size_bytes = 800_000
    with Fabric(TOPOLOGY, clock="virtual", aggregation=NARROW, ecn=ECN, scheduling=scheduling) as fabric:
        flow = fabric.tasks.flows("roce", [Flow(1, 5, 4_000_000)])
        run, flows = fabric.run_together([fabric.tasks.job(reduction(size_bytes, 4), (0, 4)), flow])
        assert flows.time_ps > run.duration_ps
        sent_bytes = size_bytes // LANES_BYTES * ON_LINK_BYTES
        share = sent_bytes * 8 * 10**12 / RATE_BPS / run.duration_ps
        assert jain([share, 1 - share]) >= 0.99
        assert not fabric.summary().drops
