"""Bolt on a fabric: how soon senders of an incast hear of the queue, how long it gets, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

from weft import BadInputError, Fabric, topologies
from weft.results.run_result import RunResult
from weft.run.runner import Captures, run_scenario
from weft.run.spec import run_spec
from weft.scenario import TransportSection, parse_scenario
from weft.traffic.layers import BTH, SwitchNotification
from weft.traffic.patterns import Flow
from weft.wire.headers.notification import FIRST_WINDOW, LAST_WINDOW

WIDE = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 9, "host_rate": "100Gb/s", "fabric_rate": "400Gb/s"}
SMALL = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}
INCAST = {"incast": "h0", "bytes_per_sender": "256KiB"}


def run(
    congestion_control: str, item: dict[str, Any] = INCAST, directory: Path | None = None, **more: Any
) -> RunResult:
    transport = {"congestion_control": congestion_control, **more.pop("transport", {})}
    tree = {"clock": "virtual", "fabric": WIDE, "hash_seed": 1, "transport": transport, "traffic": [item], **more}
    captures = None if directory is None else Captures(directory)
    return run_scenario(run_spec(parse_scenario(tree, units_required=True)), directory=directory, captures=captures)


def queue_of(result: RunResult) -> int:
    return max(plane.largest_queue_bytes for plane in result.planes)


def test_the_queue_of_an_incast_is_shorter_than_with_others() -> None:
    """All 17 flows begin with ten packets, as Swift's do; by default Bolt's begin at line rate, as in the paper."""
    transport = {"parameters": {"initial_window": 10}}
    bolt, swift = run("bolt", transport=transport), run("swift")
    assert queue_of(bolt) < 0.7 * queue_of(swift)
    [flows] = bolt.flows
    assert flows.bytes_delivered == 17 * 256 * 1024
    assert bolt.planes[0].ecn_marked_packets > 0
    assert bolt.drops == {}
    assert flows.time_ps < 1.05 * swift.flows[0].time_ps


def test_a_burst_at_line_rate_is_drained_and_does_not_come_back() -> None:
    """The first window of each flow is out before anybody can hear of it; then the queue stays short."""
    result = run("bolt", {**INCAST, "bytes_per_sender": "1MiB"}, observe={"queues": "all"})
    table = result.observations.tables["queues"]
    deepest = result.planes[0].largest_queue_bytes
    late = [
        depth
        for time_ps, depth in zip(table["time_ps"], table["queue_bytes"], strict=True)
        if 600_000_000 < time_ps - table["time_ps"][0] < 1_000_000_000
    ]
    assert max(late) < deepest / 4


@pytest.mark.parametrize("ip_version", [4, 6])
def test_senders_hear_of_the_queue_within_a_round_trip(ip_version: int, tmp_path: Path) -> None:
    """A sender's first notification comes before the first acknowledgement, and names a packet that it has sent."""
    run("bolt", directory=tmp_path, ip_version=ip_version, observe={"captures": ["h9:0"]})
    [capture] = tmp_path.rglob("*.pcapng")
    frames = rdpcap(str(capture))
    told = [frame for frame in frames if SwitchNotification in frame]
    first_ack = next(frame for frame in frames if BTH in frame and frame[BTH].opcode == 0x11)
    sent = {
        (frame[BTH].dqpn, frame[BTH].psn): frame.time for frame in frames if BTH in frame and frame[BTH].opcode < 0x11
    }
    assert told[0].time < first_ack.time
    layer = IP if ip_version == 4 else IPv6
    for frame in told:
        note = frame[SwitchNotification]
        assert frame.time > sent[note.queue_pair, note.psn]
        assert note.rate_mbps in (100_000, 400_000)
        assert note.queue_bytes > 1024
        assert (frame[layer].tos if ip_version == 4 else frame[layer].tc) >> 2 == 48
        checksum = frame[UDP].chksum
        if ip_version == 6:
            del frame[UDP].chksum
            assert checksum == IPv6(bytes(frame[IPv6]))[UDP].chksum
    # A packet's sender is notified once, whatever queues it meets.
    named = [(frame[SwitchNotification].queue_pair, frame[SwitchNotification].psn) for frame in told]
    assert len(set(named)) == len(named)


BASE_ROUND_TRIP_PS = 4 * 3_000_000


