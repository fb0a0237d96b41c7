"""Random jobs end, and their operations start when they should: after what they follow, one at a time on a stream."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft import Fabric, topologies
from weft.traffic.jobs import NO_STREAM, CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart

RANKS = 4
GROUPS = ((0, 1, 2, 3), (1, 3), (2, 0, 1))
CALLS = (
    CollectiveCall("allreduce", 4000),
    CollectiveCall("alltoall", 20_000),
    CollectiveCall("broadcast", 900, root=1),
)


@pytest.fixture(scope="module")
def fabric():
    with Fabric(topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as running:
        yield running


@st.composite
def jobs(draw):
    """Return a job whose operations of all ranks are added in one order, which all dependencies follow.

    Streams have computations, sends and READs only: what waits for other ranks could keep its stream from what these
    wait for.
    """
    builders = [OperationsBuilder() for _ in range(RANKS)]
    counts = Counter()

    def edges(rank):
        earlier = st.integers(0, len(builders[rank]) - 1)
        after = st.lists(earlier, max_size=3) if len(builders[rank]) else st.just([])
        return {"after": draw(after), "after_start": draw(after)}

    for _ in range(draw(st.integers(1, 25))):
        rank = draw(st.integers(0, RANKS - 1))
        stream = draw(st.sampled_from((NO_STREAM, 0, 0, 1)))
        kind = draw(st.sampled_from(("compute", "message", "collective", "timer", "read")))
        if kind == "compute":
            builders[rank].compute(draw(st.integers(0, 10**7)), stream=stream, **edges(rank))
        elif kind == "timer":
            builders[rank].timer(draw(st.integers(0, 10**7)))
        elif kind == "read":
            size_bytes = draw(st.sampled_from((0, 1, 5000, 70_000)))
            builders[rank].read(draw(st.integers(0, RANKS - 2)), size_bytes, stream=stream, **edges(rank))
        elif kind == "message":
            peer = draw(st.integers(0, RANKS - 1).filter(lambda other, rank=rank: other != rank))
            size_bytes = draw(st.sampled_from((0, 1, 5000, 70_000)))
            counts[rank, peer] += 1
            builders[rank].send(peer - (peer > rank), size_bytes, counts[rank, peer], stream=stream, **edges(rank))
            builders[peer].receive(rank - (rank > peer), size_bytes, counts[rank, peer], **edges(peer))
        else:
            group, call = draw(st.integers(0, len(GROUPS) - 1)), draw(st.integers(0, len(CALLS) - 1))
            for member in GROUPS[group]:
                slot = [number for number, ranks in enumerate(GROUPS) if member in ranks].index(group)
                builders[member].collective(slot, call, **edges(member))
    parts = tuple(
        RankPart(
            builder.build(),
            tuple(peer for peer in range(RANKS) if peer != rank),
            tuple(number for number, ranks in enumerate(GROUPS) if rank in ranks),
        )
        for rank, builder in enumerate(builders)
    )
    return Job("random", parts, tuple(Group(f"group {ranks}", ranks) for ranks in GROUPS), CALLS)


def ready_ps(operations, times, operation):
    first, end = operations.after_offsets[operation : operation + 2]
    after, is_start = operations.after[first:end], operations.after_start[first:end]
    return int(np.where(is_start, times.started_ps[after], times.finished_ps[after]).max(initial=0))


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(job=jobs())
def test_random_jobs_end_and_start_everything_in_order(fabric, job):
    run = fabric.run_job(job, timeout_s=1.0)
    for part, times in zip(job.parts, run.times, strict=True):
        operations = part.operations
        streams = defaultdict(list)
        for operation in range(len(operations)):
            ready = ready_ps(operations, times, operation)
            start, end = int(times.started_ps[operation]), int(times.finished_ps[operation])
            kind = Kind(operations.kind[operation])
            if kind is Kind.COMPUTE:
                assert end - start == operations.duration_ps[operation]
            elif kind is Kind.TIMER:
                assert end == max(start, operations.duration_ps[operation])
            else:
                assert start <= end
            if operations.stream[operation] == NO_STREAM:
                assert start == ready
            else:
                streams[int(operations.stream[operation])].append((ready, operation, start, end))
        for waiting in streams.values():
            check_stream(waiting)
    check_messages(job, run)


def check_stream(waiting):
    """Check that it takes what was ready first, the lower number at the same time, as soon as it is free."""
    free_ps = 0
    while waiting:
        now_ps = max(free_ps, min(waiting)[0])
        ready = [each for each in waiting if each[0] <= now_ps]
        chosen = min(ready)
        assert chosen[2] == now_ps
        free_ps = chosen[3]
        waiting.remove(chosen)


def check_messages(job, run):
    """Check that nothing is received before it is sent."""
    sent, received = {}, {}
    for rank, (part, times) in enumerate(zip(job.parts, run.times, strict=True)):
        operations = part.operations
        for kind, found in ((Kind.SEND, sent), (Kind.RECEIVE, received)):
            for operation in operations.of_kind(kind):
                peer, tag = part.peers[operations.target[operation]], int(operations.tag[operation])
                ends = (rank, peer, tag) if kind is Kind.SEND else (peer, rank, tag)
                found[ends] = times.started_ps[operation] if kind is Kind.SEND else times.finished_ps[operation]
    assert sent.keys() == received.keys()
    assert all(received[ends] > start_ps for ends, start_ps in sent.items())
