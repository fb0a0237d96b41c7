"""The exercises of p4lang/tutorials with their own traffic, in virtual time: what their READMEs say one sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from bottleneck import FirstInFirstOut
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tutorial_clone import (
    CONTROLLERS,
    MILLISECOND_PS,
    NEEDS_CLONE,
    SECOND_PS,
    STATION,
    after,
    run,
    seen,
    stations,
    their,
)

from weft.clocks.user_controller import Controller
from weft.errors import WeftError
from weft.results.plain_hosts import PINGS, UDP_FLOWS
from weft.results.tcp import TCP as TCP_FLOWS
from weft.scenario.parsing import Change
from weft.traffic.extensions import load_class

pytestmark = NEEDS_CLONE
SOLUTION_AND_STARTER = pytest.mark.parametrize("solved", [True, False], ids=["solution", "starter"])
BROADCAST = "ff:ff:ff:ff:ff:ff"
MESSAGE = b"P4 is cool"
H1_MAC = "08:00:00:00:01:11"
BOTTLENECK_BPS = 500_000
IPERF = {"udp": ["h11->h22"], "rate": "1Mb/s", "packet": 1498}
"""As `iperf -c 10.0.2.22 -u`: datagrams of 1,470 B, which are frames of 1,512 B, at 1 Mb/s."""
IPERF_FRAME_BYTES = 1512
IPERF_INTERVAL_PS = IPERF_FRAME_BYTES * 8 * SECOND_PS // 10**6
IPERF_PS = 4 * SECOND_PS
IPERF_FRAMES = IPERF_PS // IPERF_INTERVAL_PS + 1
IPERF_END_BYTES = 62


def message(dst: str, dport: int = 1234, **ip: Any) -> Packet:
    """As the exercises' send.py make it."""
    return (
        Ether(src=H1_MAC, dst=BROADCAST) / IP(src="10.0.1.1", dst=dst, **ip) / TCP(dport=dport, sport=50000) / MESSAGE
    )


def answered(exercise: str, solved: bool, pings: str | Sequence[str]) -> dict[str, bool]:
    result = run(exercise, solved, [{"ping": pings, "count": 3}])
    return {f"{each.source}->{each.destination}": each.answered == 3 for each in result.of(PINGS)}


@SOLUTION_AND_STARTER
def test_basic_forwards(solved: bool) -> None:
    assert set(answered("basic", solved, "all").values()) == {solved}
    result = run("basic", solved, [stations(["h4"], {"h1": [(0, bytes(message("10.0.4.4")))]}, "1s")])
    came = [Ether(frame) for _, frame in seen(result, "h4")]
    assert [packet[Raw].load for packet in came] == [MESSAGE] * solved
    assert [packet[IP].ttl for packet in came] == [61] * solved, "three switches between pods"


def test_basic_tunnel_goes_by_the_tunnel_s_id_where_there_is_one() -> None:
    tunnelled = their("basic_tunnel", "myTunnel_header").MyTunnel(pid=0x0800, dst_id=2)
    plain = message("10.0.3.3")
    by_tunnel = Ether(src=H1_MAC, dst=BROADCAST, type=0x1212) / tunnelled / plain[IP]
    sent = [(0.1, bytes(message("10.0.2.2"))), (0.2, bytes(plain)), (0.3, bytes(by_tunnel))]
    result = run("basic_tunnel", True, [stations(["h2", "h3"], {"h1": sent}, "1s")])
    at_h2 = [frame for _, frame in seen(result, "h2")]
    at_h3 = [Ether(frame) for _, frame in seen(result, "h3")]
    assert [packet[IP].dst for packet in at_h3] == ["10.0.3.3"]
    assert [frame[12:14].hex() for frame in at_h2] == ["0800", "1212"]
    assert IP(at_h2[1][18:]).dst == "10.0.3.3", "the address of h3, but the tunnel to h2"
    assert at_h2[1][14:] == bytes(by_tunnel)[14:], "what is in the tunnel stays as it is"


