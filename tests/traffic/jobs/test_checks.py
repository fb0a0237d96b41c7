"""Jobs that cannot come to an end are refused, with the ranks and operations that keep them from it."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.traffic.jobs import CollectiveCall, Group, Job, JobError, OperationsBuilder, RankPart, check_job

CALL = CollectiveCall("allreduce", 4096)


def job(*builders: OperationsBuilder, groups=(), calls=(CALL,), peers=None) -> Job:
    """Ranks that have all others as peers, in order, and all groups that they are in."""
    parts = []
    for rank, builder in enumerate(builders):
        others = tuple(peer for peer in range(len(builders)) if peer != rank)
        own = tuple(number for number, group in enumerate(groups) if rank in group.ranks)
        parts.append(RankPart(builder.build(), others, own))
    return Job("test", tuple(parts), tuple(groups), tuple(calls))


def refusal(wrong: Job, locate=None) -> str:
    with pytest.raises(JobError) as error:
        check_job(wrong, locate)
    return str(error.value)


def test_an_exchange_and_collectives_can_come_to_an_end():
    one, two = OperationsBuilder(), OperationsBuilder()
    for builder in (one, two):
        received = builder.receive(0, 10)
        builder.collective(0, 0, after=[received, builder.send(0, 10)])
    check_job(job(one, two, groups=[Group("all", (0, 1))]))


def test_sends_and_receives_without_the_other_are_named():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.send(0, 10, tag=3)
    two.receive(0, 10, tag=4, name="grad")
    message = refusal(job(one, two))
    assert "rank 0, operation 0 (send of 10 B to rank 1, tag 3): no operation of rank 1 receives it" in message
    assert "rank 1, operation 0 'grad' (receive of 10 B from rank 0, tag 4): no operation of rank 0 sends it" in message


def test_places_are_what_the_reader_of_a_file_says():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.send(0, 10)
    message = refusal(job(one, two), lambda rank, operation: f"x.{rank}.et: node {operation + 100}")
    assert message.startswith("rank 0, x.0.et: node 100 (send")


def test_the_second_of_two_sends_is_the_one_without_a_receive():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.send(0, 10)
    one.send(0, 20)
    two.receive(0, 10)
    assert refusal(job(one, two)).startswith("rank 0, operation 1 (send of 20 B")


def test_differing_sizes_are_refused():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.send(0, 10)
    two.receive(0, 11)
    assert refusal(job(one, two)).endswith("received as 11 B by rank 1, operation 0")


def test_collectives_in_another_order_are_refused():
    calls = (CALL, CollectiveCall("allgather", 4096))
    one, two = OperationsBuilder(), OperationsBuilder()
    for builder, order in ((one, (0, 1)), (two, (1, 0))):
        for call in order:
            builder.collective(0, call)
    assert refusal(job(one, two, groups=[Group("tp", (0, 1))], calls=calls)) == (
        "group 'tp': collective 0 is allreduce of 4096 B for rank 0, operation 0, "
        "but allgather of 4096 B for rank 1, operation 0"
    )


def test_equal_calls_of_different_numbers_match():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.collective(0, 0)
    two.collective(0, 1)
    check_job(job(one, two, groups=[Group("tp", (0, 1))], calls=(CALL, CALL)))


def test_too_few_collectives_are_refused():
    one, two = OperationsBuilder(), OperationsBuilder()
    one.collective(0, 0)
    message = refusal(job(one, two, groups=[Group("tp", (0, 1))]))
    assert message == "group 'tp': rank 0 calls 1 collectives, rank 1 0"


def test_a_root_outside_of_the_group_is_refused():
    one, two = OperationsBuilder(), OperationsBuilder()
    for builder in (one, two):
        builder.collective(0, 0)
    calls = (CollectiveCall("broadcast", 4, root=2),)
    message = refusal(job(one, two, groups=[Group("tp", (0, 1))], calls=calls))
    assert message == "group 'tp': broadcast of 4 B (root 2), whose root is not 0 to 1"


def test_operations_that_follow_each_other_in_a_circle_are_refused():
    one = OperationsBuilder()
    first, second = one.compute(1, name="a"), one.compute(1, name="b")
    one.add_after(first, [second])
    one.add_after(second, [first])
    assert refusal(job(one)) == (
        "operations of one rank wait for each other: rank 0, operation 0 'a' (compute), "
        "which waits for rank 0, operation 1 'b' (compute), which waits for the first"
    )


def test_an_operation_that_follows_itself_is_refused():
    one = OperationsBuilder()
    one.add_after(one.compute(1), [0])
    assert refusal(job(one)) == "rank 0, operation 0 (compute) waits for itself"


def test_ranks_that_wait_for_each_others_messages_are_refused():
    one, two = OperationsBuilder(), OperationsBuilder()
    for builder in (one, two):
        builder.send(0, 8, after=[builder.receive(0, 8)])
    assert refusal(job(one, two)).startswith(
        "ranks wait for each other: rank 0, operation 0 (receive of 8 B from rank 1, tag 0), "
        "which waits for rank 1, operation 1 (send"
    )


def test_a_send_may_follow_the_start_of_a_receive():
    one, two = OperationsBuilder(), OperationsBuilder()
    for builder in (one, two):
        builder.send(0, 8, after_start=[builder.receive(0, 8)])
    check_job(job(one, two))


def test_groups_whose_collectives_wait_for_each_other_are_refused():
    one, two = OperationsBuilder(), OperationsBuilder()
    groups = [Group("a", (0, 1)), Group("b", (0, 1))]
    one.collective(1, 0, after=[one.collective(0, 0)])
    two.collective(0, 0, after=[two.collective(1, 0)])
    message = refusal(job(one, two, groups=groups))
    assert message.startswith("ranks wait for each other: rank 0, operation 0 (allreduce in 'a')")


def random_ranks(draws: random.Random, ranks: int, messages: int) -> list[OperationsBuilder]:
    """Ranks that do what one order of events allows: so they can come to an end."""
    builders = [OperationsBuilder() for _ in range(ranks)]
    for tag in range(messages):
        kind = draws.randrange(3)
        if kind == 0:
            source, destination = draws.sample(range(ranks), 2)
            for rank, peer, add in (
                (source, destination, builders[source].send),
                (destination, source, builders[destination].receive),
            ):
                add(peer - (peer > rank), 8, tag % 3, after=some(draws, builders[rank]))
        else:
            for rank, builder in enumerate(builders):
                if kind == 1:
                    builder.collective(0, 0, after=some(draws, builder))
                else:
                    builder.compute(rank, after=some(draws, builder), after_start=some(draws, builder))
    return builders


def some(draws: random.Random, builder: OperationsBuilder) -> list[int]:
    return draws.sample(range(len(builder)), min(len(builder), draws.randrange(3)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 5), messages=st.integers(0, 40))
def test_what_one_order_of_events_allows_can_come_to_an_end(seed, ranks, messages):
    draws = random.Random(seed)
    builders = random_ranks(draws, ranks, messages)
    # Matching is by number and tag, and events of one order have rising numbers on all ranks.
    check_job(job(*builders, groups=[Group("all", tuple(range(ranks)))]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 5))
def test_a_circle_through_any_ranks_is_found(seed, ranks):
    draws = random.Random(seed)
    builders = random_ranks(draws, ranks, 10)
    for rank, builder in enumerate(builders):
        before, after = (rank - 1) % ranks, (rank + 1) % ranks
        received = builder.receive(before - (before > rank), 1, tag=99)
        builder.send(after - (after > rank), 1, tag=99, after=[received])
    message = refusal(job(*builders, groups=[Group("all", tuple(range(ranks)))]))
    assert message.count("tag 99") == 2 * ranks
    assert message.startswith("ranks wait for each other")


def test_ten_problems_are_enough():
    one, two = OperationsBuilder(), OperationsBuilder()
    for tag in range(30):
        one.send(0, 1, tag)
    lines = refusal(job(one, two)).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and more"


def test_a_long_chain_is_checked_without_recursion():
    builders = [OperationsBuilder(), OperationsBuilder()]
    for rank, builder in enumerate(builders):
        last = None
        for step in itertools.count():
            if step == 5000:
                break
            add = builder.send if (step + rank) % 2 else builder.receive
            last = add(0, 1, after=() if last is None else [last])
    check_job(job(*builders))
