"""NCCL's model against times worked out by hand from its source, src/graph/tuning.cc and src/enqueue.cc of 2.30.7."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.nccl import FUNCTIONS, Cluster, NcclSettings, nccl_choice, nccl_times
from weft.traffic.nccl.cluster import GENERATIONS, Graph

GBPS = 10**9
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PLAIN = (Operation.SUM, DataType.FLOAT32)


def hopper_hosts(nodes):
    """Hosts of eight H100 with NVLinks of 450 GB/s, and a NIC of 400 Gb/s for each."""
    return Cluster(8 * nodes, nodes, (400 * GBPS,) * 8, 3600 * GBPS)


def lone_ranks(nodes):
    """Hosts of one rank and one NIC of 400 Gb/s."""
    return Cluster(nodes, nodes, (400 * GBPS,))


DOMAIN = Cluster(8, 1, (), 3600 * GBPS, has_switch=True)


@pytest.mark.parametrize(
    ("cluster", "ring", "channels"),
    [
        # NCCL counts 18 links of 20.6 GB/s: 370.8. 6 channels of 60 become 12 of 30, and a communicator has 24.
        (hopper_hosts(1), Graph(12, 30, 30), 24),
        # A NIC has 50 GB/s. Of 48 NVLinks hold 7 (336), of 45 they hold 8 (360), which no lower rate exceeds.
        (hopper_hosts(2), Graph(8, 45, 45), 16),
        # One channel of 48 becomes two of 24.
        (lone_ranks(8), Graph(2, 24, 24), 4),
        # 12.5 GB/s.
        (Cluster(4, 4, (100 * GBPS,)), Graph(1, 12, 12), 2),
        # 25 GB/s, 12 NVLinks of 20; Ampere tries 24 first.
        (Cluster(16, 2, (200 * GBPS,) * 8, 2400 * GBPS, settings=NcclSettings("ampere")), Graph(8, 24, 24), 16),
        (Cluster(16, 2, (GBPS,), settings=NcclSettings(channels=3, channel_rate=80 * GBPS)), Graph(3, 10, 10), 6),
        # Of 86 GB/s a NIC has one (688 together), of 45.1 two (721.6); 18 links of 40.1 hold 721.8.
        (
            Cluster(16, 2, (800 * GBPS,) * 8, 7200 * GBPS, settings=NcclSettings("blackwell")),
            Graph(16, 45.1, 45.1),
            32,
        ),
        # Beyond 45 GB/s and below 16 channels a communicator has four of each: 2 channels of 48.
        (
            Cluster(4, 4, (400 * GBPS,) * 2, settings=NcclSettings(channels=2, channel_rate=384 * GBPS)),
            Graph(2, 48, 48),
            8,
        ),
    ],
)
def test_channels_that_a_search_finds(cluster, ring, channels):
    assert cluster.ring() == ring
    assert cluster.channels == channels


def two_hosts(size):
    """All-reduce over two hosts of eight: 8 channels of 45 GB/s, 16 ranks, 30 steps, of which 2 cross the network."""
    ratio = 16 / 30
    return {
        ("ring", "ll"): (6.6 + 28 * 1.0 + 2 * 2.7, min(39.0, 180) * ratio),
        ("ring", "ll128"): (14.0 + 28 * 1.9 + 2 * 4.0, 8 * 36.7 * ratio),
        ("ring", "simple"): ((8.4 + 28 * 3.4 + 2 * 14.0) * (1.4 if size >= 64 * 16 * 16 else 1), 360 * ratio),
        ("tree", "ll"): (6.8 + 2 * (7 * 0.6 + 5.0), 39.0 / 2),
        ("tree", "ll128"): (14.0 + 2 * (7 * 1.25 + 8.5), 8 * 36.7 / 2),
        ("tree", "simple"): (8.4 + 2 * (7 * 4.0 + 14.0), 8 * 41.4 / 2),
    }


def sixteen_hosts(size):
    """The same over 16 hosts: 128 ranks, 254 steps, 30 of them across the network; four levels of trees."""
    ratio = 128 / 254
    return {
        ("ring", "ll"): (6.6 + 224 * 1.0 + 30 * 2.7, 20.4 * ratio),
        ("ring", "ll128"): (14.0 + 224 * 1.9 + 30 * 4.0, 8 * 36.7 * ratio),
        ("ring", "simple"): ((8.4 + 224 * 3.4 + 30 * 14.0) * (1.4 if size >= 64 * 16 * 128 else 1), 360 * ratio),
        ("tree", "ll"): (6.8 + 2 * (7 * 0.6 + 4 * 5.0), 20.4 / 2),
        ("tree", "ll128"): (14.0 + 2 * (7 * 1.25 + 4 * 8.5), 8 * 29.0 / 2),
        ("tree", "simple"): (8.4 + 2 * (7 * 4.0 + 4 * 14.0), 8 * 36.0 / 2),
    }


def eight_lone_ranks(size):
    """Eight hosts of one rank, two channels of 24 GB/s: no step within hosts, trees plain (0.85)."""
    ratio = 8 / 14
    return {
        ("ring", "ll"): (6.6 + 14 * 5.0, 20.4 * ratio),
        ("ring", "ll128"): (14.0 + 14 * 8.5, 48 * 0.92 * ratio),
        ("ring", "simple"): ((8.4 + 14 * 14.0) * (1.4 if size >= 64 * 4 * 8 else 1), 48 * ratio),
        ("tree", "ll"): (6.8 + 2 * 3 * 5.0, 48 * 0.92 / 3.8 * 0.85 / 2),
        ("tree", "ll128"): (14.0 + 2 * 3 * 8.5, 48 * 0.92 * 120 / 128 * 0.85 / 2),
        ("tree", "simple"): (8.4 + 2 * 3 * 14.0, 48 * 0.92 * 0.85 / 2),
    }


# treeCorrectionFactor of src/graph/tuning.cc at the sizes below.
CORRECTIONS = {
    1 * KIB: {"ll": 0.9, "ll128": 1.0, "simple": 0.9},
    64 * KIB: {"ll": 0.6, "ll128": 0.6, "simple": 0.6},
    1 * MIB: {"ll": 0.5, "ll128": 0.6, "simple": 0.5},
    32 * MIB: {"ll": 1.0, "ll128": 0.9, "simple": 0.7},
    1 * GIB: {"ll": 1.0, "ll128": 1.0, "simple": 1.0},
}


@pytest.mark.parametrize("size", CORRECTIONS)
@pytest.mark.parametrize(
    ("cluster", "by_hand"),
    [(hopper_hosts(2), two_hosts), (hopper_hosts(16), sixteen_hosts), (lone_ranks(8), eight_lone_ranks)],
)
def test_all_reduces_take_the_times_of_the_source(cluster, by_hand, size):
    expected = {}
    for (algorithm, protocol), (latency, bandwidth) in by_hand(size).items():
        factor = CORRECTIONS[size][protocol] if algorithm == "tree" else 1
        expected[algorithm, protocol] = latency + size / (1000 * bandwidth * factor)
    found = nccl_times(cluster, "allreduce", size, *PLAIN)
    assert found == pytest.approx(expected)
    assert nccl_choice(cluster, "allreduce", size, size, *PLAIN).predicted_ps == pytest.approx(
        min(expected.values()) * 1e6, abs=1
    )


@pytest.mark.parametrize(
    ("cluster", "sizes"),
    [
        (
            hopper_hosts(2),
            {
                KIB: "TREE LL 0",
                64 * KIB: "TREE LL 15",
                512 * KIB: "TREE LL128 15",
                32 * MIB: "RING LL128 15",
                GIB: "RING SIMPLE 15",
            },
        ),
        (hopper_hosts(16), {KIB: "TREE LL 0", 512 * KIB: "TREE LL128 15", 256 * MIB: "TREE SIMPLE 15"}),
        (hopper_hosts(1), {KIB: "RING LL 0", 4 * MIB: "RING LL128 23", GIB: "RING SIMPLE 23"}),
        (lone_ranks(8), {KIB: "TREE LL 0", 512 * KIB: "TREE LL128 3", 4 * MIB: "RING LL128 3", GIB: "RING SIMPLE 3"}),
        (DOMAIN, {KIB: "RING LL 0", 4 * MIB: "NVLS SIMPLE 15", GIB: "NVLS SIMPLE 15"}),
    ],
)
def test_what_nccl_chooses_by_size_and_nodes(cluster, sizes):
    found = {size: nccl_choice(cluster, "allreduce", size, size, *PLAIN).log for size in sizes}
    expected = {}
    for size, words in sizes.items():
        algorithm, protocol, last = words.split()
        expected[size] = f"AllReduce: {size} Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..{last}}}"
    assert found == expected


def test_all_gathers_and_reduce_scatters_of_single_ranks_may_take_pat():
    """bandwidth 0.75 of two channels of 24 GB/s; latency 8 + 3·14/3.5 + 8·2.8."""
    for name in ("allgather", "reducescatter"):
        times = nccl_times(lone_ranks(8), name, MIB, *PLAIN)
        assert times["pat", "simple"] == pytest.approx(8 + 3 * 14 / 3.5 + 8 * 2.8 + MIB / (1000 * 48 * 0.75))
        assert times["ring", "simple"] == pytest.approx(8.4 + 7 * 14 + MIB / (1000 * 48 * 8 / 7))
        assert nccl_choice(lone_ranks(8), name, MIB, MIB // 8, *PLAIN).algorithm == "pat"
        assert ("pat", "simple") not in nccl_times(hopper_hosts(2), name, MIB, *PLAIN)
    average = (Operation.AVERAGE, DataType.FLOAT32)
    assert ("pat", "simple") not in nccl_times(lone_ranks(8), "reducescatter", MIB, *average)


def test_broadcasts_count_one_latency_if_all_rings_are_alike_and_one_a_rank_if_not():
    """Rings of hosts with several NICs go through the ranks in different orders."""
    alike = nccl_times(lone_ranks(8), "broadcast", MIB, *PLAIN)
    assert alike["ring", "simple"] == pytest.approx(8.4 + 14.0 + MIB / (1000 * 48))
    assert alike["ring", "ll"] == pytest.approx(6.6 + 2.7 + MIB / (1000 * 20.4))
    different = nccl_times(hopper_hosts(2), "reduce", MIB, *PLAIN)
    assert different["ring", "simple"] == pytest.approx(8.4 + 16 * 14.0 + MIB / (1000 * 360))
    assert different["ring", "ll"] == pytest.approx(6.6 + 16 * 2.7 + MIB / (1000 * 39.0))
    assert set(alike) == {("ring", "ll"), ("ring", "ll128"), ("ring", "simple")}


def test_reductions_by_the_switches_of_a_node():
    """8 channels of 40 GB/s, 0.85 of it, 7/8 of the channels, two operations at once."""
    bus = 8 * 40 * 0.85 * 7 / 8 * 2
    times = nccl_times(DOMAIN, "allreduce", MIB, *PLAIN)
    assert times["nvls", "simple"] == pytest.approx(25 + MIB / (1000 * bus * 8 / 14))
    assert ("nvls", "simple") not in nccl_times(DOMAIN, "allreduce", MIB, Operation.MAX, DataType.FLOAT32)
    assert ("nvls", "simple") in nccl_times(DOMAIN, "allreduce", MIB, Operation.MAX, DataType.FLOAT16)
    assert ("nvls", "simple") not in nccl_times(DOMAIN, "allreduce", MIB, Operation.SUM, DataType.INT8)
    gathered = nccl_times(DOMAIN, "allgather", MIB, Operation.SUM, DataType.INT8)["nvls", "simple"]
    assert gathered == pytest.approx(25 + MIB / (1000 * bus / 2 * 7 / 8))
    older = Cluster(8, 1, (), 2400 * GBPS, has_switch=True, settings=NcclSettings("ampere"))
    assert ("nvls", "simple") not in nccl_times(older, "allreduce", MIB, *PLAIN)


def switched_hosts(nodes, accelerator="hopper", nic=400, inside=3600):
    rates = (nic * GBPS,) * 8
    return Cluster(8 * nodes, nodes, rates, inside * GBPS, has_switch=True, settings=NcclSettings(accelerator))


def test_channels_of_switches_have_a_nic_each_and_take_a_heads_link_twice():
    # 370.8 GB/s hold 7 + 1 channels of 45 or 42, and 8 + 1 of 40. A NIC of 50 GB/s then carries 48.
    assert switched_hosts(2).nvls() == Graph(8, 40, 48)
    # 721.8 GB/s hold 8 + 1 of 80, a NIC 96 of its 100 GB/s.
    assert switched_hosts(4, "blackwell", 800, 7200).nvls() == Graph(8, 80, 96)
    # A NIC of 25 GB/s bounds both: 24.
    assert switched_hosts(2, nic=200).nvls() == Graph(8, 24, 24)
    assert Cluster(16, 2, (400 * GBPS,), 3600 * GBPS, has_switch=True).nvls().channels == 1
    assert hopper_hosts(2).nvls().channels == switched_hosts(2, "ampere").nvls().channels == 0


@pytest.mark.parametrize(
    ("nodes", "bus", "hops"),
    [
        (2, 8 * 57.7, 1),  # 40 · 0.85 · 7/8 · 2 = 59.5 within, 96 between, 57.7 of the table
        (4, 8 * 45.5, 2),  # 59.5, 48, 45.5
        (16, 8 * 45.5, 4),
    ],
)
def test_all_reduces_over_hosts_with_switches_may_take_trees_between_them(nodes, bus, hops):
    ranks = 8 * nodes
    times = nccl_times(switched_hosts(nodes), "allreduce", GIB, *PLAIN)
    expected = 25 + 2 * hops * 20.9 + GIB / (1000 * bus * ranks / (2 * (ranks - 1)))
    assert times["nvls-tree", "simple"] == pytest.approx(expected)
    assert ("nvls", "simple") not in times
    assert ("nvls-tree", "simple") not in nccl_times(hopper_hosts(nodes), "allreduce", GIB, *PLAIN)
    assert ("nvls-tree", "simple") not in nccl_times(switched_hosts(nodes), "allgather", GIB, *PLAIN)
    chosen = nccl_choice(switched_hosts(nodes), "allreduce", GIB, GIB, *PLAIN)
    assert chosen.algorithm == "nvls-tree"
    assert "Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}" in chosen.log


def test_trees_of_blackwells_switches_have_the_correction_of_trees():
    """80 · 0.74 · 7/8 · 2 = 103.6 within, 192 between, 96 of the table; half of it at 1 MiB, all beyond 512 MiB."""
    found = [nccl_times(switched_hosts(2, "blackwell", 800, 7200), "allreduce", size, *PLAIN) for size in (MIB, GIB)]
    bandwidth = 8 * 96 * 16 / 30
    times = [each["nvls-tree", "simple"] for each in found]
    assert times[0] == pytest.approx(25 + 2 * 20.9 + MIB / (1000 * bandwidth * 0.5))
    assert times[1] == pytest.approx(25 + 2 * 20.9 + GIB / (1000 * bandwidth))


@st.composite
def clusters(draw):
    nodes, each = draw(st.integers(1, 64)), draw(st.sampled_from([1, 2, 4, 8]))
    rates = draw(st.lists(st.sampled_from([10, 100, 200, 400, 800]), min_size=1, max_size=8))
    inside = draw(st.sampled_from([2400, 3600, 7200])) * GBPS if each > 1 else None
    known = NcclSettings(draw(st.sampled_from(GENERATIONS)), draw(st.sampled_from(["intel", "amd"])))
    has_switch = inside is not None and draw(st.booleans())
    return Cluster(nodes * each, nodes, tuple(rate * GBPS for rate in rates), inside, has_switch, known)


@given(
    clusters(),
    st.sampled_from(sorted(FUNCTIONS)),
    st.integers(1, 1 << 36),
    st.sampled_from(["", "ll", "ll128", "simple"]),
)
@settings(max_examples=300, deadline=None)
def test_the_choice_is_the_shortest_time(cluster, collective, size, protocol):
    if cluster.ranks == 1 and protocol not in ("", "simple"):
        return
    times = nccl_times(cluster, collective, size, *PLAIN)
    allowed = {key: time for key, time in times.items() if protocol in ("", key[1])}
    choice = nccl_choice(cluster, collective, size, size, *PLAIN, protocol)
    assert allowed[choice.algorithm, choice.protocol] == min(allowed.values())
    assert choice.predicted_ps == round(min(allowed.values()) * 1e6)
    assert 1 <= choice.channels <= cluster.channels <= 64
    assert all(time >= 0 for time in times.values())


def test_what_nccl_does_not_choose_is_refused():
    with refused(ValueError, valid="allreduce, allgather, reducescatter, broadcast, reduce", problem="alltoall"):
        nccl_times(hopper_hosts(2), "alltoall", MIB, *PLAIN)
    with pytest.raises(ValueError, match="NCCL has no and of int32"):
        nccl_times(hopper_hosts(2), "allreduce", MIB, Operation.AND, DataType.INT32)
    with pytest.raises(ValueError, match="int16"):
        nccl_times(hopper_hosts(2), "allreduce", MIB, Operation.SUM, DataType.INT16)
    with refused(ValueError, valid="1 to 2", problem="3 nodes of 2 ranks"):
        Cluster(2, 3, (GBPS,))
    with refused(ValueError, valid="one or more", problem="without NICs"):
        Cluster(2, 2, ())
