"""Jobs on a fabric under the virtual clock: closed forms, streams, overlap, refusals."""

import random
from itertools import pairwise

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, CheckFailedError, Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.jobs import PlacedJob
from weft.system.child_processes import ChildError
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.operations import Kind

HOSTS = 8
LINK_BPS = 100 * 10**9


def leaf(hosts=HOSTS, **given):
    return topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=hosts, host_rate_bps=LINK_BPS, **given)


@pytest.fixture(scope="module")
def fabric():
    with Fabric(leaf(), clock="virtual") as running:
        yield running


def job_of(*programs, groups=(), calls=(), **parts):
    """Return a job with a program for each rank, all of whose peers are all other ranks in order."""
    ranks = range(len(programs))
    built = []
    for rank, program in enumerate(programs):
        builder = OperationsBuilder()
        program(builder)
        operations = builder.build()
        peers = tuple(peer for peer in ranks if peer != rank)
        built.append(RankPart(operations, peers, tuple(range(operations.group_slots)), **parts))
    return Job("a job", tuple(built), tuple(groups), tuple(calls))


def collective_alone(collective, ranks, size_bytes, algorithm=""):
    operations = OperationsBuilder()
    operations.collective(0, 0)
    nothing, one = OperationsBuilder().build(), operations.build()
    parts = [RankPart(one, (), (0,)) if rank in ranks else RankPart(nothing) for rank in range(max(ranks) + 1)]
    return Job(
        collective,
        tuple(parts),
        (Group("g", tuple(ranks)),),
        (CollectiveCall(collective, size_bytes, algorithm),),
    )


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("allreduce", "ring"),
        ("allreduce", "tree"),
        ("allgather", "ring"),
        ("reducescatter", "ring"),
        ("alltoall", "direct"),
        ("broadcast", "ring"),
    ],
)
@pytest.mark.parametrize("ranks", [(0, 1, 2, 3), (6, 2, 5)])
def test_a_group_alone_takes_what_as_many_ranks_alone_take(fabric, collective, algorithm, ranks):
    size_bytes = 3 * 65_536
    run = fabric.run_job(collective_alone(collective, ranks, size_bytes, algorithm))
    with Fabric(leaf(len(ranks)), clock="virtual") as whole:
        alone = whole.run(CollectiveRequest(collective, size_bytes, algorithm)).result
    assert run.duration_ps == alone.time_ps


def test_computations_of_a_stream_follow_each_other_and_streams_overlap(fabric):
    def program(builder):
        builder.compute(300, stream=0)
        builder.compute(200, stream=0)
        builder.compute(400, stream=1)

    times = fabric.run_job(job_of(program)).times[0]
    assert times.started_ps.tolist() == [0, 300, 0]
    assert times.finished_ps.tolist() == [300, 500, 400]


def test_a_stream_takes_what_was_ready_first_and_the_lower_number_at_the_same_time(fabric):
    """Two streams end at the same time, and what follows the higher number is ready in the earlier event."""

    def program(builder):
        late = builder.compute(100, stream=1)
        early = builder.compute(50, stream=2)
        other = builder.compute(100, stream=3)
        builder.compute(10, stream=0, after=[other])
        builder.compute(10, stream=0, after=[late])
        builder.compute(70, stream=0, after=[early])

    assert fabric.run_job(job_of(program)).times[0].started_ps.tolist() == [0, 0, 0, 120, 130, 50]


def test_what_follows_a_start_does_not_wait_for_the_end(fabric):
    def program(builder):
        first = builder.compute(500, stream=0)
        second = builder.compute(20, stream=1, after_start=[first])
        builder.compute(1, stream=2, after=[second], after_start=[first])

    assert fabric.run_job(job_of(program)).times[0].started_ps.tolist() == [0, 0, 20]


def test_timers_count_from_the_start_of_the_job(fabric):
    def program(builder):
        timer = builder.timer(1000)
        first = builder.compute(300, after=[timer])
        late = builder.timer(200)
        builder.add_after(late, [first])

    assert fabric.run_job(job_of(program)).times[0].finished_ps.tolist() == [1000, 1300, 1300]


