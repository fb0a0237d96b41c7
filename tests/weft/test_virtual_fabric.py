"""Fabrics in virtual time: right results, exact times, repeatable to the byte."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import IP
from scapy.layers.inet import UDP as UdpLayer
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

from tests.refusals import refused
from weft import Fabric, topologies
from weft.controller.features.acl import AclRule
from weft.errors import BadInputError, CheckFailedError
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import (
    AggregationSection,
    ControlSection,
    EcnSection,
    FaultsSection,
    TransportSection,
    load_scenario,
    parse_scenario,
)
from weft.topologies import serialisation_ps
from weft.topologies.round_trips import path_round_trip_ps
from weft.traffic.control import EndpointGroup

LAB = Path(__file__).parents[2] / "labs" / "01-allreduce" / "scenario.yaml"
SMALL = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
ALGORITHMS = ["ring", "in-network"]


def virtual_fabric(topology, **options):
    return Fabric(topology, clock="virtual", **options)


def two_hosts(**arguments):
    """A host on each of two leaves, with a spine between them: three switches, four links."""
    return topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1, **arguments)


# --- the lab


@pytest.fixture(scope="module")
def lab_runs(tmp_path_factory):
    """Two runs of the first lab."""
    scenario = load_scenario(LAB).model_copy(update={"clock": "virtual"})
    runs = []
    for number in range(2):
        result = run_scenario(scenario)
        directory = tmp_path_factory.mktemp(f"run{number}")
        result.save(directory)
        runs.append((result, (directory / "results.json").read_bytes()))
    return runs


def test_the_lab_runs_and_its_results_are_right(lab_runs):
    result, _ = lab_runs[0]
    assert result.ok
    assert [(each.algorithm, each.dtype) for each in result.collectives] == [
        (algorithm, dtype) for dtype in ("int32", "int32", "float32") for algorithm in ALGORITHMS
    ]
    assert result.flows[0].bytes_delivered == 7 * 256 * 1024
    assert result.planes[0].ecn_marked_packets > 0
    assert result.planes[0].largest_queue_port == "p0l0:1"
    assert [hop.switch for hop in result.int_paths[0].hops][-1] == "p0l0"
    assert result.cnps > 0
    assert result.retransmissions == 0
    assert result.drops == {}
    assert result.lateness is None
    assert result.made_by.clock == "virtual"


def test_two_runs_write_the_same_file(lab_runs):
    assert lab_runs[0][1] == lab_runs[1][1]


def test_times_of_the_wall_clock_stand_in_a_file_of_their_own(lab_runs, tmp_path):
    lab_runs[0][0].save(tmp_path)
    assert set(json.loads((tmp_path / "wall_times.json").read_text())) >= {"fabric_up", "all"}
    assert b"wall" not in lab_runs[0][1]


# --- repeatability


def faulty(seed):
    scenario = {
        "clock": "virtual",
        "seed": seed,
        "fabric": SMALL,
        "faults": {"loss": 0.01, "duplicate": 0.01},
    }
    traffic = [{"collective": "allreduce", "sizes": ["32KiB"]}, {"permutation": "16KiB"}]
    return run_scenario(parse_scenario(scenario | {"traffic": traffic}))


def test_faults_are_the_seeds(tmp_path):
    first, again, other = faulty(3), faulty(3), faulty(4)
    assert first.as_dict() == again.as_dict()
    assert first.ok
    assert other.ok
    assert first.planes[0].injected_losses > 0
    assert [each.time_ps for each in first.collectives] != [each.time_ps for each in other.collectives]


@pytest.mark.slow
def test_hash_order_decides_nothing(tmp_path):
    """Processes with other hash seeds give the same file."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "clock: virtual\nfabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 1}\n"
        "traffic: [{collective: allreduce, sizes: [8KiB]}]\n"
    )
    written = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "weft", "run", scenario, "--out", out],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        written.append((out / "results.json").read_bytes())
    assert written[0] == written[1]


def test_captures_repeat_and_have_virtual_stamps(tmp_path):
    captures = []
    for number in range(2):
        with virtual_fabric(two_hosts()) as fabric:
            fabric.capture("h0", 0, tmp_path / f"{number}.pcap")
            fabric.incast("h0", 4096)
        captures.append((tmp_path / f"{number}.pcap").read_bytes())
    assert captures[0] == captures[1]
    assert len(captures[0]) > 4096