def _through_the_bottleneck(
    exercise: str, solved: bool, probe: Packet
) -> tuple[list[float], list[tuple[float, Packet]]]:
    """Send a probe in each second while iperf sends for 4 s; return when they left, and what came when at h2."""
    times = [0.5 + second for second in range(12)]
    sent = {"h1": [(time_s, bytes(probe)) for time_s in times]}
    together = [stations(["h2"], sent, "20s"), {**IPERF, "duration": "4s"}]
    result = run(exercise, solved, [{"together": together}])
    (flow,) = result.of(UDP_FLOWS)
    assert flow.received == flow.sent == IPERF_FRAMES
    return times, [(time_ps / SECOND_PS, Ether(frame)) for time_ps, frame in seen(result, "h2")]


def _expected(times: list[float], probe_bytes: int) -> FirstInFirstOut:
    """Return the bottleneck as arithmetic has it: what iperf and the probes do to it.

    Iperf's last datagram is repeated, at longer and longer intervals, because its answer waits behind the queue.
    """
    load = [(number * IPERF_INTERVAL_PS, IPERF_FRAME_BYTES) for number in range(IPERF_FRAMES)]
    ends = [(IPERF_PS + (2**number - 1) * MILLISECOND_PS, IPERF_END_BYTES) for number in range(12)]
    probes = [(round(time_s * SECOND_PS), probe_bytes) for time_s in times]
    return FirstInFirstOut([*load, *ends, *probes], BOTTLENECK_BPS)


@SOLUTION_AND_STARTER
def test_ecn_marks_while_ten_packets_wait(solved: bool) -> None:
    probe = Ether(src="08:00:00:00:01:01", dst=BROADCAST) / IP(src="10.0.1.1", dst="10.0.2.2", tos=1)
    times, came = _through_the_bottleneck("ecn", solved, probe / UDP(dport=4321, sport=1234) / MESSAGE)
    marks = [packet[IP].tos for _, packet in came]
    frame_bytes = len(came[0][1])
    queue = _expected(times, frame_bytes)
    met = [queue.met(round(time_s * SECOND_PS), frame_bytes) for time_s in times]
    assert met[0] > 10, "after half a second of twice the link's rate"
    assert max(met) > 100
    assert met[-1] == 0
    assert marks == [3 if solved and depth >= 10 else 1 for depth in met]
    assert len(came) == len(times)


@SOLUTION_AND_STARTER
def test_mri_shows_the_path_and_its_queues(solved: bool) -> None:
    headers = their("mri", "receive")
    option = headers.IPOption_MRI(count=0, swtraces=[])
    probe = Ether(src="08:00:00:00:01:01", dst=BROADCAST) / IP(src="10.0.1.1", dst="10.0.2.2", options=option)
    times, came = _through_the_bottleneck("mri", solved, probe / UDP(dport=4321, sport=1234) / MESSAGE)
    traces = [packet[IP].options[0] for _, packet in came]
    if not solved:
        assert [trace.count for trace in traces] == [0] * len(times)
        return
    assert [[hop.swid for hop in trace.swtraces] for trace in traces] == [[2, 1]] * len(times)
    assert [trace.swtraces[0].qdepth for trace in traces] == [0] * len(times), "s2 is no bottleneck"
    frame_bytes = len(came[0][1]) - 8  # s2 adds its record behind the bottleneck
    queue = _expected(times, frame_bytes)
    left = [queue.left_behind(round(time_s * SECOND_PS), frame_bytes) for time_s in times]
    assert [trace.swtraces[1].qdepth for trace in traces] == left
    assert max(left) > 100


@SOLUTION_AND_STARTER
def test_source_routes_lead_along_their_ports(solved: bool) -> None:
    route = their("source_routing", "send").SourceRoute
    ports = [2, 3, 2, 2, 1]
    frame = bytes(Ether(src=H1_MAC, dst=BROADCAST, type=0x1234))
    frame += b"".join(bytes(route(bos=number == len(ports), port=port)) for number, port in enumerate(ports, 1))
    frame += bytes(IP(src="10.0.1.1", dst="10.0.2.2") / UDP(dport=4321, sport=1234))
    result = run("source_routing", solved, [stations(["h2"], {"h1": [(0, frame)]}, "1s")])
    came = [Ether(each) for _, each in seen(result, "h2")]
    assert [(packet.type, packet[IP].ttl) for packet in came] == [(0x0800, 59)] * solved


