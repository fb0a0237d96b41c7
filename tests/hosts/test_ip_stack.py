"""The IP stack of a host, frame by frame, against Scapy's idea of the same protocols."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from tests.hosts.ip_hosts import DELAY_PS, SECOND_PS, cabled_hosts, is_balanced, lone_host
from weft.engine import _core

PEER_MAC = "02:00:00:00:00:09"
PEERS = {4: "10.0.0.9", 6: "fd00::9"}


def to_host(*, version: int = 4, mac: str = "02:00:00:00:00:01", **ip: Any) -> Packet:
    addresses = {"src": PEERS[version], "dst": "10.0.0.1" if version == 4 else "fd00::1"} | ip
    return Ether(src=PEER_MAC, dst=mac) / (IP(**addresses) if version == 4 else IPv6(**addresses))


def solicitation(target: str = "fd00::1") -> Packet:
    return (
        Ether(src=PEER_MAC, dst="33:33:ff:00:00:01")
        / IPv6(src="fd00::9", dst="ff02::1:ff00:1", hlim=255)
        / ICMPv6ND_NS(tgt=target)
        / ICMPv6NDOptSrcLLAddr(lladdr=PEER_MAC)
    )


def has_right_checksums(frame: Packet) -> bool:
    """Whether Scapy computes the same bytes."""
    again = frame.copy()
    for layer in (IP, ICMP, UDP, ICMPv6EchoReply, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6DestUnreach):
        if layer in again:
            for name in ("chksum", "cksum"):
                if name in again[layer].fields:
                    del again[layer].fields[name]
    return bytes(again) == bytes(frame)


def test_an_arp_request_is_answered_and_its_sender_known() -> None:
    lone = lone_host()
    request = Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=PEER_MAC, psrc="10.0.0.9", pdst="10.0.0.1")
    lone.hears(request)
    (answer,) = lone.said()
    assert (answer.dst, answer[ARP].op, answer[ARP].psrc, answer[ARP].hwsrc) == (
        PEER_MAC,
        2,
        "10.0.0.1",
        lone.host.mac,
    )
    assert (answer[ARP].pdst, answer[ARP].hwdst) == ("10.0.0.9", PEER_MAC)
    lone.hears(to_host() / ICMP(id=7, seq=1) / b"known already")
    assert [frame.dst for frame in lone.said()] == [PEER_MAC]


def test_a_neighbour_solicitation_is_answered() -> None:
    lone = lone_host()
    lone.hears(solicitation())
    (answer,) = lone.said()
    assert (answer.dst, answer[IPv6].hlim, answer[ICMPv6ND_NA].tgt) == (PEER_MAC, 255, "fd00::1")
    assert answer[ICMPv6NDOptDstLLAddr].lladdr == lone.host.mac
    assert answer[ICMPv6ND_NA].S == 1
    assert has_right_checksums(answer)


@pytest.mark.parametrize("version", [4, 6])
def test_an_echo_is_answered_when_the_next_hop_is_known(version: int) -> None:
    lone = lone_host()
    data = bytes(range(33))
    if version == 4:
        lone.hears(to_host() / ICMP(id=7, seq=9) / data)
        (question,) = lone.said()
        assert (question.dst, question[ARP].pdst) == ("ff:ff:ff:ff:ff:ff", "10.0.0.9")
        lone.hears(Ether(src=PEER_MAC, dst=lone.host.mac) / ARP(op=2, hwsrc=PEER_MAC, psrc="10.0.0.9", pdst="10.0.0.1"))
    else:
        lone.hears(to_host(version=6) / ICMPv6EchoRequest(id=7, seq=9, data=data))
        (question,) = lone.said()
        assert (question.dst, question[ICMPv6ND_NS].tgt) == ("33:33:ff:00:00:09", "fd00::9")
        assert has_right_checksums(question)
        lone.hears(
            to_host(version=6, hlim=255) / ICMPv6ND_NA(tgt="fd00::9", S=1) / ICMPv6NDOptDstLLAddr(lladdr=PEER_MAC)
        )
    (reply,) = lone.said()
    assert has_right_checksums(reply)
    assert reply.dst == PEER_MAC
    if version == 4:
        assert (reply[ICMP].type, reply[ICMP].id, reply[ICMP].seq, bytes(reply[ICMP].payload)) == (
            0,
            7,
            9,
            data,
        )
    else:
        echo = reply[ICMPv6EchoReply]
        assert (echo.id, echo.seq, echo.data) == (7, 9, data)
    assert lone.host.ip.stats()["echoes_answered"] == 1


def test_beyond_the_link_packets_go_to_the_gateway() -> None:
    lone = lone_host()
    lone.host.ip.add_neighbour("10.0.0.254", "02:01:00:00:00:00")
    lone.hears(to_host(src="10.7.0.9") / ICMP())
    (reply,) = lone.said()
    assert (reply.dst, reply[IP].dst) == ("02:01:00:00:00:00", "10.7.0.9")
    lone.hears(to_host(src="192.0.2.1") / ICMP())
    assert lone.said() == []
    assert lone.host.ip.stats()["no_route_packets"] == 1


def asks(address: str, mac: str, claims: str | None = None) -> Ether:
    """An ARP request to h1 from a neighbour, or in the name of another."""
    return Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=mac, psrc=claims or address, pdst="10.0.0.1")


def test_neighbours_are_bounded_and_the_one_heard_of_first_makes_room() -> None:
    lone = lone_host()
    lone.hears(to_host(src="10.0.0.9") / ICMP())  # who is asked for counts, too
    assert len(lone.said()) == 1
    flood = [f"10.0.{number >> 8}.{number & 255}" for number in range(256, 256 + 1024)]
    for address in flood:
        lone.hears(asks(address, PEER_MAC))
        assert len(lone.said(10_000_000)) == 1
    stats = lone.host.ip.stats()
    assert (stats["neighbours_evicted"], stats["unresolved"]["packets"]) == (1, 1)
    lone.hears(asks(flood[0], PEER_MAC))  # heard of again: now the second is the oldest
    lone.hears(asks("10.0.0.10", PEER_MAC))
    assert len(lone.said(10_000_000)) == 2
    assert lone.host.ip.stats()["neighbours_evicted"] == 2
    for address, known in ((flood[0], True), (flood[1], False), (flood[2], True), ("10.0.0.10", True)):
        before = lone.host.ip.stats()["neighbours_changed"]
        other_mac = asks(address, "02:00:00:00:00:66")
        other_mac[ARP].pdst = "10.0.0.77"  # of who is not asked, only a known neighbour's MAC is noted
        lone.hears(other_mac)
        assert lone.said(10_000_000) == []
        assert lone.host.ip.stats()["neighbours_changed"] - before == known


@pytest.mark.parametrize(
    ("claimed", "mac", "believed"),
    [
        ("fd00::9", PEER_MAC, True),
        ("fd00::1", PEER_MAC, False),
        ("ff02::1", PEER_MAC, False),
        ("fd00::9", "33:33:00:00:00:01", False),
    ],
)
def test_neighbour_messages_are_believed_as_arp_is(claimed: str, mac: str, believed: bool) -> None:
    """RFC 4861, 7.1.2: no target is a group; no neighbour has the host's own address or a group's MAC."""
    lone = lone_host()
    lone.hears(solicitation())
    lone.said()
    advertisement = (
        Ether(src=PEER_MAC, dst=lone.host.mac)
        / IPv6(src="fd00::9", dst="fd00::1", hlim=255)
        / ICMPv6ND_NA(tgt=claimed, S=1, O=1)
        / ICMPv6NDOptDstLLAddr(lladdr=mac)
    )
    lone.hears(advertisement)
    assert lone.said() == []
    assert lone.host.ip.stats()["neighbours_refused"] == int(not believed)
    if claimed != "ff02::1":
        asked = solicitation()
        asked[IPv6].src, asked[ICMPv6NDOptSrcLLAddr].lladdr = claimed, mac
        del asked[ICMPv6ND_NS].cksum
        lone.hears(asked)
        assert len(lone.said()) == int(believed)
    lone.hears(to_host(version=6) / ICMPv6EchoRequest(id=7, seq=1))
    assert [frame.dst for frame in lone.said()] == [PEER_MAC]


def test_what_claims_other_addresses_is_counted_and_changes_no_static_neighbour() -> None:
    lone = lone_host()
    other = "02:00:00:00:00:66"
    lone.host.ip.add_neighbour("10.0.0.254", "02:01:00:00:00:00")
    lone.hears(asks("10.0.0.9", PEER_MAC))
    lone.hears(asks("10.0.0.9", other))
    lone.said()
    assert lone.host.ip.stats()["neighbours_changed"] == 1
    for claimed in ("10.0.0.254", "10.0.0.1", "224.0.0.1", "255.255.255.255"):
        lone.hears(asks("", other, claimed))
    lone.said()
    stats = lone.host.ip.stats()
    assert (stats["neighbours_refused"], stats["malformed_packets"]) == (4, 3)
    lone.hears(to_host(src="10.7.0.9") / ICMP())
    assert [frame.dst for frame in lone.said()] == ["02:01:00:00:00:00"]


def test_nobody_answers_for_a_neighbour() -> None:
    lone = lone_host()
    lone.hears(to_host() / ICMP())
    questions = lone.said(10 * SECOND_PS)
    assert [frame[ARP].pdst for frame in questions] == ["10.0.0.9"] * 3
    assert lone.host.ip.stats()["unresolved"]["packets"] == 1


@pytest.mark.parametrize("version", [4, 6])
def test_a_closed_port_is_reported(version: int) -> None:
    lone = lone_host()
    lone.host.ip.add_neighbour(PEERS[version], PEER_MAC)
    sent = to_host(version=version) / UDP(sport=1234, dport=9) / b"anybody?"
    lone.hears(sent)
    (report,) = lone.said()
    assert has_right_checksums(report)
    if version == 4:
        assert (report[ICMP].type, report[ICMP].code) == (3, 3)
    else:
        assert (report[ICMPv6DestUnreach].type, report[ICMPv6DestUnreach].code) == (1, 4)
    assert bytes(report).endswith(bytes(sent[IP if version == 4 else IPv6]))
    stats = lone.host.ip.stats()
    assert (stats["closed_port_packets"], stats["errors_sent"]) == (1, 1)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (to_host(mac="02:00:00:00:00:55") / ICMP(), "foreign_packets"),
        (to_host(dst="10.0.0.5") / ICMP(), "foreign_packets"),
        (to_host() / ICMP(chksum=0x1234), "bad_checksum_packets"),
        (to_host(chksum=0x1234) / ICMP(), "bad_checksum_packets"),
        (to_host() / UDP(dport=9, chksum=0x1234) / b"x", "bad_checksum_packets"),
        (to_host(flags="MF") / ICMP(), "fragment_packets"),
        (to_host(proto=99) / b"nobody's", "unknown_packets"),
        (Ether(dst="02:00:00:00:00:01", type=0x1234) / b"calc", "unknown_packets"),
        (to_host(len=900) / ICMP(), "malformed_packets"),
        (to_host(ihl=3) / ICMP(), "malformed_packets"),
        (Ether(dst="02:00:00:00:00:01", type=0x0806) / b"short", "malformed_packets"),
        (Raw(b"\x02"), "malformed_packets"),
    ],
)
def test_what_is_dropped_is_counted_by_reason(frame: Packet, reason: str) -> None:
    lone = lone_host()
    lone.hears(frame)
    assert lone.said() == []
    stats: dict[str, Any] = dict(lone.host.ip.stats())
    assert {name for name, count in stats.items() if name.endswith("_packets") and count} == {reason}
    assert is_balanced(lone.host.engine)


def test_options_of_ipv4_are_passed_over() -> None:
    lone = lone_host()
    lone.host.ip.add_neighbour("10.0.0.9", PEER_MAC)
    lone.hears(
        Ether(src=PEER_MAC, dst=lone.host.mac) / IP(src="10.0.0.9", dst="10.0.0.1", options=b"\x01" * 8) / UDP(dport=9)
    )
    assert [frame[ICMP].code for frame in lone.said()] == [3]


def test_roce_frames_stay_the_nics() -> None:
    lone = lone_host()
    lone.hears(to_host() / UDP(sport=1, dport=4791) / bytes(20))
    assert lone.said() == []
    assert lone.host.ip.stats()["received"]["packets"] == 0
    assert sum(lone.host.nic.stats(0)["dropped"].values()) == 1


def test_a_full_queue_drops_and_counts() -> None:
    lone = lone_host(queue_packets=2)
    lone.host.ip.add_neighbour("10.0.0.9", PEER_MAC)
    for number in range(10):
        lone.hears(to_host() / ICMP(seq=number) / bytes(1000))
    replies = lone.said()
    # One is on the wire at once, two wait.
    assert [frame[ICMP].seq for frame in replies] == [0, 1, 2]
    assert lone.host.ip.stats()["queue_full_packets"] == 7
    assert is_balanced(lone.host.engine)


def test_nothing_larger_than_the_mtu_is_sent() -> None:
    a, b = cabled_hosts(mtu_bytes=1280)
    fits = _core.EchoClient(
        a.ip,
        a.executor,
        destination=b.address(),
        count=1,
        interval_ps=SECOND_PS,
        timeout_ps=SECOND_PS,
        data_bytes=1252,
    )
    too_big = _core.EchoClient(
        a.ip,
        a.executor,
        destination=b.address(),
        count=1,
        interval_ps=SECOND_PS,
        timeout_ps=SECOND_PS,
        data_bytes=1253,
    )
    for client in (fits, too_big):
        client.start()
    a.engine.run()
    assert [client.records()["outcome"] for client in (fits, too_big)] == [["answered"], ["not_sent"]]
    assert a.ip.stats()["too_big_packets"] == 1


@pytest.mark.parametrize("version", [4, 6])
def test_ping_takes_both_ways_and_the_first_one_the_question_too(version: int) -> None:
    a, b = cabled_hosts()
    client = _core.EchoClient(
        a.ip,
        a.executor,
        destination=b.address(version),
        count=3,
        interval_ps=SECOND_PS,
        timeout_ps=SECOND_PS,
    )
    client.start(5)
    a.engine.run()
    records = client.records()
    assert records["outcome"] == ["answered"] * 3
    assert records["sent_ps"].tolist() == [5, SECOND_PS + 5, 2 * SECOND_PS + 5]
    frame_bytes = 14 + (20 if version == 4 else 40) + 8 + 56
    one_way_ps = DELAY_PS + frame_bytes * 800
    question_ps = 2 * DELAY_PS + 2 * (42 if version == 4 else 86) * 800
    assert records["round_trip_ps"].tolist() == [question_ps + 2 * one_way_ps, 2 * one_way_ps, 2 * one_way_ps]
    status = client.status()
    assert (status["state"], status["nodes_done"], status["finished_ps"]) == ("finished", 3, a.engine.now_ps)
    assert is_balanced(a.engine)


@pytest.mark.parametrize(("quoted_source", "outcome"), [("10.0.0.7", "lost"), ("10.0.0.1", "time_exceeded")])
def test_an_error_is_believed_about_what_this_host_has_sent(quoted_source: str, outcome: str) -> None:
    lone = lone_host()
    lone.host.ip.add_neighbour(PEERS[4], PEER_MAC)
    client = _core.EchoClient(
        lone.host.ip,
        lone.host.executor,
        destination=PEERS[4],
        count=1,
        interval_ps=SECOND_PS,
        timeout_ps=SECOND_PS,
    )
    client.start(0)
    (sent,) = lone.said(SECOND_PS // 2)
    quoted = sent[IP].copy()
    quoted.src, quoted.chksum = quoted_source, None
    lone.hears(to_host() / ICMP(type=11) / bytes(quoted)[:28])
    lone.said(2 * SECOND_PS)
    assert client.records()["outcome"] == [outcome]
    assert lone.host.ip.stats()["foreign_packets"] == (outcome == "lost")


def test_a_ping_of_somebody_who_is_not_there_is_not_sent() -> None:
    a, _ = cabled_hosts()
    client = _core.EchoClient(
        a.ip, a.executor, destination="10.0.0.77", count=2, interval_ps=SECOND_PS, timeout_ps=SECOND_PS
    )
    client.start()
    a.engine.run()
    assert client.records()["outcome"] == ["not_sent", "not_sent"]
    assert client.status()["state"] == "finished"
    assert is_balanced(a.engine)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_frame_breaks_the_stack(data: st.DataObject) -> None:
    """Valid frames with some bytes changed and cut anywhere: each is taken or counted, and nothing is lost."""
    lone = lone_host()
    seeds = [
        to_host() / ICMP() / b"abcdef",
        to_host(version=6) / ICMPv6EchoRequest(data=b"abc"),
        solicitation(),
        to_host() / UDP(dport=9) / b"abc",
        to_host() / ICMP(type=3, code=3) / IP(src="10.0.0.1", dst="10.0.0.9") / UDP(),
        Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.0.1"),
    ]
    frame = bytearray(bytes(data.draw(st.sampled_from(seeds))))
    for _ in range(data.draw(st.integers(0, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    lone.hears(Raw(bytes(frame[: data.draw(st.integers(0, len(frame)))])))
    lone.said(4 * SECOND_PS)
    assert is_balanced(lone.host.engine)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=64), dscp=st.integers(0, 63), identifier=st.integers(0, 0xFFFF))
def test_replies_have_the_checksums_that_scapy_computes(data: bytes, dscp: int, identifier: int) -> None:
    lone = lone_host()
    for version in (4, 6):
        lone.host.ip.add_neighbour(PEERS[version], PEER_MAC)
    lone.hears(to_host(tos=dscp << 2) / ICMP(id=identifier) / data)
    lone.hears(to_host(version=6, tc=dscp << 2) / ICMPv6EchoRequest(id=identifier, data=data))
    lone.hears(to_host() / UDP(sport=identifier, dport=9) / data)
    replies = lone.said()
    assert len(replies) == 3
    assert all(map(has_right_checksums, replies))
    assert sorted(frame[IP].tos if IP in frame else frame[IPv6].tc for frame in replies) == sorted(
        [0, dscp << 2, dscp << 2]
    )