def test_a_leafs_port_records_both_directions(tmp_path):
    with virtual_fabric(two_hosts()) as fabric:
        leaf = fabric.topology.hosts[0].nics[0]
        fabric.capture_port(leaf.switch, leaf.switch_port, tmp_path / "port.pcap")
        fabric.capture("h0", 0, tmp_path / "host.pcap")
        fabric.incast("h0", 4096)
        with refused(BadInputError, valid="1 to 2", problem="port 99"):
            fabric.capture_port(leaf.switch, 99, tmp_path / "none.pcap")
    of_port, of_host = (sorted(map(bytes, rdpcap(str(tmp_path / name)))) for name in ("port.pcap", "host.pcap"))
    assert of_port == of_host
    assert len(of_port) >= 5


# --- exact times

ETHERNET, IPV4, UDP, BTH, RETH, AETH, IMMEDIATE, ICRC, INT_SHIM = 14, 20, 8, 12, 16, 4, 4, 4, 46


@pytest.mark.parametrize("telemetry", [False, True])
@pytest.mark.parametrize("rate_bps", [10 * 10**9, 400 * 10**9])
@pytest.mark.parametrize("packets", [1, 2, 3, 40])
def test_a_single_flow_takes_what_the_formula_says(packets, rate_bps, telemetry):
    """Store and forward over H links of rate R and delay d, frames f_1 … f_n, an acknowledgement of a bytes:

    the last bit of the last frame leaves the first link after Σ f_i/R. Each of the other H − 1 links is free for it at
    the latest when the longest frame has passed once more, so data takes Σ f_i/R + (H − 1)·max f_i/R + H·d, and the
    acknowledgement, alone on its way, H·(a/R + d).
    """
    mtu_bytes, delay_ps, links = 1024, 1_000_000, 4
    outer = ETHERNET + IPV4 + UDP + BTH + ICRC + (INT_SHIM if telemetry else 0)
    frames = [outer + mtu_bytes] * packets
    frames[0] += RETH
    frames[-1] += IMMEDIATE
    sent_ps = [serialisation_ps(frame, rate_bps) for frame in frames]
    data_ps = sum(sent_ps) + (links - 1) * max(sent_ps) + links * delay_ps
    acknowledgement_ps = links * (serialisation_ps(outer + AETH, rate_bps) + delay_ps)

    topology = two_hosts(host_rate_bps=rate_bps, delay_ps=delay_ps)
    with virtual_fabric(topology, mtu_bytes=mtu_bytes, int_telemetry=telemetry) as fabric:
        flow = fabric.incast("h0", packets * mtu_bytes)
    assert flow.time_ps == data_ps + acknowledgement_ps


AGGREGATION_FRAME, AGGREGATED_BYTES = 342, 256