def test_a_straggler_computes_longer(fabric):
    run = fabric.run_job(job_of(lambda builder: builder.compute(1000), compute_scale=1.5))
    assert run.duration_ps == 1500


def test_a_message_is_done_at_both_ends_and_in_order_of_tags(fabric):
    """The receiver's second operation waits for the sender's first; what has arrived before is there at once."""

    def sender(builder):
        builder.send(0, 10_000, tag=7)
        builder.send(0, 20_000, tag=3)

    def receiver(builder):
        late = builder.compute(10**9)
        builder.receive(0, 20_000, tag=3)
        builder.receive(0, 10_000, tag=7, after=[late])

    run = fabric.run_job(job_of(sender, receiver))
    sent, received = run.times
    least_ps = [size * 8 * 10**12 // LINK_BPS for size in (10_000, 20_000)]
    assert received.finished_ps[1] > sum(least_ps)
    assert received.finished_ps[2] == 10**9
    assert np.all(sent.finished_ps >= least_ps)
    assert sent.finished_ps[1] > received.finished_ps[1]


@pytest.mark.parametrize("size_bytes", [0, 1, 1000, 65_536, 1_000_001])
def test_messages_of_any_size_use_all_planes(size_bytes):
    spec = topologies.leaf_spine(planes=3, leaves=1, spines=0, hosts_per_leaf=2)

    def sender(builder):
        for tag in range(4):
            builder.send(0, size_bytes, tag)

    def receiver(builder):
        for tag in range(4):
            builder.receive(0, size_bytes, tag)

    with Fabric(spec, clock="virtual") as fabric:
        run = fabric.run_job(job_of(sender, receiver))
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in fabric.hosts.stats()[0]["planes"]]
        fabric.packet_conservation()
    assert all(each.finished_ps.max() <= run.duration_ps for each in run.times)
    assert min(sent) > size_bytes


