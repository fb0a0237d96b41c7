"""Slots of work queues: taken from the post to the poll of the completion, in whatever order requests complete."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.rdma.errors import VerbsError
from weft.rdma.work_queues import WorkQueue

SIZE = 4


def is_full(queue: WorkQueue[int]) -> bool:
    try:
        queue.require_room()
    except VerbsError as error:
        return error.errno == errno.ENOMEM
    return False


def test_a_late_receive_keeps_its_slot_when_a_later_one_is_polled() -> None:
    queue: WorkQueue[int] = WorkQueue("receive", 2)
    first, second = queue.post(0), queue.post(1)
    queue.complete(second)
    queue.retire(second)
    queue.require_room()
    queue.post(2)
    with pytest.raises(VerbsError, match="all 2 slots of the receive queue are taken"):
        queue.require_room()
    queue.complete(first)
    assert is_full(queue)  # completed, but not polled
    queue.retire(first)
    assert not is_full(queue)


@given(st.lists(st.tuples(st.sampled_from(["post", "complete", "poll"]), st.integers(0, SIZE - 1)), max_size=60))
def test_as_many_requests_hold_slots_as_have_not_been_polled(steps: list[tuple[str, int]]) -> None:
    queue: WorkQueue[int] = WorkQueue("receive", SIZE)
    posted: list[int] = []
    completed: list[int] = []
    for step, choice in steps:
        assert is_full(queue) == (len(posted) + len(completed) >= SIZE)
        if step == "post" and not is_full(queue):
            posted.append(queue.post(choice))
        elif step == "complete" and posted:
            sequence = posted.pop(choice % len(posted))
            assert queue.complete(sequence)[0] == sequence
            completed.append(sequence)
        elif step == "poll" and completed:
            queue.retire(completed.pop(0))


def test_unsignaled_requests_free_their_slots_with_the_next_signaled_one() -> None:
    queue: WorkQueue[int] = WorkQueue("send", SIZE)
    for number in range(SIZE):
        queue.post(number)
    for _ in range(3):
        sequence, _ = queue.complete()
    assert is_full(queue)
    queue.retire(sequence)
    assert [queue.post(number) for number in range(3)] == [4, 5, 6]
    assert is_full(queue)
