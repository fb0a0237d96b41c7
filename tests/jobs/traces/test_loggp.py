"""GOAL without contention takes what LogGP says (Alexandrov et al. 1995), within 1 %.

A message of s bytes is received o + L + (s - 1)·G + o after its sender has begun. Of a fabric of one switch, L is the
delay of both links, a byte with its headers on the first, and a packet on the second, as the switch stores packets; G
is what a byte takes on the first link, with its share of headers.
"""

import math
from itertools import pairwise

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import ReadOptions, read_trace, write_trace
from weft.topologies import serialisation_ps
from weft.traffic.header_sizes import AETH, IMMEDIATE, PAD, RETH, overhead_bytes
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart

HOSTS = 8
RATE_BPS = 100 * 10**9


@pytest.fixture(scope="module")
def fabric():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=HOSTS, host_rate_bps=RATE_BPS)
    with Fabric(topology, clock="virtual") as running:
        yield running


def message_ps(fabric: Fabric, size_bytes: int, overhead_ps: int, is_both_ways: bool = False) -> float:
    """The duration of a message. `is_both_ways`: its link also carries acknowledgements of what the sender receives."""
    options = fabric.options
    frame_bytes = overhead_bytes(options.ip_version, options.int_telemetry)
    delay_ps = fabric.topology.hosts[0].nics[0].link.delay_ps
    first_ps = serialisation_ps(frame_bytes + RETH + IMMEDIATE + PAD, RATE_BPS)
    stored_ps = serialisation_ps(frame_bytes + min(max(size_bytes, PAD), options.mtu_bytes), RATE_BPS)
    latency_ps = 2 * delay_ps + first_ps + stored_ps
    sent_bytes = frame_bytes + options.mtu_bytes
    if is_both_ways:
        sent_bytes += (frame_bytes + AETH) / options.transport.settings().ack_interval_in_force
    gap_ps = sent_bytes * 8e12 / RATE_BPS / options.mtu_bytes
    return 2 * overhead_ps + latency_ps + (size_bytes - 1) * gap_ps


def duration_ps(fabric: Fabric, path, overhead_ps: int) -> int:
    """The time of the last operation but sends: of those LogGP sees no acknowledgements."""
    job = read_trace(path, options=ReadOptions(send_overhead_ps=overhead_ps)).job
    times = fabric.run_job(job).times
    return max(
        int(own.finished_ps[part.operations.kind != Kind.SEND].max())
        for part, own in zip(job.parts, times, strict=True)
    )


@pytest.mark.parametrize("overhead_ps", [0, 1_500_000])
@pytest.mark.parametrize("sizes", [(1, 8, 64), (4096, 100_000), (4_000_000, 1, 3_000_000)])
def test_messages_one_after_the_other(fabric, tmp_path, sizes, overhead_ps):
    """Each host passes on what it has received, after 700 ns of computation."""
    ranks: list[list[str]] = [[] for _ in range(HOSTS)]
    hops = list(pairwise([rank % HOSTS for rank in range(len(sizes) * HOSTS + 1)]))
    for number, (source, destination) in enumerate(hops):
        size = sizes[number % len(sizes)]
        ranks[source] += [f"c{number}: calc 700", f"s{number}: send {size}b to {destination} tag {number}"]
        ranks[source].append(f"s{number} requires c{number}")
        if number:
            ranks[source].append(f"c{number} requires r{number - 1}")
        ranks[destination].append(f"r{number}: recv {size}b from {source} tag {number}")
    lines = [f"num_ranks {HOSTS}"]
    for rank, said in enumerate(ranks):
        lines += [f"rank {rank} {{", *said, "}"]
    (tmp_path / "x.goal").write_text("\n".join(lines))
    expected_ps = sum(
        700_000 + message_ps(fabric, sizes[number % len(sizes)], overhead_ps) for number in range(len(hops))
    )
    assert duration_ps(fabric, tmp_path / "x.goal", overhead_ps) == pytest.approx(expected_ps, rel=0.01)


@pytest.mark.parametrize(
    ("collective", "size_bytes", "messages", "message_bytes", "is_both_ways"),
    [
        # The longest way of a binomial tree has a message for each doubling.
        ("broadcast", 64, math.log2(HOSTS), 64, False),
        ("reduce", 64, math.log2(HOSTS), 64, False),
        ("allreduce", 8_000_000, 2 * (HOSTS - 1), 1_000_000, True),
        ("allgather", 8_000_000, HOSTS - 1, 1_000_000, True),
    ],
)
def test_collectives_as_messages(fabric, tmp_path, collective, size_bytes, messages, message_bytes, is_both_ways):
    builder = OperationsBuilder()
    builder.collective(0, 0)
    job = Job(
        collective,
        (RankPart(builder.build(), (), (0,)),) * HOSTS,
        (Group("all", tuple(range(HOSTS))),),
        (CollectiveCall(collective, size_bytes),),
    )
    write_trace(job, tmp_path / "x.goal", "goal")
    overhead_ps = 5_000_000
    expected_ps = messages * message_ps(fabric, message_bytes, overhead_ps, is_both_ways)
    assert duration_ps(fabric, tmp_path / "x.goal", overhead_ps) == pytest.approx(expected_ps, rel=0.01)
