"""What ranks' time goes to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.breakdown import Breakdown, breakdowns


@dataclass
class Times:
    started_ps: NDArray[np.int64]
    finished_ps: NDArray[np.int64]


def times(*pairs: tuple[int, int]) -> Times:
    started, finished = zip(*pairs, strict=True)
    return Times(np.array(started), np.array(finished))


def shown(found: Breakdown) -> tuple[dict[str, int], dict[str, int], int, int]:
    return dict(found.compute_ps), dict(found.exposed_ps), found.bubble_ps, found.stall_ps


def test_a_message_is_a_bubble_until_it_is_sent_and_exposed_from_then_on():
    sender, receiver = OperationsBuilder(), OperationsBuilder()
    before = sender.compute(40, category="forward")
    sender.send(0, 8, after=[before], category="pipeline")
    arrived = receiver.receive(0, 8, category="pipeline")
    receiver.compute(10, after=[arrived], category="forward")
    job = Job("two", (RankPart(sender.build(), (1,)), RankPart(receiver.build(), (0,))))
    first, second = breakdowns(job, [times((0, 40), (40, 66)), times((0, 65), (65, 75))])
    assert shown(first) == ({"forward": 40}, {"pipeline": 26}, 9, 0)
    assert shown(second) == ({"forward": 10}, {"pipeline": 25}, 40, 0)
    assert first.total_ps == second.total_ps == 75


def test_a_collective_is_a_stall_until_all_have_begun():
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
    fast, slow = breakdowns(job, [times((0, 10), (10, 37), (37, 42)), times((0, 30), (30, 36), (36, 51))])
    assert shown(fast) == ({"backward": 15}, {"tensor": 7}, 9, 20)
    assert shown(slow) == ({"backward": 45}, {"tensor": 6}, 0, 0)


def test_hidden_communication_is_not_exposed():
    builder = OperationsBuilder()
    first = builder.compute(10, category="backward")
    reduced = builder.collective(0, 0, after=[first], category="data")
    second = builder.compute(20, after=[first], category="backward")
    timer = builder.timer(70)
    builder.compute(4, after=[reduced, second, timer], category="optimizer")
    job = Job("one", (RankPart(builder.build(), (), (0,)),), (Group("alone", (0,)),), (CollectiveCall("x", 4),))
    (found,) = breakdowns(job, [times((0, 10), (10, 44), (10, 30), (0, 70), (70, 74))])
    # The timer, not the collective, was the last to be waited for.
    assert shown(found) == ({"backward": 30, "optimizer": 4}, {}, 0, 40)
    (found,) = breakdowns(job, [times((0, 10), (10, 80), (10, 30), (0, 70), (82, 86))])
    assert shown(found) == ({"backward": 30, "optimizer": 4}, {"data": 50}, 0, 2)


def test_a_gap_is_followed_back_through_what_led_to_it():
    builder = OperationsBuilder()
    first = builder.compute(10)
    scattered = builder.collective(0, 0, after=[first], category="tensor")
    gathered = builder.collective(0, 0, after=[scattered], category="expert")
    builder.compute(10, after=[gathered])
    builder.compute(3, stream=1)
    job = Job("one", (RankPart(builder.build(), (), (0,)),), (Group("alone", (0,)),), (CollectiveCall("x", 4),))
    (found,) = breakdowns(job, [times((0, 10), (10, 16), (18, 30), (30, 40), (0, 14))])
    # A second stream computes until 14.
    assert shown(found) == ({"": 24}, {"tensor": 2, "expert": 12}, 0, 2)


def test_ranks_without_operations_wait_for_the_end():
    builder = OperationsBuilder()
    builder.compute(7)
    job = Job("two", (RankPart(builder.build()), RankPart(OperationsBuilder().build())))
    empty = Times(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert [shown(each) for each in breakdowns(job, [times((0, 7)), empty])] == [
        ({"": 7}, {}, 0, 0),
        ({}, {}, 7, 0),
    ]
