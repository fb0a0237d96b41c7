"""Collectives of jobs on real data: exact in groups of any size, all in flight at once, on both clocks."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.run.job_data import JobData
from weft.run.jobs import placed_ranks, rank_places
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart
from weft.traffic.jobs.placing import RankPlaces, placed_call

GROUPS = ((0, 11), (5, 2, 9), (8, 1, 3, 10, 4, 6, 0), (2, 3, 4, 5, 6, 7, 8, 9), tuple(range(12)))
SIZE_BYTES = 3000


def calls_for(group_sizes):
    """Return calls of each collective by each algorithm that suits a group of some size, and those of each size."""
    calls, of_size = [], {}
    for size in group_sizes:
        places = RankPlaces(tuple(range(size)), (10**9,))
        of_size[size] = []
        for name, kind in COLLECTIVE_KINDS.items():
            # By switches a rank has one operation at a time (tests/weft/test_reducing_groups.py).
            for algorithm in (each.name for each in kind.algorithms if not each.in_network):
                root = size - 1 if kind.has_root else 0
                call = CollectiveCall(name, SIZE_BYTES, algorithm, DataType.INT32, root=root)
                try:
                    placed_call(call, range(size), places)
                except ValueError:
                    continue
                if call not in calls:
                    calls.append(call)
                of_size[size].append(calls.index(call))
    return calls, of_size


def job_of_all_collectives(groups=GROUPS):
    """Return a job in which each group calls each collective by each algorithm twice, all of them at once.

    Beside them each rank computes, and sends to the one before it.
    """
    calls, of_size = calls_for({len(ranks) for ranks in groups})
    parts = []
    ranks = range(1 + max(map(max, groups)))
    for rank in ranks:
        builder, own = OperationsBuilder(), [number for number, ranks in enumerate(groups) if rank in ranks]
        for slot, group in enumerate(own):
            for call in of_size[len(groups[group])]:
                builder.collective(slot, call)
                builder.collective(slot, call)
        computed = builder.compute(10**9)
        builder.send(0, 100_000, after=[computed])
        builder.receive(1, 100_000)
        peers = (ranks[rank - 1], (rank + 1) % len(ranks))
        parts.append(RankPart(builder.build(), peers, tuple(own)))
    return Job("all collectives", tuple(parts), tuple(Group(str(ranks), ranks) for ranks in groups), tuple(calls))


def test_all_collectives_are_exact_in_groups_of_any_size_at_once():
    job = job_of_all_collectives()
    assert {call.collective for call in job.calls} == set(COLLECTIVE_KINDS)
    algorithms = {call.algorithm for call in job.calls}
    assert algorithms == {
        *("ring", "tree", "halving-doubling", "recursive-doubling", "pat"),
        *("direct", "pairwise", "binomial", "dissemination"),
    }
    with Fabric(topologies.leaf_spine(planes=2, leaves=3, spines=2, hosts_per_leaf=4), clock="virtual") as fabric:
        run = fabric.run_job(job, data="random")
        fabric.packet_conservation()
    assert run.verdict is not None
    assert run.verdict.ok
    for part, times in zip(job.parts, run.times, strict=True):
        assert not times.started_ps[part.operations.of_kind(Kind.COLLECTIVE)].any()


def test_data_take_the_time_of_lengths():
    job = job_of_all_collectives(((0, 1, 2), (3, 1)))
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        random, lengths = (fabric.run_job(job, data=data) for data in ("random", "lengths"))
    assert random.duration_ps == lengths.duration_ps
    assert lengths.verdict is None


def test_groups_of_hosts_of_several_ranks_are_exact():
    """Regular groups reduce by the hierarchical algorithms, too; irregular ones by those that go without."""
    flat = topologies.leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=2)
    rails = topologies.with_scale_up(flat, 4, 3_200_000_000_000, 500_000, rail_optimised=True)
    groups = ((0, 1, 4, 5), (0, 1, 2, 4), (0, 1, 2, 3), tuple(range(8)))
    calls = [
        CollectiveCall("allreduce", SIZE_BYTES, "hierarchical", DataType.FLOAT32),
        CollectiveCall("allreduce", SIZE_BYTES, "ring", DataType.INT32),
        CollectiveCall("alltoall", SIZE_BYTES, "hierarchical"),
        CollectiveCall("allgather", SIZE_BYTES),
    ]
    parts = []
    for rank in range(8):
        builder, own = OperationsBuilder(), [number for number, ranks in enumerate(groups) if rank in ranks]
        for slot, group in enumerate(own):
            for call in (1, 3) if group == 1 else range(4):
                builder.collective(slot, call)
        parts.append(RankPart(builder.build(), (), tuple(own)))
    job = Job("rails", tuple(parts), tuple(Group(str(ranks), ranks) for ranks in groups), tuple(calls))
    with Fabric(rails, clock="virtual") as fabric:
        assert fabric.run_job(job, data="random").verdict.ok


def test_a_wrong_element_of_any_collective_is_found():
    job = job_of_all_collectives(((0, 1, 2), (3, 1)))
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    placed = placed_ranks(job, None, rank_places(spec, (10**9,)))
    data = JobData(placed, 7)
    assert data.verify(data.inputs).wrong > 0
    with Fabric(spec, clock="virtual") as fabric:
        task = fabric.tasks.job(job, data="random")
        (ended,) = fabric._exchanges.run([task], 1.0)
    assert ended.verdict.ok
    for rank, output in enumerate(ended.outputs):
        for each in list(placed.collectives(rank))[::5]:
            output[each.offset_bytes] ^= 1
            has_result = task.verify(ended.outputs).wrong > 0
            output[each.offset_bytes] ^= 1
            part = COLLECTIVE_KINDS[each.call.collective].result_part(each.call.spec, each.group_rank)
            assert has_result == (0 in part)


def test_unknown_data_are_refused():
    spec, job = (
        topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=3),
        job_of_all_collectives(((0, 1, 2),)),
    )
    with Fabric(spec, clock="virtual") as fabric, refused(BadInputError, problem="lengths"):
        fabric.run_job(job, data="lenghts")


@pytest.mark.mininet
def test_all_collectives_are_exact_under_the_real_clock():
    """By processes that read their parts from files, over two planes: groups of 2, 3, 7, 8 and 12 at once."""
    job = job_of_all_collectives()
    assert {call.collective for call in job.calls} == set(COLLECTIVE_KINDS)
    with Fabric(topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=6), clock="real") as fabric:
        run = fabric.run_job(job, data="random", timeout_s=120)
    assert run.verdict is not None
    assert run.verdict.ok
    assert all(np.all((times.started_ps >= 0) & (times.finished_ps > 0)) for times in run.times)
