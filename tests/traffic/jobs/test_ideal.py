"""The times of jobs whose communication takes none."""

from tests.refusals import refused
from weft.traffic.jobs import CollectiveCall, Group, Job, JobError, OperationsBuilder, RankPart
from weft.traffic.jobs.ideal import ideal_times


def alone(builder: OperationsBuilder, **part) -> list[tuple[int, int]]:
    """Return when each operation of a job of one rank starts and is done."""
    (times,) = ideal_times(Job("alone", (RankPart(builder.build(), **part),)))
    return list(zip(times.started_ps.tolist(), times.finished_ps.tolist(), strict=True))


def test_streams_exclude_and_the_first_that_could_start_does():
    builder = OperationsBuilder()
    first = builder.compute(10)
    builder.compute(5, after=[first])
    builder.compute(7)
    builder.compute(3, stream=1)
    # The third could start at once, the second only after the first.
    assert alone(builder) == [(0, 10), (17, 22), (10, 17), (0, 3)]


def test_starts_timers_and_scale():
    builder = OperationsBuilder()
    timer = builder.timer(30)
    first = builder.compute(11, after=[timer])
    builder.compute(4, stream=1, after_start=[first])
    builder.timer(20)
    assert alone(builder, compute_scale=1.5) == [(0, 30), (30, 47), (30, 36), (0, 20)]


def test_a_long_chain_of_starts():
    builder = OperationsBuilder()
    before = []
    for _ in range(5000):
        before = [builder.compute(1, stream=-1, after_start=before)]
    assert alone(builder)[-1] == (0, 1)


def test_ranks_wait_for_messages_and_for_the_last_of_a_group():
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    computed = sender.compute(40)
    sent = sender.send(0, 1000, after=[computed])
    sender.collective(0, 0, after=[sent])
    received = receiver.receive(0, 1000)
    computed = receiver.compute(5, after=[received])
    receiver.collective(0, 0, after=[computed])
    job = Job(
        "two",
        (RankPart(sender.build(), (1,), (0,)), RankPart(receiver.build(), (0,), (0,))),
        (Group("both", (0, 1)),),
        (CollectiveCall("allreduce", 64),),
    )
    first, second = ideal_times(job)
    assert first.finished_ps.tolist() == [40, 40, 45]
    assert second.started_ps.tolist() == [0, 40, 45]
    assert second.end_ps == 45


def test_what_cannot_end_is_refused():
    lone = OperationsBuilder()
    lone.receive(0, 8)
    with refused(JobError, problem="no operation of rank 1 sends it"):
        ideal_times(Job("lone", (RankPart(lone.build(), (1,)), RankPart(OperationsBuilder().build()))))
    circle = OperationsBuilder()
    circle.compute(1, after=[1])
    circle.compute(1, after=[0])
    with refused(JobError, problem="wait for each other"):
        alone(circle)
    # Each rank's stream is kept by a receive that only what is behind it would answer.
    crossed = OperationsBuilder()
    crossed.receive(0, 8, stream=0)
    crossed.send(0, 8, stream=0)
    with refused(JobError, problem="4 operations never start"):
        ideal_times(Job("crossed", (RankPart(crossed.build(), (1,)), RankPart(crossed.build(), (0,)))))