def test_collectives_of_several_groups_and_computation_overlap(fabric):
    """Pairs that share no link take what one takes, and computation beside them hides them."""
    size_bytes = 1 << 20

    builder = OperationsBuilder()
    builder.compute(10**9, stream=0)
    builder.collective(0, 0)
    operations = builder.build()
    groups = [Group(f"pair {number}", (2 * number, 2 * number + 1)) for number in range(4)]
    parts = tuple(RankPart(operations, (), (rank // 2,)) for rank in range(HOSTS))
    run = fabric.run_job(Job("pairs", parts, tuple(groups), (CollectiveCall("allreduce", size_bytes),)))
    alone = fabric.run_job(collective_alone("allreduce", (0, 1), size_bytes))
    assert run.duration_ps == 10**9
    assert {int(each.finished_ps[1]) for each in run.times} == {alone.duration_ps}


def test_collectives_of_a_group_in_flight_at_once_are_kept_apart(fabric):
    def program(builder):
        for _ in range(3):
            builder.collective(0, 0)
        builder.collective(0, 1)

    calls = (CollectiveCall("allreduce", 100_000), CollectiveCall("alltoall", 64_000))
    run = fabric.run_job(job_of(*[program] * 4, groups=[Group("all", (0, 1, 2, 3))], calls=calls))
    assert all(np.all(each.started_ps == 0) for each in run.times)
    assert all(np.all(each.finished_ps > 0) for each in run.times)


def test_jobs_run_beside_each_other_each_from_its_start_on(fabric):
    def program(builder):
        builder.collective(0, 0)

    job = job_of(program, program, groups=[Group("both", (0, 1))], calls=[CollectiveCall("allreduce", 500_000)])
    first, second = fabric.run_jobs([PlacedJob(job, (0, 1)), PlacedJob(job, (4, 5), start_ps=3_000_000)])
    assert second.started_ps == first.started_ps + 3_000_000
    assert first.duration_ps == second.duration_ps
    shared = fabric.run_jobs([PlacedJob(job, (0, 1)), PlacedJob(job, (0, 1))])
    assert all(1.8 < run.duration_ps / first.duration_ps < 2.2 for run in shared)


def test_a_run_does_not_depend_on_earlier_ones(fabric):
    job = collective_alone("alltoall", (0, 3, 5), 90_000)
    runs = [fabric.run_job(job) for _ in range(2)]
    assert runs[0].duration_ps == runs[1].duration_ps
    for one, other in zip(runs[0].times, runs[1].times, strict=True):
        assert np.array_equal(one.finished_ps, other.finished_ps)


RAILS = topologies.with_scale_up(
    topologies.leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=2),
    4,
    3_200_000_000_000,
    500_000,
    rail_optimised=True,
)


def test_ranks_of_a_host_use_its_links_in_groups_and_messages():
    """Job ranks are counted host by host, so the first four share one."""

    def first(builder):
        builder.collective(0, 0)
        builder.send(0, 1_000_000)

    def second(builder):
        builder.collective(0, 0)
        builder.receive(0, 1_000_000)

    def other(builder):
        builder.collective(0, 0)

    job = job_of(
        first,
        second,
        other,
        other,
        groups=[Group("host", (0, 1, 2, 3))],
        calls=[CollectiveCall("allreduce", 1 << 20)],
    )
    with Fabric(RAILS, clock="virtual") as fabric:
        fabric.run_job(job)
        stats = fabric.hosts.stats()
    sent = [plane["transmit"]["transmitted"]["packets"] for host in stats for plane in host["planes"]]
    assert not any(sent)


@pytest.mark.parametrize("algorithm", ["", "ring", "tree", "hierarchical"])
def test_groups_over_hosts_of_several_ranks(algorithm):
    with Fabric(RAILS, clock="virtual") as fabric:
        run = fabric.run_job(collective_alone("allreduce", (0, 1, 4, 5), 1 << 18, algorithm))
        assert run.duration_ps > 0


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (CollectiveCall("allreduce", 1024, "hierarchical"), {"problem": "no links inside"}),
        (CollectiveCall("allreduce", 1024, "zigzag"), {"problem": "no algorithm 'zigzag'"}),
        (CollectiveCall("allmight", 1024), {"problem": "allmight"}),
        (CollectiveCall("broadcast", 1024, root=9), {"problem": "root 9"}),
    ],
)
def test_collectives_that_cannot_be_are_refused(fabric, call, what):
    job = collective_alone("allreduce", (0, 1), 1024)
    with refused(BadInputError, **what):
        fabric.run_job(Job("bad", job.parts, job.groups, (call,)))


@pytest.mark.parametrize("ranks", [(0,), (0, 0), (0, HOSTS)])
def test_places_that_a_fabric_has_not_are_refused(fabric, ranks):
    with pytest.raises(BadInputError, match=r"place|rank 8|two ranks"):
        fabric.run_job(collective_alone("allreduce", (0, 1), 1024), ranks)


def test_a_job_of_too_many_ranks_is_refused(fabric):
    with refused(BadInputError, valid="up to 8", problem="9 ranks on a fabric of 8"):
        fabric.run_job(job_of(*[lambda builder: builder.compute(1)] * 9))


def test_a_job_that_cannot_come_to_an_end_is_refused(fabric):
    job = job_of(lambda builder: builder.receive(0, 10), lambda builder: builder.compute(1))
    with refused(BadInputError, problem="no operation of rank 1 sends it"):
        fabric.run_job(job)


def test_a_job_that_does_not_end_in_time_is_an_error_and_leaves_the_fabric_usable(fabric):
    def program(builder):
        builder.collective(0, 0)
        builder.compute(10**10)

    job = job_of(program, program, groups=[Group("both", (0, 1))], calls=[CollectiveCall("allreduce", 1 << 26)])
    waits = r"after 0 of 2 steps.*; rank 0 at operation 0 \(collective allreduce of 67108864 B in group 'both'\)"
    with pytest.raises(CheckFailedError, match=waits):
        fabric.run_job(job, timeout_s=0.001)
    assert fabric.run_job(job_of(lambda builder: builder.compute(5))).duration_ps == 5
    alone = collective_alone("allreduce", (0, 1), 4096)
    assert fabric.run_job(alone).duration_ps == fabric.run_job(alone).duration_ps


