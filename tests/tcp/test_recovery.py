"""How much leaves while losses are repaired, and what tells losses from reordering: RFC 9937, 8985, 2883 and 9406."""

import itertools

from scapy.layers.inet import TCP

from tests.tcp.test_connection import FULL, established, sent_by, write
from tests.tcp.two_ends import MILLISECOND_PS, TwoEnds
from weft.engine._core import TcpCongestionControl, TcpConnection, read_tcp_segment

SEGMENT = 1000


def test_the_rate_falls_by_the_share_of_the_window() -> None:
    """RFC 9937, section 6: of each two segments that arrive one is answered by another, from the first on."""
    between = established(lost={0}, initial_window_segments=20)
    client = between.ends[0]
    write(between, 200 * FULL)
    between.run(lambda: client.in_recovery)
    assert client.slow_start_threshold_bytes == 10 * FULL
    sent = [client.sender_counters["sent_segments"]]
    acknowledgements = client.sender_counters["received_acknowledgements"]
    while client.in_recovery:
        between.step()
        if client.sender_counters["received_acknowledgements"] > acknowledgements:
            acknowledgements = client.sender_counters["received_acknowledgements"]
            sent.append(client.sender_counters["sent_segments"])
    steps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    # The last acknowledgement ends recovery, with the whole window.
    assert set(steps[:-1]) == {0, 1}
    share = sum(steps[:16]) / 16
    assert 0.4 < share < 0.65
    assert client.window_bytes == client.slow_start_threshold_bytes


def test_with_little_under_way_no_more_leaves_than_has_arrived() -> None:
    """RFC 9937, section 6: conservative below the threshold, unless what was missing arrives."""
    between = established(lost=set(range(16)), initial_window_segments=20)
    client = between.ends[0]
    write(between, 200 * FULL)
    between.run(lambda: client.in_recovery)
    assert client.pipe_bytes < client.slow_start_threshold_bytes // 2
    again = client.sender_counters["retransmitted_segments"]
    assert again <= 4
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["timeouts"] == 0
    assert between.received[1] == bytes(200 * FULL)