@SOLUTION_AND_STARTER
def test_calc_answers(solved: bool) -> None:
    header = their("calc", "calc").P4calc
    asked = [("1+1", 2), ("7-3", 4), ("12&10", 8), ("12|10", 14), ("12^10", 6), ("3-5", 2**32 - 2)]
    frames = []
    for number, (text, _) in enumerate(asked):
        sign = next(each for each in "+-&|^" if each in text)
        a, b = map(int, text.split(sign))
        question = header(op=sign, operand_a=a, operand_b=b)
        frames.append(
            (
                number / 100,
                bytes(Ether(src="08:00:00:00:01:01", dst="00:04:00:00:00:00", type=0x1234) / question / b" "),
            )
        )
    result = run("calc", solved, [stations([], {"h1": frames}, "1s")])
    answers = [header(frame[14:]).result for _, frame in seen(result, "h1")]
    assert answers == [expected for _, expected in asked] * solved


@SOLUTION_AND_STARTER
def test_load_balance_shares_out_flows(solved: bool) -> None:
    flows = [(number / 1000, number % 20) for number in range(200)]
    sent = []
    for time_s, flow in flows:
        packet = message("10.0.0.1")
        packet[TCP].sport = 50000 + flow
        sent.append((time_s, bytes(packet)))
    result = run("load_balance", solved, [stations(["h2", "h3"], {"h1": sent}, "1s")])
    got = {host: [Ether(frame)[TCP].sport for _, frame in seen(result, host)] for host in ("h2", "h3")}
    assert len(got["h2"]) + len(got["h3"]) == len(sent)
    assert not set(got["h2"]) & set(got["h3"]), "a flow's packets stay together"
    assert bool(got["h3"]) is solved
    assert got["h2"]


@SOLUTION_AND_STARTER
def test_qos_classes_by_protocol(solved: bool) -> None:
    head = Ether(src="08:00:00:00:01:01", dst=BROADCAST) / IP(src="10.0.1.1", dst="10.0.2.2", tos=1)
    sent = [(0.1, bytes(head / UDP(dport=4321, sport=1234) / MESSAGE)), (0.2, bytes(head / TCP() / MESSAGE))]
    result = run("qos", solved, [stations(["h2"], {"h1": sent}, "1s")])
    marks = [Ether(frame)[IP].tos for _, frame in seen(result, "h2")]
    assert marks == ([0xB9, 0xB1] if solved else [1, 1])


@SOLUTION_AND_STARTER
def test_multicast_reaches_the_group(solved: bool) -> None:
    inside = ["h1->h2", "h1->h3", "h2->h3", "h3->h1"]
    found = answered("multicast", solved, [*inside, "h1->h4"])
    assert found == {**dict.fromkeys(inside, solved), "h1->h4": False}, "h4 is not in the group that hears ARP"


@SOLUTION_AND_STARTER
def test_link_monitor_agrees_with_what_is_offered(solved: bool) -> None:
    headers = their("link_monitor", "probe_hdrs")
    probe = Ether(src=H1_MAC, dst=BROADCAST, type=0x812) / headers.Probe(hop_cnt=0)
    for port in (4, 1, 4, 1, 3, 2, 3, 2, 1):
        probe /= headers.ProbeFwd(egress_spec=port)
    sent = {"h1": [(0.5 + second, bytes(probe)) for second in range(5)]}
    flow = {"udp": ["h1->h4"], "rate": "12Mb/s", "packet": 1500, "duration": "6s"}
    result = run("link_monitor", solved, [{"together": [stations([], sent, "6s"), flow]}])
    came = [headers.Probe(frame[14:]) for _, frame in seen(result, "h1") if frame[12:14] == b"\x08\x12"]
    assert len(came) == 5
    for packet in came[1:]:
        hops = [layer for layer in _layers(packet) if isinstance(layer, headers.ProbeData)]
        if not solved:
            assert [(hop.port, hop.byte_cnt, hop.cur_time, hop.last_time) for hop in hops] == [(0, 0, 0, 0)] * 9
            continue
        assert [(hop.swid, hop.port) for hop in reversed(hops)] == [
            (1, 4), (4, 1), (2, 4), (3, 1), (1, 3), (3, 2), (2, 3), (4, 2), (1, 1)
        ]  # fmt: skip
        rates = {(hop.swid, hop.port): 8 * hop.byte_cnt / (hop.cur_time - hop.last_time) for hop in hops}
        loaded = {(1, 4), (4, 1)}
        probe_mbps = 8 * len(bytes(packet)) / 1e6
        for place, mbps in rates.items():
            # A second holds 990 or 991 frames of 1,514 B, and the probe itself.
            assert mbps == pytest.approx(12 if place in loaded else 0, abs=1514 * 8 / 1e6 + probe_mbps), place