@pytest.mark.parametrize("timeout_s", [float("nan"), float("inf"), -1, "soon", None])
def test_a_time_limit_that_is_none_is_refused(fabric, timeout_s):
    job = job_of(lambda builder: builder.compute(1000))
    for run in (
        lambda: fabric.run_job(job, timeout_s=timeout_s),
        lambda: fabric.run_together([fabric.tasks.job(job)], timeout_s),
        lambda: fabric.incast("h0", 1000, timeout_s=timeout_s),
    ):
        with pytest.raises(BadInputError, match="timeout_s: "):
            run()


def test_a_job_in_place_of_a_placed_one_or_a_task_is_refused(fabric):
    job = job_of(lambda builder: builder.compute(1000))
    with refused(BadInputError, place="run_jobs", valid="a PlacedJob, such as PlacedJob(job)"):
        fabric.run_jobs([job])
    with refused(BadInputError, place="run_jobs", valid="a list, each a PlacedJob, such as PlacedJob(job)"):
        fabric.run_jobs(PlacedJob(job))
    with refused(BadInputError, place="run_together", valid="a task, such as fabric.tasks.job(job)"):
        fabric.run_together([fabric.tasks.job(job), job])


def work_ps(start_ps, end_ps, busy, share):
    """Return the work that is done from start to end at 1 - share while any of `busy` lasts, else at the full rate."""
    edges = sorted({start_ps, end_ps, *(edge for each in busy for edge in each if start_ps < edge < end_ps)})
    return sum(
        (later - edge) * (1 - share if any(begin <= edge < end for begin, end in busy) else 1)
        for edge, later in pairwise(edges)
    )


@pytest.mark.parametrize("share", [0.15, 0.9])
def test_computing_goes_on_more_slowly_while_messages_are_sent(fabric, share):
    def sender(builder):
        builder.compute(10**8, stream=0)
        builder.send(0, 1_000_000, tag=0)

    def receiver(builder):
        builder.receive(0, 1_000_000, tag=0)

    run = fabric.run_job(job_of(sender, receiver, communication_share=share))
    computed_ps, sent_ps = run.times[0].finished_ps.tolist()
    # The message ends first, and while it lasts a share of the work is missing.
    assert sent_ps < 10**8
    assert computed_ps == pytest.approx(10**8 + share * sent_ps, abs=2)


@pytest.mark.parametrize("seed", range(20))
def test_all_of_the_work_is_done_however_communication_comes_and_goes(fabric, seed):
    drawn = random.Random(seed)
    share = drawn.choice([0.1, 0.25, 0.5, 0.9])
    works = [drawn.randrange(1, 10**8) for _ in range(6)]
    sizes = [drawn.randrange(0, 500_000) for _ in range(6)]

    def sender(builder):
        for number, work in enumerate(works):
            builder.compute(work, stream=number % 3)
        for tag, size in enumerate(sizes):
            gap = builder.compute(drawn.randrange(1, 10**7), stream=3)
            builder.send(0, size, tag=tag, after=[gap])
        call = builder.compute(1, stream=3)
        builder.send(0, 1000, tag=len(sizes), after=[call])

    def receiver(builder):
        for tag, size in enumerate([*sizes, 1000]):
            builder.receive(0, size, tag=tag)

    job = job_of(sender, receiver, communication_share=share)
    times = fabric.run_job(job).times[0]
    kinds, durations = job.parts[0].operations.kind.tolist(), job.parts[0].operations.duration_ps.tolist()
    spans = list(zip(times.started_ps.tolist(), times.finished_ps.tolist(), strict=True))
    busy = [span for span, kind in zip(spans, kinds, strict=True) if kind == Kind.SEND]
    assert busy
    for (start_ps, end_ps), kind, duration_ps in zip(spans, kinds, durations, strict=True):
        if kind == Kind.COMPUTE:
            # A picosecond for each change of the rate.
            assert work_ps(start_ps, end_ps, busy, share) == pytest.approx(duration_ps, abs=len(busy) + 2)


def test_a_whole_accelerator_cannot_be_taken(fabric):
    with pytest.raises(ChildError, match="communication takes 1"):
        fabric.run_job(job_of(lambda builder: builder.compute(1000), communication_share=1.0))
