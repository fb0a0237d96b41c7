"""UDP sources and sinks on a cable: rates, bursts, losses, order."""

import struct
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether

from tests.hosts.ip_hosts import RATE_BPS, IpHost, cabled_hosts, is_balanced, lone_host
from weft.engine import _core

MS = 1_000_000_000


def started(a: IpHost, b: IpHost, **options: Any) -> tuple[_core.UdpSource, _core.UdpSink]:
    sink = _core.UdpSink(b.ip, b.executor, source=a.address(), port=5001)
    defaults: dict[str, Any] = {"rate_bps": 10**9, "packet_bytes": 1500, "duration_ps": MS}
    source = _core.UdpSource(a.ip, a.executor, destination=b.address(), port=5001, **(defaults | options))
    sink.start()
    source.start()
    return source, sink


def test_a_constant_rate_is_that_of_frames() -> None:
    a, b = cabled_hosts()
    source, sink = started(a, b)
    a.engine.run()
    # The first ones wait for the neighbour's answer, which takes less than three datagrams' times.
    packets = -(-MS // (1514 * 8000))
    assert (source.packets(), source.not_sent_packets(), source.was_confirmed()) == (packets, 0, True)
    stats: dict[str, int] = dict(sink.stats())
    assert stats.pop("packets") == packets
    assert stats.pop("ip_bytes") == packets * 1500
    assert not any(stats.values())
    delays = sink.delays_ps()
    assert delays.size == packets
    assert np.all(delays[3:] == 1_000_000 + 1514 * 800)
    assert is_balanced(a.engine)


def test_what_a_source_sends_above_the_link_is_dropped_at_its_own_queue() -> None:
    a, b = cabled_hosts(queue_packets=10)
    source, sink = started(a, b, rate_bps=2 * RATE_BPS)
    a.engine.run()
    assert source.not_sent_packets() > 0
    received = sink.stats()["packets"]
    assert received + source.not_sent_packets() == source.packets()
    assert received == pytest.approx(MS / (1514 * 800), rel=0.05)


@pytest.mark.parametrize("bursts", ["exponential", "pareto"])
def test_bursts_are_drawn_from_the_seed_and_have_their_share(bursts: str) -> None:
    def sent(stream: str) -> int:
        a, b = cabled_hosts()
        options = {"bursts": bursts, "mean_on_ps": MS // 20, "mean_off_ps": MS // 10, "pareto_shape": 3.0}
        source, _ = started(a, b, duration_ps=100 * MS, stream=stream, **options)
        a.engine.run()
        return source.packets()

    assert sent("x") == sent("x") != sent("y")
    always = 100 * MS / (1514 * 8000)
    assert sent("x") == pytest.approx(always / 3, rel=0.15)


def test_a_sink_that_is_away_is_given_up() -> None:
    a, b = cabled_hosts()
    source = _core.UdpSource(
        a.ip, a.executor, destination=b.address(), port=9, rate_bps=10**9, packet_bytes=100, duration_ps=MS
    )
    source.start()
    a.engine.run()
    assert source.status()["state"] == "finished"
    assert not source.was_confirmed()
    assert b.ip.stats()["closed_port_packets"] == source.packets() + 12
    assert is_balanced(a.engine)


def test_what_finds_no_neighbour_is_not_sent() -> None:
    """Nobody answers for the destination's MAC: some wait in vain, the rest finds too many waiting."""
    lone = lone_host()
    source = _core.UdpSource(
        lone.host.ip,
        lone.host.executor,
        destination="10.0.0.2",
        port=5001,
        rate_bps=10**9,
        packet_bytes=1500,
        duration_ps=MS * 2,
    )
    source.start()
    lone.host.engine.run()
    assert source.status()["state"] == "finished"
    assert source.packets() == source.not_sent_packets() > 101
    asked = lone.said()
    assert len(asked) > 0
    assert all(frame.haslayer(ARP) for frame in asked)
    stats = lone.host.ip.stats()
    assert stats["unresolved"]["packets"] == source.packets() + 12, "and the ends"
    assert stats["unresolved"]["bytes"] == source.packets() * 1500 + 12 * 48
    assert is_balanced(lone.host.engine)


def test_a_ping_says_which_requests_never_left() -> None:
    """They wait for longer than the ping waits for answers."""
    lone = lone_host()
    ping = _core.EchoClient(
        lone.host.ip, lone.host.executor, destination="10.0.0.2", count=3, interval_ps=MS, timeout_ps=10 * MS
    )
    ping.start()
    lone.host.engine.run()
    assert ping.records()["outcome"] == ["not_sent"] * 3
    assert lone.host.ip.stats()["unresolved"]["packets"] == 3


@pytest.mark.parametrize(("sent_ps", "taken"), [(0, True), (-1, False), (2**62, False), (-(2**63), False)])
def test_a_datagram_of_no_time_is_none_of_the_source_s(sent_ps: int, taken: bool) -> None:
    """What somebody has made with the source's address, sent at a time that has not come or never was."""
    lone = lone_host()
    sink = _core.UdpSink(lone.host.ip, lone.host.executor, source="10.0.0.9", port=5001)
    sink.start()
    header = struct.pack("!QqHBB", 0, sent_ps, 0x5755, 0, 0)
    frame = Ether(src="02:00:00:00:00:09", dst=lone.host.mac) / IP(src="10.0.0.9", dst="10.0.0.1")
    lone.hears(frame / UDP(sport=50_000, dport=5001) / header)
    lone.said()
    assert (sink.stats()["packets"], sink.stats()["foreign_packets"]) == (int(taken), int(not taken))


def test_ports_are_given_back() -> None:
    a, b = cabled_hosts()
    source, sink = started(a, b)
    with pytest.raises(ValueError, match="UDP port 5001 is taken"):
        _core.UdpSink(b.ip, b.executor, source=a.address(), port=5001)
    source.close()
    sink.close()
    assert source.status()["state"] == "cancelled"
    _core.UdpSink(b.ip, b.executor, source=a.address(), port=5001)
    with pytest.raises(ValueError, match="4791 is RoCEv2's"):
        _core.UdpSink(b.ip, b.executor, source=a.address(), port=4791)


@pytest.mark.parametrize(
    "wrong",
    [
        {"packet_bytes": 47},
        {"rate_bps": 0},
        {"duration_ps": 0},
        {"dscp": 64},
        {"ecn": 4},
        {"bursts": "often"},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    a, b = cabled_hosts()
    with pytest.raises(ValueError, match=r"UDP source|bursts"):
        started(a, b, **wrong)
