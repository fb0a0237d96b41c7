"""READs of jobs: what they take, what competes, and what is refused."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.jobs.traces import TraceError, write_trace
from weft.run.unfinished import unfinished
from weft.traffic.jobs import NEVER_PS, Job, Kind, OperationsBuilder, RankPart, RankTimes
from weft.traffic.jobs.breakdown import breakdowns
from weft.traffic.jobs.critical_path import StretchKind, critical_path
from weft.traffic.jobs.ideal import ideal_times
from weft.traffic.jobs.readers import Readers, readers_of

LINK_BPS = 100 * 10**9
MEBIBYTE = 1 << 20


def leaf(hosts, **given):
    return topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=hosts, host_rate_bps=LINK_BPS, **given)


def reading_job(reads, ranks):
    """Return a job of READs, by reader: the rank read from and the size of each."""
    parts = []
    for rank in range(ranks):
        builder, peers = OperationsBuilder(), []
        for peer, size_bytes in reads.get(rank, ()):
            if peer not in peers:
                peers.append(peer)
            builder.read(peers.index(peer), size_bytes, category="remote", name=f"from {peer}")
        parts.append(RankPart(builder.build(), tuple(peers)))
    return Job("reads", tuple(parts))


def duration_ps(fabric, reads, ranks, **options):
    job = reading_job(reads, ranks)
    with Fabric(fabric, clock="virtual", **options) as running:
        return running.run_job(job).duration_ps


def link_ps(size_bytes):
    return size_bytes * 8 * 10**12 // LINK_BPS


def test_a_read_takes_its_request_and_the_bytes_of_its_response():
    small, large = (duration_ps(leaf(2), {0: [(1, size)]}, 2) for size in (1, 4 * MEBIBYTE))
    assert link_ps(4 * MEBIBYTE) < large - small < 1.12 * link_ps(4 * MEBIBYTE)


def test_large_reads_are_striped_over_planes():
    one, two = (
        duration_ps(
            topologies.leaf_spine(planes=planes, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=LINK_BPS),
            {0: [(1, 4 * MEBIBYTE)]},
            2,
        )
        for planes in (1, 2)
    )
    assert 1.8 < one / two < 2.1


def test_responses_to_many_readers_of_one_rank_share_its_link():
    one = duration_ps(leaf(5), {0: [(4, 2 * MEBIBYTE)]}, 5)
    all_four = duration_ps(leaf(5), {rank: [(4, 2 * MEBIBYTE)] for rank in range(4)}, 5)
    assert 4 * link_ps(2 * MEBIBYTE) < all_four < 4.2 * one


def test_responses_to_one_reader_of_many_ranks_share_its_link():
    one = duration_ps(leaf(5), {4: [(0, 2 * MEBIBYTE)]}, 5)
    from_four = duration_ps(leaf(5), {4: [(rank, 2 * MEBIBYTE) for rank in range(4)]}, 5)
    assert 4 * link_ps(2 * MEBIBYTE) < from_four < 5 * one


def test_a_reader_and_a_sender_to_it_share_its_link():
    read, sent = OperationsBuilder(), OperationsBuilder()
    read.read(0, 2 * MEBIBYTE)
    read.receive(1, 2 * MEBIBYTE)
    sent.send(0, 2 * MEBIBYTE)
    job = Job(
        "both",
        (RankPart(read.build(), (1, 2)), RankPart(OperationsBuilder().build()), RankPart(sent.build(), (0,))),
    )
    with Fabric(leaf(3), clock="virtual") as running:
        assert running.run_job(job).duration_ps > 2 * link_ps(2 * MEBIBYTE)


def test_what_follows_a_read_waits_for_its_data():
    builder = OperationsBuilder()
    read = builder.read(0, MEBIBYTE, category="remote")
    builder.compute(500, after=[read])
    job = Job("then", (RankPart(builder.build(), (1,)), RankPart(OperationsBuilder().build())))
    with Fabric(leaf(2), clock="virtual") as running:
        run = running.run_job(job)
    times = run.times[0]
    assert times.finished_ps[0] > link_ps(MEBIBYTE)
    assert times.started_ps[1] == times.finished_ps[0]
    found = breakdowns(job, run.times)[0]
    assert found.exposed_ps == {"remote": times.finished_ps[0]}
    stretch, computed = critical_path(job, run.times).stretches
    assert (stretch.kind, stretch.rank, stretch.source) == (StretchKind.TRANSFER, 0, 1)
    assert (computed.kind, computed.duration_ps) == (StretchKind.COMPUTE, 500)


def test_a_read_ideally_takes_no_time():
    times = ideal_times(reading_job({0: [(1, MEBIBYTE), (1, 5)]}, 2))
    assert times[0].finished_ps.tolist() == [0, 0]


def test_readers_are_known_by_whom_they_read():
    job = reading_job({0: [(2, 5), (1, 7), (2, 9)], 1: [(2, 6)]}, 3)
    assert readers_of(job) == {1: Readers((0,), 7), 2: Readers((0, 1), 9)}
    assert job.parts[0].operations.transfer_numbers(Kind.READ).tolist() == [0, 0, 1]


def test_ranks_of_a_host_read_over_its_links():
    """A request takes the latency, the response as long as a message; nothing reaches the fabric."""
    rate_bps, latency_ps, size_bytes = 10**12, 500_000, 4 * MEBIBYTE
    topology = topologies.with_scale_up(leaf(4), 2, rate_bps, latency_ps)
    job = reading_job({0: [(1, size_bytes)], 3: [(2, 8)]}, 4)
    with Fabric(topology, clock="virtual") as running:
        run = running.run_job(job, range(4))
        stats = running.hosts.stats()
    transfer_ps = size_bytes * 8 * 10**12 // rate_bps
    assert run.times[0].finished_ps.tolist() == [transfer_ps + 2 * latency_ps]
    assert run.times[3].finished_ps.tolist() == [64 * 10**12 // rate_bps + 2 * latency_ps]
    assert [each["scale_up"]["sent_bytes"] for each in stats] == [0, size_bytes, 8, 0]
    assert [each["scale_up"]["received_bytes"] for each in stats] == [size_bytes, 0, 0, 8]
    assert sum(each["totals"]["data_bytes_sent"] for each in stats) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_reads_within_and_between_hosts_do_not_wait_for_each_other(workers):
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=LINK_BPS)
    topology = topologies.with_scale_up(spec, 2, 10**12, 0)
    both, alone = ([(1, MEBIBYTE), (2, MEBIBYTE)], [(2, MEBIBYTE)])
    with Fabric(topology, clock="virtual", workers=workers) as running:
        times = [running.run_job(reading_job({0: reads}, 4)).times[0].finished_ps.tolist() for reads in (both, alone)]
    assert times == [[8 * MEBIBYTE, *times[1]], times[1]]
    assert times[1][0] > link_ps(MEBIBYTE)


@pytest.mark.parametrize("name", ["goal", "chakra"])
def test_traces_of_other_tools_have_no_reads(tmp_path, name):
    job = reading_job({1: [(0, 8)]}, 2)
    with refused(
        TraceError,
        valid="compute, timer, send, receive, collective",
        problem="has no READs of a peer's memory",
    ):
        write_trace(job, tmp_path / "x.goal", name)
    assert not list(tmp_path.iterdir())


def test_a_read_that_is_not_done_is_described():
    job = reading_job({0: [(1, 8)]}, 2)
    started, nothing = np.zeros(1, np.int64), np.zeros(0, np.int64)
    times = [RankTimes(started, started + NEVER_PS), RankTimes(nothing, nothing)]
    assert unfinished(job, times) == "rank 0 at operation 0 'from 1' (read of 8 B of rank 1)"
