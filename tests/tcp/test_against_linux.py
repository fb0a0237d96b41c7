"""Weft's TCP talks with the Linux kernel's: the same options, each byte in its place, the same reactions."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.tcp.linux_peer import LINUX, OURS, Fate, TcpInfo, cable, wired, within
from tests.tcp.two_ends import ACK, CWR, ECE, SYN

if TYPE_CHECKING:
    from weft.engine._core import TcpSegmentFields

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
]

MEGABYTE = random.Random(1).randbytes(1_000_000)
OTHER_MEGABYTE = random.Random(2).randbytes(1_000_000)
LONG_TIMEOUT_S = 5
BOTH = pytest.mark.parametrize("opener", [OURS, LINUX], ids=["ours-opens", "linux-opens"])


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[str, socket.socket]]:
    with cable() as made:
        yield made


def lossy(seed: int, share: float) -> Fate:
    """Both directions lose segments with data, and acknowledgements, with a probability."""
    stream = random.Random(seed)
    return Fate(is_lost=lambda _sender, fields: not fields["flags"] & SYN and stream.random() < share)


def nth_data_lost(sender: int, number: int, lost: list[int]) -> Fate:
    """The first transmission of a sender's segment of this place is lost; its sequence number is noted."""
    seen: list[int] = []

    def is_lost(who: int, fields: TcpSegmentFields) -> bool:
        if who != sender or not fields["payload_bytes"] or fields["sequence"] in seen:
            return False
        seen.append(fields["sequence"])
        if len(seen) == number + 1:
            lost.append(fields["sequence"])
        return len(seen) == number + 1

    return Fate(is_lost=is_lost)


@BOTH
@pytest.mark.parametrize(("share", "control"), [(0, "cubic"), (0.02, "cubic"), (0.02, "reno")])
def test_a_megabyte_each_way(ends: tuple[str, socket.socket], opener: int, share: float, control: str) -> None:
    with wired(*ends, opener, lossy(opener, share), control) as wire:
        assert TcpInfo.of(wire.kernel).options == {"timestamps", "sack", "window scale"}
        wire.exchange(MEGABYTE, OTHER_MEGABYTE)
        assert wire.received[LINUX] == MEGABYTE
        assert wire.received[OURS] == OTHER_MEGABYTE
        assert wire.ours.end == ("closed" if wire.ours.state == "closed" else "none")
        if share:
            assert wire.ours.sender_counters["retransmitted_segments"] > 0
            assert TcpInfo.of(wire.kernel).retransmitted_segments > 0
            assert any(fields["sack_blocks"] for fields in wire.sent_by(OURS))
            assert any(fields["sack_blocks"] for fields in wire.sent_by(LINUX))


def test_both_offer_the_same_options(ends: tuple[str, socket.socket]) -> None:
    """MSS, SACK, timestamps and window scale on SYN; what was offered comes back on SYN-ACK."""
    offered = []
    for opener in (OURS, LINUX):
        with wired(*ends, opener) as wire:
            for sender in (opener, 1 - opener):
                first = wire.sent_by(sender)[0]
                offered.append(
                    (
                        first["flags"],
                        first["maximum_segment_bytes"],
                        first["sack_permitted"],
                        first["timestamps"] is not None,
                        first["window_scale"] is not None,
                    )
                )
    assert offered == [(SYN, 1460, True, True, True), (SYN | ACK, 1460, True, True, True)] * 2


@BOTH
def test_a_lost_syn(ends: tuple[str, socket.socket], opener: int) -> None:
    """Both send it again after a second (RFC 6298, (2.1)), Linux with its timer's granularity."""
    lost: list[int] = []

    def is_lost(_sender: int, fields: TcpSegmentFields) -> bool:
        if fields["flags"] == SYN and not lost:
            lost.append(1)
            return True
        return False

    with wired(*ends, opener, Fate(is_lost=is_lost)) as wire:
        first, second = [now_s for now_s, who, fields, _ in wire.log if who == opener and fields["flags"] == SYN]
        assert second - first >= 0.99
        wire.exchange(b"x", b"y")
        assert (wire.received[LINUX], wire.received[OURS]) == (b"x", b"y")


@pytest.fixture
def without_timeouts(ends: tuple[str, socket.socket]) -> Iterator[tuple[str, socket.socket]]:
    """A timeout takes so long that this machine's pauses do not make one."""
    within(ends[0], "sysctl", "-qw", f"net.ipv4.tcp_rto_min_us={LONG_TIMEOUT_S * 10**6}")
    yield ends
    within(ends[0], "sysctl", "-qw", "net.ipv4.tcp_rto_min_us=200000")


