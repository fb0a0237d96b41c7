"""The critical path: of jobs by hand, and of random ones, whose stretches follow each other without gaps."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from tests.traffic.jobs.test_random_jobs import jobs
from weft import Fabric, topologies
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.critical_path import StretchKind, critical_path
from weft.traffic.jobs.ideal import ideal_times


@dataclass
class Times:
    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]


def times(*pairs: tuple[int, int]) -> Times:
    started, finished = zip(*pairs, strict=True)
    return Times(np.array(started), np.array(finished))


def shown(path):
    return [(each.kind.value, each.rank, each.begin_ps, each.end_ps, each.category) for each in path.stretches]


def test_a_message_leads_to_its_sender():
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    before = sender.compute(40, category="forward")
    sender.send(0, 8, after=[before], category="pipeline")
    arrived = receiver.receive(0, 8, category="pipeline")
    receiver.compute(10, after=[arrived], category="forward")
    job = Job("two", (RankPart(sender.build(), (1,)), RankPart(receiver.build(), (0,))))
    path = critical_path(job, [times((0, 40), (40, 66)), times((0, 65), (65, 75))])
    assert shown(path) == [
        ("compute", 0, 0, 40, "forward"),
        ("transfer", 1, 40, 65, "pipeline"),
        ("compute", 1, 65, 75, "forward"),
    ]
    assert path.stretches[1].source == 0
    assert path.duration_ps == 75
    assert path.by_category() == {("compute", "forward"): 50, ("transfer", "pipeline"): 25}
    assert path.by_rank() == {0: 40, 1: 35}


def test_a_message_that_was_early_does_not():
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    sender.send(0, 8)
    before = receiver.compute(50, category="forward")
    receiver.receive(0, 8, after=[before])
    job = Job("two", (RankPart(sender.build(), (1,)), RankPart(receiver.build(), (0,))))
    path = critical_path(job, [times((0, 9)), times((0, 50), (50, 50))])
    assert shown(path) == [("compute", 1, 0, 50, "forward")]


def test_a_collective_leads_to_the_rank_that_began_last():
    builder = OperationsBuilder()
    before = builder.compute(10, category="backward")
    reduced = builder.collective(0, 0, after=[before], category="tensor")
    builder.compute(5, after=[reduced], category="backward")
    operations = builder.build()
    job = Job(
        "two",
        (RankPart(operations, (), (0,)), RankPart(operations, (), (0,), 3.0)),
        (Group("both", (0, 1)),),
        (CollectiveCall("allreduce", 64),),
    )
    path = critical_path(job, [times((0, 10), (10, 38), (38, 53)), times((0, 30), (30, 36), (36, 51))])
    assert shown(path) == [
        ("compute", 1, 0, 30, "backward"),
        ("collective", 0, 30, 38, "tensor"),
        ("compute", 0, 38, 53, "backward"),
    ]


def test_a_stream_is_followed_where_it_was_busy():
    builder = OperationsBuilder()
    builder.compute(7, category="other")
    builder.compute(3, category="last")
    job = Job("one", (RankPart(builder.build()),))
    assert shown(critical_path(job, [times((0, 7), (7, 10))])) == [
        ("compute", 0, 0, 7, "other"),
        ("compute", 0, 7, 10, "last"),
    ]


def test_what_follows_a_start_waits_for_no_end():
    builder = OperationsBuilder()
    before = builder.compute(4, stream=1, category="before")
    long = builder.compute(6, after=[before], category="long")
    builder.compute(9, stream=1, after_start=[long], category="beside")
    job = Job("one", (RankPart(builder.build()),))
    assert shown(critical_path(job, [times((0, 4), (4, 10), (4, 13))])) == [
        ("compute", 0, 0, 4, "before"),
        ("compute", 0, 4, 13, "beside"),
    ]


def test_time_that_nothing_explains_is_a_wait():
    builder = OperationsBuilder()
    first = builder.compute(4)
    builder.compute(4, after=[first])
    job = Job("one", (RankPart(builder.build()),))
    path = critical_path(job, [times((1, 5), (7, 11))])
    assert [(each.kind, each.duration_ps) for each in path.stretches] == [
        (StretchKind.WAIT, 1),
        (StretchKind.COMPUTE, 4),
        (StretchKind.WAIT, 2),
        (StretchKind.COMPUTE, 4),
    ]


def test_a_job_of_nothing_has_no_path():
    assert critical_path(Job("none", (RankPart(OperationsBuilder().build()),)), [times_of_nothing()]).duration_ps == 0


def times_of_nothing():
    return Times(np.zeros(0, np.int64), np.zeros(0, np.int64))


def check_whole(path, own_times):
    """Check that the stretches lead from the start to the end, each beginning where the one before ends."""
    end_ps = max((int(each.finished_ps.max(initial=0)) for each in own_times), default=0)
    bounds = [0, *(each.end_ps for each in path.stretches)]
    assert [each.begin_ps for each in path.stretches] == bounds[:-1]
    assert bounds[-1] == end_ps
    assert all(before.end_ps == after.begin_ps for before, after in pairwise(path.stretches))
    assert not any(each.kind is StretchKind.WAIT for each in path.stretches)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(job=jobs())
def test_the_path_of_an_ideal_run_is_whole(job):
    own_times = ideal_times(job)
    check_whole(critical_path(job, own_times), own_times)


@pytest.fixture(scope="module")
def fabric():
    with Fabric(topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as running:
        yield running


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(job=jobs())
def test_the_path_of_a_run_is_whole(fabric, job):
    run = fabric.run_job(job, timeout_s=1.0)
    check_whole(critical_path(job, run.times), run.times)