def _layers(packet: Packet) -> list[Packet]:
    found = [packet]
    while found[-1].payload:
        found.append(found[-1].payload)
    return found


@SOLUTION_AND_STARTER
@pytest.mark.parametrize(("flow", "from_outside"), [("h1->h2", False), ("h1->h3", False), ("h3->h1", True)])
def test_the_firewall_blocks_connections_from_outside(flow: str, from_outside: bool, solved: bool) -> None:
    traffic = [{"tcp": [{"flow": flow, "size": "100KB"}], "dscp": 0}]
    if from_outside and solved:
        with pytest.raises(WeftError, match="connection timed_out"):
            run("firewall", solved, traffic)
        return
    (found,) = run("firewall", solved, traffic).of(TCP_FLOWS)
    assert found.bytes == 100_000


def controlled(name: str, **parameters: object) -> Change:
    section = {"class": f"{CONTROLLERS}:{name}", "parameters": parameters}
    return Change("controller", section, "--set")


@SOLUTION_AND_STARTER
def test_p4runtime_s_tunnels_count_what_enters_them(solved: bool) -> None:
    """The student writes the transit rule of the controller, no P4."""
    pings = [{"ping": ["h1->h2"], "count": 5}]
    chosen = controlled("Tunnels", transit=solved)
    (found,) = run("p4runtime", solved, pings, chosen).of(PINGS)
    assert found.answered == (5 if solved else 0)
    with after("p4runtime", solved, pings, chosen) as fabric:
        entered, left = (
            {
                (switch, tunnel): fabric.read_counter(switch, f"MyIngress.{name}", tunnel).packets
                for switch in ("s1", "s2")
                for tunnel in (100, 200)
            }
            for name in ("ingressTunnelCounter", "egressTunnelCounter")
        )
    answers = found.answered
    assert entered == {("s1", 100): 5, ("s1", 200): 0, ("s2", 100): 0, ("s2", 200): answers}
    assert left == {("s1", 100): 0, ("s1", 200): answers, ("s2", 100): answers, ("s2", 200): 0}


def test_flowcache_asks_for_each_flow_once_until_it_is_idle() -> None:
    log = load_class(f"{CONTROLLERS}:FlowCache", Controller).log  # type: ignore[attr-defined]
    log.clear()
    one = {"ping": ["h1->h2"], "count": 4, "interval": "1s"}
    later = {"script": {"h3": STATION}, "duration": "10s"}
    with after("flowcache", True, [one, later, one], controlled("FlowCache")) as fabric:
        packet_ins = [fabric.read_counter(name, "MyEgress.egressPktInCounter", 2).packets for name in ("s1", "s2")]
    there, back = ("10.0.1.1", "10.0.2.2"), ("10.0.2.2", "10.0.1.1")
    asked = [("packet-in", "s1", 1, *there), ("packet-in", "s2", 2, *there)]
    asked += [("packet-in", "s2", 1, *back), ("packet-in", "s1", 2, *back)]
    assert log[:4] == asked, "the first ping and its answer"
    assert sorted(log[4:8]) == [("idle", "s1")] * 2 + [("idle", "s2")] * 2, "after 3 s without a ping"
    assert log[8:12] == asked
    assert packet_ins == [2, 2]