@pytest.mark.parametrize("sender", [OURS, LINUX], ids=["ours-sends", "linux-sends"])
def test_one_lost_segment(without_timeouts: tuple[str, socket.socket], sender: int) -> None:
    """Sent again once, because of selective acknowledgements, not of a timeout (RFC 6675, RFC 8985)."""
    lost: list[int] = []
    fate = nth_data_lost(sender, 60, lost)
    with wired(*without_timeouts, OURS, fate, least_timeout_ps=LONG_TIMEOUT_S * 10**12) as wire:
        wire.exchange(*((MEGABYTE, b"y") if sender == OURS else (b"x", MEGABYTE)))
        (first_s, again_s) = wire.data_times_s(sender)[lost[0]]
        assert again_s - first_s < LONG_TIMEOUT_S
        if sender == OURS:
            counters = wire.ours.sender_counters
            assert (counters["fast_recoveries"], counters["timeouts"]) == (1, 0)
        else:
            assert TcpInfo.of(wire.kernel).timeouts == 0


@pytest.fixture
def with_ecn(ends: tuple[str, socket.socket]) -> Iterator[tuple[str, socket.socket]]:
    within(ends[0], "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
    yield ends
    within(ends[0], "sysctl", "-qw", "net.ipv4.tcp_ecn=2")


@pytest.mark.parametrize("sender", [OURS, LINUX], ids=["ours-sends", "linux-sends"])
@BOTH
def test_marks(with_ecn: tuple[str, socket.socket], opener: int, sender: int) -> None:
    """RFC 3168, section 6.1: a mark is echoed until CWR, and the window falls once, without a loss."""
    marked: list[int] = []

    def is_marked(who: int, fields: TcpSegmentFields) -> bool:
        if who != sender or not fields["payload_bytes"]:
            return False
        marked.append(fields["sequence"])
        return len(marked) == 61

    with wired(*with_ecn, opener, Fate(is_marked=is_marked), "reno", ecn=True) as wire:
        assert wire.ours.ecn_in_use
        assert "ecn" in TcpInfo.of(wire.kernel).options
        wire.exchange(*((MEGABYTE, b"y") if sender == OURS else (b"x", MEGABYTE)))
        echoes = [bool(fields["flags"] & ECE) for fields in wire.sent_by(1 - sender) if not fields["flags"] & SYN]
        assert any(echoes)
        assert not echoes[-1]
        reduced = [fields for fields in wire.sent_by(sender) if fields["flags"] & CWR and not fields["flags"] & SYN]
        assert len(reduced) == 1
        if sender == OURS:
            counters = wire.ours.sender_counters
            assert (counters["ecn_reductions"], counters["fast_recoveries"]) == (1, 0)
        else:
            assert TcpInfo.of(wire.kernel).timeouts == 0
            assert wire.ours.receiver_counters["marked_segments"] == 1
        assert (wire.received[LINUX] if sender == OURS else wire.received[OURS]) == MEGABYTE


def test_what_arrives_twice_is_reported(ends: tuple[str, socket.socket]) -> None:
    """D-SACK (RFC 2883), which either understands from the other."""
    with wired(*ends, OURS, Fate(is_doubled=lambda _sender, fields: fields["payload_bytes"] > 0)) as wire:
        wire.ours.write(b"twice")
        wire.send_ours()
        wire.run(lambda: wire.ours.sender_counters["reported_duplicates"] == 1)
        wire.kernel.send(b"twice, too")
        wire.run(lambda: TcpInfo.of(wire.kernel).duplicates_reported == 1)


def test_linux_resets(ends: tuple[str, socket.socket]) -> None:
    """A socket that is closed with data unread sends RST (RFC 1122, section 4.2.2.13)."""
    with wired(*ends, OURS) as wire:
        wire.ours.write(b"nobody reads this")
        wire.send_ours()
        wire.run(lambda: wire.ours.in_flight_bytes == 0)
        wire.kernel.close()
        wire.run(lambda: wire.ours.state == "closed")
        assert wire.ours.end == "reset"


def test_ours_resets(ends: tuple[str, socket.socket]) -> None:
    with wired(*ends, LINUX) as wire:
        wire.ours.abort()
        wire.send_ours()
        wire.kernel.setblocking(True)
        wire.kernel.settimeout(10)
        with pytest.raises(ConnectionResetError):
            wire.kernel.recv(1)