def flows_of(count: int, **transport: Any) -> Fabric:
    """Return a fabric in which `count` hosts send to h0, with a round trip of 150 packets at line rate."""
    star = topologies.leaf_spine(
        planes=1,
        leaves=1,
        spines=0,
        hosts_per_leaf=count + 1,
        host_rate_bps=100 * 10**9,
        delay_ps=BASE_ROUND_TRIP_PS // 4,
    )
    section = TransportSection(congestion_control="bolt", **transport)
    return Fabric(star, clock="virtual", int_telemetry=False, hash_seed=1, transport=section)


def test_packets_say_that_they_are_of_a_first_or_last_window(tmp_path: Path) -> None:
    """FIRST until a packet is acknowledged; LAST in a window's worth of packets at the end, and in none before."""
    item = {"incast": "h0", "bytes_per_sender": "1MiB"}
    run("bolt", item, directory=tmp_path, fabric=SMALL, observe={"captures": ["h1:0"]})
    [capture] = tmp_path.rglob("*.pcapng")
    acknowledged, seen = False, []
    for frame in rdpcap(str(capture)):
        if BTH not in frame:
            continue
        if frame[BTH].opcode == 0x11:
            acknowledged = True
        elif frame[BTH].opcode < 0x11:
            seen.append(frame[BTH].resv6)
            assert bool(seen[-1] & FIRST_WINDOW) != acknowledged
    last = [bool(bits & LAST_WINDOW) for bits in seen]
    assert last == sorted(last)
    assert 10 < sum(last) < len(last) / 4
    assert set(seen) == {FIRST_WINDOW, 0, LAST_WINDOW}


def test_a_flow_of_one_window_leaves_no_place() -> None:
    """Both bits in each packet: nobody could have used its place a round trip later."""
    with flows_of(1) as fabric:
        fabric.run_flows("flows", [Flow(1, 0, 20_000)])
        assert departures(fabric) == 0
        fabric.run_flows("flows", [Flow(1, 0, 1_000_000)])
        assert 100 < departures(fabric) <= 256


def departures(fabric: Fabric) -> int:
    """Return how many places of flows that have ended the port to h0 has left."""
    nic = fabric.topology.hosts[0].nic(0)
    return fabric.read_register(nic.switch, "ramp_up_tokens", nic.switch_port)


def test_a_flow_takes_the_place_of_one_that_ends_without_waiting_for_the_link_to_be_idle() -> None:
    """Two flows share a link. When one ends, the other takes its half at once, rather than as supply is left over.

    That is a round trip sooner, and the queue is no longer.
    """

    def took_ps(**parameters: int) -> tuple[int, int]:
        with flows_of(2, parameters=parameters) as fabric:
            result = fabric.run_flows("flows", [Flow(1, 0, 3_000_000), Flow(2, 0, 4_000_000)])
            stats = fabric.lab.switch_stats()["switches"]["p0l0"]["ports"]["1"]["transmit"]
        assert result.retransmissions == 0
        return result.time_ps, stats["max_queue_depth_bytes"]

    with_it, deepest = took_ps()
    without, deepest_without = took_ps(proactive_ramp_up=0)
    assert with_it < without - BASE_ROUND_TRIP_PS
    assert deepest <= deepest_without


def test_a_flow_alone_fills_the_link() -> None:
    item = {"incast": "h0", "bytes_per_sender": "4MiB"}
    [flows] = run("bolt", item, fabric=SMALL).flows
    assert flows.time_ps < 1.15 * 4 * 2**20 * 8 * 10


def test_classes_without_bolt_keep_their_own_control() -> None:
    transport = {"classes": {2: {"congestion_control": "dcqcn"}}}
    result = run("bolt", transport=transport, scheduling={"classes": [2]})
    assert result.drops == {}


@pytest.mark.parametrize(
    ("more", "place", "problem"),
    [
        ({"clock": "real"}, "transport.congestion_control", "clock: real"),
        ({"fidelity": {"segment": "16KiB"}}, "transport.congestion_control", "fidelity.segment"),
        ({"transport": {"protocol": "mrc"}, "int": False}, "transport", "needs all packets of a flow on one path"),
        ({"routing": {"load_balancing": "round_robin"}}, "routing.load_balancing", "one path"),
        (
            {
                "traffic": [{"incast": "h0"}],
                "transport": {"congestion_control": "swift", "notification_threshold": "8KiB"},
            },
            "transport.notification_threshold",
            "no congestion control takes notifications",
        ),
    ],
)
def test_what_bolt_cannot_work_with_is_refused(more: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run("bolt", **more)
    assert place in str(caught.value)
    assert problem in str(caught.value)