def test_what_arrives_twice_is_reported_once() -> None:
    """RFC 2883, section 4.1: the first block, below the acknowledgement."""

    def fate(_sender: int, number: int, _segment: bytes) -> list[tuple[int, bool]]:
        return [(MILLISECOND_PS, False)] * (2 if number == 4 else 1)

    between = TwoEnds(TcpConnection(), TcpConnection(), fate)
    between.establish()
    write(between, 6 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    blocks = [fields["sack_blocks"] for fields in sent_by(between, 1)[1:]]
    assert [each for each in blocks if each] == [[(1 + FULL, 1 + 2 * FULL)]]
    assert between.ends[0].sender_counters["reported_duplicates"] == 1
    assert between.ends[0].sender_counters["retransmitted_segments"] == 0


def test_what_arrives_twice_out_of_order_is_reported_within_its_range() -> None:
    """RFC 2883, section 4.2: the second block covers the first."""
    between = established(lost={0})
    server = between.ends[1]
    write(between, 3 * FULL)
    between.run_for(3 * MILLISECOND_PS // 2)
    stamp = sent_by(between, 0)[-1]["timestamps"]
    again = TCP(sport=1, dport=2, seq=1 + FULL, ack=1, flags="A", window=500, options=[("Timestamp", stamp)])
    server.on_segment(between.now_ps, bytes(again) + bytes(FULL))
    answer = server.take_segment(between.now_ps)
    assert answer is not None
    assert read_tcp_segment(answer[0])["sack_blocks"] == [
        (1 + FULL, 1 + 2 * FULL),
        (1 + FULL, 1 + 3 * FULL),
    ]


def test_the_reordering_window_follows_what_was_sent_again_in_vain() -> None:
    """RFC 8985, section 6.2, step 4: the first late segment is sent again, as late ones after it are not."""
    late = 6 * MILLISECOND_PS // 10  # beyond a quarter of the round trip, below a half

    def fate(sender: int, number: int, segment: bytes) -> list[tuple[int, bool]]:
        with_data = sender == 0 and read_tcp_segment(segment)["payload_bytes"] > 0
        is_late = with_data and number % 20 == 7
        return [(MILLISECOND_PS + (late if is_late else 0), False)]

    client = TcpConnection()
    between = TwoEnds(client, TcpConnection(), fate)
    between.establish()
    seen = []
    for _ in range(6):
        write(between, 40 * FULL)
        between.run(lambda: client.in_flight_bytes == 0)
        seen.append(client.sender_counters["retransmitted_segments"])
    assert seen[0] > 0
    assert seen[-1] == seen[1]
    assert client.sender_counters["reported_duplicates"] > 0
    assert client.sender_counters["timeouts"] == 0


def test_a_probe_that_repairs_a_loss_is_a_sign_of_congestion() -> None:
    """RFC 8985, section 7.4; one whose original had arrived is none."""
    for lost, fewer in (({9}, True), (set(), False)):
        between = established(lost=lost)
        client = between.ends[0]
        write(between, 10 * FULL)
        between.run(lambda client=client: client.in_flight_bytes == 0)  # type: ignore[misc]
        assert client.sender_counters["tail_probes"] == int(fewer)
        before = client.window_bytes
        write(between, 4 * FULL)
        between.run(lambda client=client: client.in_flight_bytes == 0)  # type: ignore[misc]
        assert (client.window_bytes < before) == fewer
        assert client.sender_counters["timeouts"] == 0


class Rounds:
    """Rounds of acknowledgements of a slow start, each with one round-trip time."""

    def __init__(self, **parameters: float) -> None:
        self.control = TcpCongestionControl("cubic", segment_bytes=SEGMENT, parameters=parameters)
        self.acknowledged = 0

    def round(self, round_trip_ms: float, acknowledgements: int = 10) -> float:
        """Return by how much the window has grown, in segments."""
        before, end = self.control.window_bytes, self.acknowledged + acknowledgements * SEGMENT
        for _ in range(acknowledgements):
            self.acknowledged += SEGMENT
            self.control.on_acknowledgement(
                0,
                SEGMENT,
                acknowledged=self.acknowledged,
                next=end,
                round_trip_ps=round(round_trip_ms * MILLISECOND_PS),
            )
        return (self.control.window_bytes - before) / SEGMENT


def test_slow_start_slows_down_as_round_trips_grow() -> None:
    """RFC 9406, section 4.2: by an eighth, 4 ms to 16 ms; then a quarter for five rounds, and avoidance."""
    rounds = Rounds()
    assert [rounds.round(each) for each in (80, 89, 80)] == [10, 10, 10]
    assert rounds.round(90.1) < 10
    for _ in range(4):
        assert rounds.round(95) == 2.5
    assert rounds.control.slow_start_threshold_bytes > 10**12
    rounds.round(95)
    assert rounds.control.slow_start_threshold_bytes < rounds.control.window_bytes + SEGMENT


def test_slow_start_goes_on_where_round_trips_fall_again() -> None:
    """RFC 9406, section 4.2."""
    rounds = Rounds()
    rounds.round(80)
    assert rounds.round(100) < 10
    assert rounds.round(95) > 2.5
    assert rounds.round(95) == 10


def test_slow_start_needs_samples_and_a_difference() -> None:
    """Seven of them say nothing; at short round trips less than 4 ms is none; hystart=0 is plain slow start."""
    rounds = Rounds()
    assert [rounds.round(10, 7), rounds.round(50, 7)] == [7, 7]
    rounds = Rounds()
    assert [rounds.round(0.1), rounds.round(4.0), rounds.round(0.1)] == [10, 10, 10]
    rounds = Rounds(hystart=0)
    assert [rounds.round(10), rounds.round(50), rounds.round(90)] == [10, 10, 10]