@pytest.mark.parametrize("spines", [0, 1])
@pytest.mark.parametrize("size_bytes", [1 << 12, 1 << 18])
def test_an_in_network_all_reduce_takes_what_the_formula_says(size_bytes, spines):
    """S/B and latency: P packets of s each leave every host back to back, and the last one completes the last sum,

    which with its result crosses H links up and down, stored and forwarded at each: P·s + (H − 1)·s + H·d.
    """
    rate_bps, delay_ps = 10**11, 600_000
    topology = topologies.leaf_spine(
        planes=1,
        leaves=2 if spines else 1,
        spines=spines,
        hosts_per_leaf=2,
        host_rate_bps=rate_bps,
        delay_ps=delay_ps,
    )
    links = 4 if spines else 2
    frame_ps = serialisation_ps(AGGREGATION_FRAME, rate_bps)
    packets = size_bytes // AGGREGATED_BYTES
    inputs = [np.arange(size_bytes // 4, dtype=np.int32)] * len(topology.hosts)
    with virtual_fabric(topology, aggregation=AggregationSection(lanes=64)) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
    assert run.result.ok
    assert run.result.time_ps == (packets + links - 1) * frame_ps + links * delay_ps


@pytest.mark.parametrize("size_bytes", [1 << 20, 1 << 22])
@pytest.mark.parametrize("ack_interval", [1, 8])
def test_a_ring_all_reduce_is_bound_by_its_bytes(size_bytes, ack_interval):
    """2(n − 1)/n · S through each link in frames, an acknowledgement for each interval, and less than a round trip:

    the steps' latencies but the last one's pass while other pieces are on the line.
    """
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    ranks, piece_bytes = len(topology.hosts), 16 * 1024
    rate_bps = topology.hosts[0].nics[0].link.rate_bps
    sent_bytes = 2 * (ranks - 1) * size_bytes // ranks
    packets, pieces = sent_bytes // 1024, sent_bytes // piece_bytes
    outer = ETHERNET + INT_SHIM + IPV4 + UDP + BTH + ICRC
    inputs = [np.arange(size_bytes // 4, dtype=np.int32)] * ranks
    with virtual_fabric(topology, transport=TransportSection(ack_interval=ack_interval)) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        round_trip_ps = path_round_trip_ps(topology, fabric.lab.frame_bytes)
    assert run.result.ok
    data_ps = serialisation_ps(packets * (outer + 1024) + pieces * (RETH + IMMEDIATE), rate_bps)
    acknowledgements_ps = packets // ack_interval * serialisation_ps(outer + AETH, rate_bps)
    line_ps = data_ps + acknowledgements_ps
    assert line_ps < run.result.time_ps < line_ps + round_trip_ps


def test_an_incast_fills_the_receivers_link():
    """The senders' windows meet at one port, whose link is then never idle: all bytes at line rate and a round trip."""
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=5)
    size_bytes = 1 << 20
    with virtual_fabric(topology, int_telemetry=False) as fabric:
        flows = fabric.incast("h0", size_bytes)
        switches = fabric.lab.switch_stats()["switches"]
    link = topology.hosts[0].nics[0].link
    port = switches["p0l0"]["ports"]["1"]["transmit"]
    line_ps = serialisation_ps(port["transmitted"]["bytes"], link.rate_bps)
    frame_ps = serialisation_ps(1200, link.rate_bps)
    assert line_ps < flows.time_ps < line_ps + 4 * (link.delay_ps + frame_ps)
    assert port["tail_dropped"]["packets"] == 0


# --- what else a fabric does


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_three_tiers_over_ipv6_with_losses(algorithm):
    topology = topologies.fat_tree(pods=2, leaves_per_pod=1, spines_per_pod=1, hosts_per_leaf=2)
    inputs = [np.arange(4000, dtype=np.int32) * (rank + 1) for rank in range(4)]
    with virtual_fabric(topology, ip_version=6, faults=FaultsSection(loss=0.01)) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, algorithm))
        summary = fabric.summary()
    assert run.result.ok
    assert summary.planes[0].injected_losses > 0
    assert run.result.retransmissions > 0


def test_control_latency_delays_control_and_not_data():
    times = {}
    for latency_ps in (0, 10**9):
        control = ControlSection(latency=latency_ps)
        with virtual_fabric(two_hosts(), control=control) as fabric:
            up_ps = fabric.lab.partitions.now_ps
            times[latency_ps] = fabric.incast("h0", 65536).time_ps
            before_ps = fabric.lab.partitions.now_ps
            fabric.lab.controller.read_counters()
            assert fabric.lab.partitions.now_ps > before_ps if latency_ps else up_ps == 0
    assert times[0] == times[10**9]


def test_a_link_that_fails_is_routed_around():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
    with virtual_fabric(topology) as fabric:
        fabric.lab.controller.link_down(fabric.topology.link_between("p0l0", "p0s0"))
        assert fabric.incast("h0", 65536).bytes_delivered == 65536
        ports = fabric.lab.switch_stats()["switches"]["p0s0"]["ports"]
        assert ports["1"]["transmit"]["transmitted"]["packets"] == 0


def test_marks_reach_the_senders():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    with virtual_fabric(topology, ecn=EcnSection(kmin=5_000, kmax=25_000, pmax=0.2)) as fabric:
        fabric.incast("h0", 262144)
        summary = fabric.summary()
    assert summary.planes[0].ecn_marked_packets > 0
    assert summary.cnps > 0


def test_a_run_that_cannot_end_fails_after_its_virtual_time():
    """A switch that no longer forwards returns nothing: retries run out, or the time does."""
    with virtual_fabric(two_hosts()) as fabric:
        fabric.lab.controller.link_down(fabric.topology.link_between("p0l0", "p0s0"))
        begun_ps = fabric.lab.partitions.now_ps
        with refused(CheckFailedError, problem="run 1"):
            fabric.incast("h0", 4096, timeout_s=0.001)
        assert fabric.lab.partitions.now_ps - begun_ps <= 10**9


def test_two_fabrics_live_in_one_process():
    with virtual_fabric(two_hosts()) as first, virtual_fabric(two_hosts()) as second:
        assert first.incast("h0", 4096).time_ps == second.incast("h0", 4096).time_ps


def test_a_fabric_runs_inside_a_running_event_loop():
    """As in a notebook, whose cells run in one."""

    async def cell():
        with virtual_fabric(two_hosts()) as fabric:
            return fabric.incast("h0", 4096).time_ps

    with virtual_fabric(two_hosts()) as fabric:
        assert asyncio.run(cell()) == fabric.incast("h0", 4096).time_ps


def test_a_packet_reaches_the_controller_from_another_switch_to_the_picosecond():
    """Out of a leaf by packet-out, over one link, and in from the spine, whose access list punts it."""
    latency_ps, delay_ps, rate_bps = 10**8, 10**6, 10**10
    topology = two_hosts(host_rate_bps=rate_bps, delay_ps=delay_ps)
    rule = AclRule(priority=10, action="punt", ether_type=0x0800, protocol=17)
    frame = bytes(
        Ether(dst=topology.switch("p0s0").mac) / IP(src="10.0.0.1", dst="10.0.1.1") / UdpLayer(dport=9) / bytes(50)
    )

    with virtual_fabric(topology, control=ControlSection(latency=latency_ps)) as fabric:
        controller = fabric.lab.controller
        controller.set_acl([rule])
        begun_ps = fabric.lab.partitions.now_ps
        controller.packet_out("p0l0", topology.switch("p0l0").fabric_ports[0].number, frame)
        packet = next(controller.packet_ins())
        duration_ps = fabric.lab.partitions.now_ps - begun_ps
    assert packet.switch == "p0s0"
    assert packet.payload == frame
    assert duration_ps == latency_ps + serialisation_ps(len(frame), rate_bps) + delay_ps


def test_packets_that_the_controller_has_no_room_for_are_in_the_results(monkeypatch):
    monkeypatch.setattr("weft.controller.packet_ins.PACKET_QUEUE_LENGTH", 2)
    topology = two_hosts()
    frame = bytes(Ether(dst=topology.switch("p0s0").mac) / IP() / UdpLayer(dport=9) / bytes(50))

    with virtual_fabric(topology) as fabric:
        controller = fabric.lab.controller
        controller.set_acl([AclRule(priority=10, action="punt", ether_type=0x0800, protocol=17)])
        for _ in range(5):
            controller.packet_out("p0l0", topology.switch("p0l0").fabric_ports[0].number, frame)
        controller.call(asyncio.sleep(1e-3))
        assert dict(controller.dropped_packet_ins) == {"p0s0": 3}
        summary = fabric.summary()
    assert summary.as_dict()["dropped_packet_ins"] == 3


def test_a_refused_command_names_the_host():
    with virtual_fabric(two_hosts()) as fabric:
        hosts: EndpointGroup = fabric.hosts
        with refused(Exception, problem="the endpoint of h1: pcap: plane"):
            hosts.capture(1, 5, None)
        assert len(hosts.stats()) == 2


# --- commands


def weft(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "weft", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_collective_prints_its_table_in_virtual_time():
    done = weft("collective", "allreduce", "--clock", "virtual", "--sizes", "4K", "--leaves", 2, "--spines", 1)
    assert done.returncode == 0, done.stderr
    assert "in-network" in done.stdout
    assert "lateness" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--target", "bmv2"], "real time only"),
        (["lab"], "no prompt"),
    ],
)
def test_what_the_virtual_clock_does_not_have_is_refused(arguments, words):
    command, *options = arguments
    done = weft(command, LAB, "--clock", "virtual", *options)
    assert done.returncode == 4
    assert words in done.stderr
