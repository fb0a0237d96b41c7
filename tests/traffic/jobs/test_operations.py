"""Operations of jobs: what the builder makes of them, and how both ends number transfers."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.traffic.jobs import (
    CollectiveCall,
    Group,
    Job,
    JobError,
    Kind,
    OperationsBuilder,
    OperationsError,
    RankPart,
)
from weft.traffic.jobs.operations import MAX_SIZE_BYTES, bytes_by_category


def test_operations_have_what_was_added():
    builder = OperationsBuilder()
    first = builder.compute(5, category="forward", name="layer 0")
    second = builder.send(0, 100, tag=7, after=[first], stream=2)
    third = builder.collective(0, 0, after=[first], after_start=[second])
    operations = builder.build()
    assert [Kind(kind) for kind in operations.kind] == [Kind.COMPUTE, Kind.SEND, Kind.COLLECTIVE]
    assert operations.predecessors(third).tolist() == [first, second]
    assert operations.after_start.tolist() == [False, False, True]
    assert operations.categories[operations.category[first]] == "forward"
    assert operations.names[operations.name[first]] == "layer 0"
    assert (operations.size_bytes[second], operations.tag[second], operations.stream[second]) == (100, 7, 2)
    assert (operations.peer_slots, operations.group_slots, operations.calls) == (1, 1, ((0, 0),))


def test_an_operation_may_follow_one_that_is_added_later():
    builder = OperationsBuilder()
    first = builder.compute(1)
    second = builder.compute(2)
    builder.add_after(first, [second])
    assert builder.build().predecessors(first).tolist() == [second]


def test_columns_cannot_be_written_to():
    builder = OperationsBuilder()
    builder.compute(1)
    with pytest.raises(ValueError, match="read-only"):
        builder.build().duration_ps[0] = 2


@pytest.mark.parametrize(
    ("add", "what"),
    [
        (
            lambda builder: builder.compute(-1),
            {"valid": "0 to 4611686018427387904", "problem": "duration of -1 ps"},
        ),
        (lambda builder: builder.compute(1, stream=-2), {"valid": "-1 to 4095", "problem": "stream -2"}),
        (lambda builder: builder.send(0, -5), {"valid": "0 to 70368744177664", "problem": "message of -5 B"}),
        (lambda builder: builder.send(-1, 5), {"valid": "0 to 2147483647", "problem": "slot -1"}),
        (
            lambda builder: builder.receive(0, 5, tag=-3),
            {"valid": "0 to 9223372036854775807", "problem": "tag -3"},
        ),
    ],
)
def test_what_is_out_of_range_is_refused(add, what):
    with refused(OperationsError, **what):
        add(OperationsBuilder())


def test_a_missing_predecessor_is_named():
    builder = OperationsBuilder()
    builder.compute(1)
    builder.compute(1, after=[9])
    with refused(OperationsError, valid="0 to 1", problem="operation 1 follows operation 9"):
        builder.build()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30), st.randoms(use_true_random=False))
def test_both_ends_give_a_transfer_the_same_number(transfers, random):
    """Matching is by peer and tag, first with first; the receiver may post in any order."""
    sender, receivers = OperationsBuilder(), defaultdict(OperationsBuilder)
    for peer, tag in transfers:
        sender.send(peer, 8, tag)
    for peer, tag in random.sample(transfers, len(transfers)):
        receivers[peer].receive(0, 8, tag)
    sent = sender.build()
    numbers = sent.transfer_numbers(Kind.SEND)
    for peer, builder in receivers.items():
        received = builder.build()
        ours = zip(sent.tag[sent.target == peer], numbers[sent.target == peer], strict=True)
        theirs = zip(received.tag, received.transfer_numbers(Kind.RECEIVE), strict=True)
        assert sorted(ours) == sorted(theirs)
        assert np.array_equal(np.sort(numbers[sent.target == peer]), np.arange(len(received)))


def test_collectives_are_numbered_by_group():
    builder = OperationsBuilder()
    for group, call in ((0, 0), (1, 0), (0, 1), (0, 0), (1, 1)):
        builder.collective(group, call)
    assert builder.build().collective_numbers().tolist() == [0, 0, 1, 2, 1]


def test_sums_of_more_than_64_bits_are_exact():
    builder = OperationsBuilder()
    for _ in range(300_000):
        builder.send(0, MAX_SIZE_BYTES, category="pipeline")
    assert bytes_by_category(builder.build()) == {"pipeline": 300_000 * MAX_SIZE_BYTES}


def _part(**changes):
    builder = OperationsBuilder()
    builder.send(0, 8)
    builder.collective(0, 0)
    return RankPart(**({"operations": builder.build(), "peers": (1,), "groups": (0,)} | changes))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"peers": ()}, {"valid": "1 and 1", "problem": "rank 0 has 0 peers"}),
        ({"peers": (0,)}, {"problem": "rank 0 has itself"}),
        ({"peers": (2,)}, {"valid": "0 to 1", "problem": "rank 0's peers: rank 2"}),
        ({"peers": (1, 1)}, {"valid": "each once", "problem": "in two slots for peers"}),
        ({"groups": (3,)}, {"valid": "below 2", "problem": "names group 3"}),
        ({"groups": (1,)}, {"problem": "without being in it"}),
    ],
)
def test_a_job_whose_parts_do_not_fit_is_refused(changes, what):
    groups = (Group("all", (0, 1)), Group("other", (1,)))
    other = RankPart(OperationsBuilder().build())
    with refused(JobError, **what):
        Job("job", (_part(**changes), other), groups, (CollectiveCall("allreduce", 64),))


def test_a_call_that_there_is_not_is_refused():
    with refused(JobError, valid="below 0", problem="call 0"):
        Job("job", (_part(), RankPart(OperationsBuilder().build())), (Group("all", (0, 1)),))


def test_a_group_has_each_rank_once():
    with refused(JobError, valid="one or more, each once", problem="group 'g'"):
        Group("g", (1, 1))
