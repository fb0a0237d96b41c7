"""How much leaves while losses are repaired, and what tells losses from reordering: RFC 9937, 8985, 2883 and 9406."""

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
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


def after_reordering(delays_ps: Callable[[int, int], int | None]) -> TwoEnds:
    """Two ends, of which the client has seen a late segment, so that it waits for late ones by the clock.

    From then on `delays_ps` says for each of its segments, by offset and how often that has been sent, what is added
    to a millisecond; None is a loss.
    """
    times: Counter[int] = Counter()

    def fate(sender: int, number: int, segment: bytes) -> list[tuple[int, bool]]:
        fields = read_tcp_segment(segment)
        if sender == 1 or not fields["payload_bytes"]:
            return [(MILLISECOND_PS, False)]
        if number == 5:
            return [(MILLISECOND_PS + MILLISECOND_PS // 10, False)]
        offset = fields["sequence"] - 1 - 4 * FULL
        times[offset] += 1
        added_ps = delays_ps(offset // FULL, times[offset]) if offset >= 0 else 0
        return [] if added_ps is None else [(MILLISECOND_PS + added_ps, False)]

    between = TwoEnds(TcpConnection(initial_window_segments=64), TcpConnection(), fate)
    between.establish()
    write(between, 4 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    assert between.ends[0].sender_counters["retransmitted_segments"] == 0
    return between


def write_slowly(between: TwoEnds, segments: int, late: int = -1) -> None:
    """Write a segment each 50 µs, and the one after the segment `late` 12.5 µs later than that."""
    for each in range(segments):
        write(between, FULL)
        between.run_for(MILLISECOND_PS // (20 if each != late else 16))


def test_a_retransmission_tells_how_long_round_trips_are_now() -> None:
    """RFC 8985, section 6.2, step 2: RACK.rtt is that of what was sent again, too; what is as late is not lost."""

    def delays_ps(segment: int, times: int) -> int | None:
        if times == 1:
            return None if segment in (0, 3) else 0
        return 4 * MILLISECOND_PS + (MILLISECOND_PS // 5 if segment == 0 else 0)

    client = (between := after_reordering(delays_ps)).ends[0]
    write_slowly(between, 30)
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["fast_recoveries"] == 1
    assert client.sender_counters["retransmitted_segments"] == 2


@pytest.mark.parametrize("lost", [1, 2, 6])
def test_what_time_shows_to_be_lost_in_recovery_makes_its_own_room(lost: int) -> None:
    """RFC 9937, section 6.2: the window stays as the last acknowledgement has left it, and less is under way."""
    client = (
        between := after_reordering(
            lambda segment, times: None if segment in (0, lost) and times == 1 else 0,
        )
    ).ends[0]
    write_slowly(between, 30, late=lost)
    between.run(lambda: client.in_flight_bytes == 0)
    sent_ps = [
        now_ps for now_ps, who, fields, *_ in between.log if who == 0 and fields["sequence"] == 1 + (4 + lost) * FULL
    ]
    round_trip_ps, reordering_ps = 2 * MILLISECOND_PS, MILLISECOND_PS // 2
    assert sent_ps == [sent_ps[0], sent_ps[0] + round_trip_ps + reordering_ps]
    assert client.sender_counters["fast_recoveries"] == 1


@pytest.mark.parametrize(("rack_tlp", "sent_lately"), [(True, 2), (False, 0)])
def test_a_timeout_leaves_what_has_had_no_time_to_be_answered(rack_tlp: bool, sent_lately: int) -> None:
    """RFC 8985, section 6.3; without RACK all counts as lost (RFC 6675, section 5.1)."""
    client = TcpConnection(rack_tlp=rack_tlp, nagle=False, initial_window_segments=1000)
    is_up = True
    between = TwoEnds(client, TcpConnection(), lambda *_: [(MILLISECOND_PS, False)] if is_up else [])
    between.establish()
    write(between, 4 * FULL)
    between.run(lambda: client.in_flight_bytes == 0)
    is_up = False
    while not client.sender_counters["timeouts"]:
        write(between, FULL)
        pipe_bytes = client.pipe_bytes
        between.now_ps += MILLISECOND_PS
        client.on_timer(between.now_ps)
    assert pipe_bytes > 100 * FULL
    # One a millisecond, of the last 2.5 ms: a round trip, and a quarter of it for reordering.
    assert client.pipe_bytes == sent_lately * FULL
    is_up = True
    between.collect()
    between.run(lambda: client.in_flight_bytes == 0)
    assert between.received[1] == bytes(len(between.received[1]))
    assert len(between.received[1]) % FULL == 0


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
    assert seen[-1] == seen[2]
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
