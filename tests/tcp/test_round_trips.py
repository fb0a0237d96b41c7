"""Retransmission timeouts: RFC 6298."""

import pytest

from tests.tcp.two_ends import MILLISECOND_PS, SECOND_PS, SYN, TwoEnds
from weft.engine._core import TcpConnection, TcpRetransmissionTimeout


def milliseconds(value_ps: int) -> float:
    return value_ps / MILLISECOND_PS


def test_estimates() -> None:
    """Section 2, (2.2) and (2.3), with alpha 1/8 and beta 1/4."""
    timeout = TcpRetransmissionTimeout(least_ps=1)
    assert timeout.timeout_ps == SECOND_PS  # (2.1)
    sequence = []
    for round_trip_ms in (100, 100, 180, 60):
        timeout.add_round_trip(round_trip_ms * MILLISECOND_PS)
        sequence.append(
            [
                milliseconds(each)
                for each in (
                    timeout.smoothed_round_trip_ps,
                    timeout.round_trip_variation_ps,
                    timeout.timeout_ps,
                )
            ]
        )
    assert sequence == [
        pytest.approx([100, 50, 300]),
        pytest.approx([100, 37.5, 250]),
        pytest.approx([110, 48.125, 302.5]),
        pytest.approx([103.75, 48.59375, 298.125]),
    ]


@pytest.mark.parametrize(("least_ps", "expected_ps"), [(SECOND_PS, SECOND_PS), (SECOND_PS // 5, SECOND_PS // 5)])
def test_least_timeout(least_ps: int, expected_ps: int) -> None:
    """(2.4): 1 s as the RFC says, or 200 ms as Linux has it."""
    timeout = TcpRetransmissionTimeout(least_ps=least_ps)
    timeout.add_round_trip(MILLISECOND_PS)
    assert timeout.timeout_ps == expected_ps


def test_backing_off() -> None:
    """(5.5): doubled each time, up to the most; (2.5); a new round trip ends it."""
    timeout = TcpRetransmissionTimeout(most_ps=60 * SECOND_PS)
    seen = []
    for _ in range(8):
        seen.append(timeout.timeout_ps // SECOND_PS)
        timeout.back_off()
    assert seen == [1, 2, 4, 8, 16, 32, 60, 60]
    timeout.add_round_trip(300 * MILLISECOND_PS)
    assert timeout.timeout_ps == 900 * MILLISECOND_PS


def test_karn() -> None:
    """Section 3: without timestamps a segment that was sent twice gives no round trip, and the backing off stays."""
    lost = {3}
    between = TwoEnds(
        TcpConnection(timestamps=False, rack_tlp=False),
        TcpConnection(timestamps=False),
        lambda _sender, number, _segment: [] if number in lost else [(50 * MILLISECOND_PS, False)],
    )
    between.establish()
    client = between.ends[0]
    before = client.smoothed_round_trip_ps
    assert milliseconds(before) == 100
    client.write(b"x")
    between.collect()
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["timeouts"] == 1
    assert client.smoothed_round_trip_ps == before
    assert milliseconds(client.timeout_ps) == 2 * 300


def test_karn_without_sack() -> None:
    """What arrived before the gap was filled is acknowledged with what was sent twice: no round trip of its own."""
    lost = {3}
    between = TwoEnds(
        TcpConnection(timestamps=False, sack=False),
        TcpConnection(timestamps=False, sack=False),
        lambda _sender, number, _segment: [] if number in lost else [(50 * MILLISECOND_PS, False)],
    )
    between.establish()
    client = between.ends[0]
    before = client.smoothed_round_trip_ps
    client.write(bytes(3 * client.segment_bytes))
    between.collect()
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["timeouts"] == 1
    assert client.smoothed_round_trip_ps == before


def test_timestamps_tell_what_was_answered() -> None:
    """RFC 7323, section 4.1: with timestamps the retransmission gives a round trip, and the backing off ends."""
    lost = {3}
    between = TwoEnds(
        TcpConnection(rack_tlp=False),
        TcpConnection(),
        lambda _sender, number, _segment: [] if number in lost else [(50 * MILLISECOND_PS, False)],
    )
    between.establish()
    client = between.ends[0]
    client.write(b"x")
    between.collect()
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["timeouts"] == 1
    # 50 ms, and the server's 40 ms before it acknowledges a single segment, and 50 ms.
    assert milliseconds(client.smoothed_round_trip_ps) == pytest.approx(100 + 40 / 8)
    assert client.timeout_ps < 400 * MILLISECOND_PS


def test_lost_syn() -> None:
    """(5.7), and RFC 5681, section 3.1: 3 s and one segment after a SYN was lost, where nothing else is known."""
    between = TwoEnds(
        TcpConnection(timestamps=False),
        TcpConnection(timestamps=False),
        lambda _sender, number, _segment: [] if number == 0 else [(MILLISECOND_PS, False)],
    )
    between.establish()
    client = between.ends[0]
    assert [fields["flags"] for _, sender, fields, _, _ in between.log if sender == 0][:2] == [SYN, SYN]
    assert between.log[1][0] == SECOND_PS
    assert client.timeout_ps == 3 * SECOND_PS
    assert client.window_bytes == client.segment_bytes
