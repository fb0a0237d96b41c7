"""What leaves a connection and when: handshake, windows, recovery, ECN and the end, by the sections of the RFCs."""

import itertools
from collections.abc import Callable

import pytest
from scapy.layers.inet import TCP

from tests.tcp.two_ends import ACK, CWR, ECE, FIN, MILLISECOND_PS, PSH, RST, SYN, TwoEnds, arrive_at_once
from weft.engine._core import TcpConnection, read_tcp_segment

FULL = 1448  # of 1,460 bytes timestamps take 12


def sent_by(between: TwoEnds, sender: int, since: int = 0) -> list[dict[str, object]]:
    return [fields for _, who, fields, _, _ in between.log[since:] if who == sender]


def data_sent_by(between: TwoEnds, sender: int) -> list[tuple[int, int]]:
    """(time in milliseconds, offset in the stream) of every segment with data."""
    first = next(fields["sequence"] for _, who, fields, _, _ in between.log if who == sender)
    return [
        (now_ps // MILLISECOND_PS, (int(str(fields["sequence"])) - int(str(first)) - 1) % 2**32)
        for now_ps, who, fields, payload, _ in between.log
        if who == sender and payload
    ]


def established(lost: set[int] | None = None, marked: set[int] | None = None, **settings: object) -> TwoEnds:
    """Two ends after the handshake; segments are numbered from there, from 0."""

    def fate(_sender: int, number: int, _segment: bytes) -> list[tuple[int, bool]]:
        if number - 3 in (lost or set()):
            return []
        return [(MILLISECOND_PS, number - 3 in (marked or set()))]

    between = TwoEnds(TcpConnection(**settings), TcpConnection(**settings), fate)  # type: ignore[arg-type]
    between.establish()
    between.run(lambda: not between.under_way)
    return between


def write(between: TwoEnds, size: int, sender: int = 0) -> None:
    between.ends[sender].write(bytes(size))
    between.collect()


def test_handshake() -> None:
    """RFC 9293, section 3.5; RFC 7323, section 2.2 and 3.2; RFC 2018, section 2."""
    between = TwoEnds(TcpConnection(source_port=7, destination_port=80), TcpConnection(source_port=80))
    between.establish()
    syn, answer, last = [fields for _, _, fields, _, _ in between.log]
    assert [syn["flags"], answer["flags"], last["flags"]] == [SYN, SYN | ACK, ACK]
    for fields in (syn, answer):
        assert (fields["maximum_segment_bytes"], fields["window_scale"], fields["sack_permitted"]) == (
            1460,
            7,
            True,
        )
    assert (syn["source_port"], answer["destination_port"]) == (7, 7)
    assert between.ends[0].segment_bytes == FULL


def test_options_that_one_end_does_not_offer() -> None:
    between = TwoEnds(
        TcpConnection(maximum_segment_bytes=9000),
        TcpConnection(sack=False, timestamps=False, window_scaling=False),
    )
    between.establish()
    answer = sent_by(between, 1)[0]
    assert (answer["window_scale"], answer["sack_permitted"], answer["timestamps"]) == (None, False, None)
    assert [end.segment_bytes for end in between.ends] == [1460, 1460]


def test_both_open() -> None:
    """RFC 9293, section 3.5, figure 8."""
    one, other = TcpConnection(source_port=1), TcpConnection(source_port=2, destination_port=1)
    one.connect()
    other.connect()
    syns = [end.take_segment(0) for end in (one, other)]
    for end, syn in zip((other, one), syns, strict=True):
        assert syn is not None
        end.on_segment(0, syn[0])
    answers = [end.take_segment(0) for end in (one, other)]
    for end, answer in zip((other, one), answers, strict=True):
        assert answer is not None
        assert read_tcp_segment(answer[0])["flags"] == SYN | ACK
        end.on_segment(0, answer[0])
    lasts = [end.take_segment(0) for end in (one, other)]
    for end, last in zip((other, one), lasts, strict=True):
        assert last is not None
        end.on_segment(0, last[0])
    assert one.state == other.state == "established"


def test_initial_window() -> None:
    """RFC 6928: ten segments."""
    between = established()
    write(between, 100_000)
    assert len(data_sent_by(between, 0)) == 10
    assert between.ends[0].in_flight_bytes == 10 * FULL


def test_delayed_acknowledgements() -> None:
    """RFC 5681, section 4.2: every second full segment at once, a single one after the delay."""
    between = established()
    write(between, 3 * FULL)
    between.run_for(30 * MILLISECOND_PS)
    assert len(sent_by(between, 1)) == 2  # SYN and one for two segments
    between.run_for(30 * MILLISECOND_PS)
    assert [now_ps // MILLISECOND_PS for now_ps, who, *_ in between.log if who == 1] == [1, 4, 44]


def test_a_delayed_acknowledgement_may_have_to_wait_for_room() -> None:
    """Its time comes once, however long whoever sends segments has no room for it."""
    client, server = (between := established()).ends
    client.write(bytes(FULL))
    segment, ecn = client.take_segment(between.now_ps) or (b"", 0)
    server.on_segment(between.now_ps, segment, ecn)
    due_ps = server.next_deadline_ps
    assert due_ps is not None
    server.on_timer(due_ps)
    assert server.next_deadline_ps is None
    assert server.take_segment(due_ps) is not None


def test_out_of_order_is_acknowledged_at_once() -> None:
    """RFC 5681, section 4.2, with the newest block first (RFC 2018, section 4)."""
    between = established(lost={0, 2})
    write(between, 5 * FULL)
    between.run_for(3 * MILLISECOND_PS // 2)
    blocks = [fields["sack_blocks"] for fields in sent_by(between, 1)[1:]]
    second, fourth = (1 + FULL, 1 + 2 * FULL), 1 + 3 * FULL
    assert blocks == [[second], [(fourth, fourth + FULL), second], [(fourth, fourth + 2 * FULL), second]]


@pytest.mark.parametrize("sack", [True, False])
def test_fast_retransmit(sack: bool) -> None:
    """RFC 5681, section 3.2; RFC 6582, section 3.2; RFC 6675, section 5: without a timeout, the window halved."""
    between = established(lost={2}, sack=sack)
    write(between, 30 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    counters = between.ends[0].sender_counters
    assert (counters["fast_recoveries"], counters["timeouts"], counters["retransmitted_segments"]) == (
        1,
        0,
        1,
    )
    times = [now for now, offset in data_sent_by(between, 0) if offset == 2 * FULL]
    assert len(times) == 2
    assert times[1] - times[0] <= 4
    assert between.ends[0].slow_start_threshold_bytes <= 6 * FULL


@pytest.mark.parametrize(("sack", "round_trips"), [(True, 1), (False, 3)])
def test_several_losses_in_a_window(sack: bool, round_trips: int) -> None:
    """With SACK all holes are filled in the same round trip; NewReno fills one in each (RFC 6582, section 3.2)."""
    between = established(lost={1, 3, 5}, sack=sack)
    write(between, 10 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    counters = between.ends[0].sender_counters
    assert (counters["timeouts"], counters["retransmitted_segments"]) == (0, 3)
    again = sorted(now for now, offset in data_sent_by(between, 0) if offset in (FULL, 3 * FULL, 5 * FULL))[3:]
    assert (again[-1] - again[0]) // 2 + 1 == round_trips


def test_limited_transmit() -> None:
    """RFC 3042: each of the first two duplicates lets a new segment out."""
    between = established(lost={0}, sack=False)
    write(between, 20 * FULL)
    between.run(lambda: between.ends[0].sender_counters["duplicate_acknowledgements"] == 2)
    assert len(data_sent_by(between, 0)) == 12


def lost_times(offset: int, times: int) -> Callable[[int, int, bytes], list[tuple[int, bool]]]:
    """Loses the first transmissions of the client's segment at an offset."""
    left = [times]

    def fate(sender: int, _number: int, segment: bytes) -> list[tuple[int, bool]]:
        fields = read_tcp_segment(segment)
        if sender == 0 and fields["payload_bytes"] and fields["sequence"] == 1 + offset and left[0] > 0:
            left[0] -= 1
            return []
        return [(MILLISECOND_PS, False)]

    return fate


@pytest.mark.parametrize(("rack_tlp", "timeouts"), [(True, 0), (False, 1)])
def test_lost_retransmission(rack_tlp: bool, timeouts: int) -> None:
    """RFC 6675 does not see it, so a timeout follows, and slow start (RFC 5681, section 3.1); RFC 8985 does."""
    client = TcpConnection(rack_tlp=rack_tlp)
    between = TwoEnds(client, TcpConnection(), lost_times(2 * FULL, 2))
    between.establish()
    write(between, 30 * FULL)
    between.run(lambda: client.sender_counters["timeouts"] > 0 or client.in_flight_bytes == 0)
    if timeouts:
        assert client.window_bytes == FULL
    between.run(lambda: client.in_flight_bytes == 0)
    assert client.sender_counters["timeouts"] == timeouts
    assert [offset for _, offset in data_sent_by(between, 0)].count(2 * FULL) == 3
    assert between.received[1] == bytes(30 * FULL)


@pytest.mark.parametrize(("rack_tlp", "timeouts", "probes"), [(True, 0, 1), (False, 1, 0)])
def test_lost_tail(rack_tlp: bool, timeouts: int, probes: int) -> None:
    """RFC 8985, section 7: a probe two round trips later shows that the end of the flow is missing."""
    between = established(lost={6, 7, 8, 9}, rack_tlp=rack_tlp)
    write(between, 10 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    counters = between.ends[0].sender_counters
    assert (counters["timeouts"], counters["tail_probes"]) == (timeouts, probes)
    assert (between.now_ps < 100 * MILLISECOND_PS) == rack_tlp
    assert between.received[1] == bytes(10 * FULL)


def test_closed_window() -> None:
    """RFC 9293, section 3.8.6.1: probed while closed, and open again as the application reads."""
    client, server = TcpConnection(), TcpConnection(receive_buffer_bytes=5 * FULL)
    between = TwoEnds(client, server)
    between.establish()
    server_reads = False
    between.ends[1] = Slow(server, lambda: server_reads)  # type: ignore[call-overload]
    write(between, 12 * FULL)
    between.run_for(3000 * MILLISECOND_PS)
    assert client.in_flight_bytes == 0
    assert client.room_in_receiver_bytes == 0
    probes = [now_ps for now_ps, who, _, payload, _ in between.log if who == 0 and len(payload) == 1]
    gaps = [round((later - earlier) / MILLISECOND_PS) for earlier, later in itertools.pairwise(probes)]
    assert len(probes) >= 3
    assert gaps == [400 * 2**each for each in range(len(gaps))]
    server_reads = True
    between.received[1] += server.read()
    between.collect()
    between.run(lambda: len(between.received[1]) == 12 * FULL)
    assert between.received[1] == bytes(12 * FULL)


class Slow:
    """An end whose application does not always read."""

    def __init__(self, end: TcpConnection, reads) -> None:  # type: ignore[no-untyped-def]
        self.end, self.reads = end, reads

    def __getattr__(self, name: str) -> object:
        return getattr(self.end, name)

    def read(self) -> bytes:
        return self.end.read() if self.reads() else b""


def test_nagle() -> None:
    """RFC 9293, section 3.7.4, as Minshall and Linux have it: one small segment under way, whatever is behind it."""
    for nagle, segments in ((True, 1), (False, 3)):
        between = established(nagle=nagle)
        for _ in range(3):
            write(between, 100)
        assert len(data_sent_by(between, 0)) == segments


def test_restart_after_idle() -> None:
    """RFC 5681, section 4.1: after an idle timeout no more than the initial window."""
    between = established()
    write(between, 60 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    assert between.ends[0].window_bytes > 20 * FULL
    between.run_for(5000 * MILLISECOND_PS)
    before = len(data_sent_by(between, 0))
    write(between, 60 * FULL)
    assert len(data_sent_by(between, 0)) - before == 10


def test_end() -> None:
    """RFC 9293, section 3.6: FIN behind the data, TIME-WAIT for whoever closed first."""
    between = established()
    client, server = between.ends
    client.write(b"all")
    client.close()
    between.collect()
    assert sent_by(between, 0)[-1]["flags"] == ACK | PSH | FIN
    between.run_for(2 * MILLISECOND_PS)
    assert (client.state, server.state, server.peer_finished) == ("fin_wait_2", "close_wait", True)
    server.write(b"more")
    server.close()
    between.collect()
    between.run_for(2 * MILLISECOND_PS)
    assert (client.state, server.state, server.end) == ("time_wait", "closed", "closed")
    between.run()
    assert (client.end, between.received) == ("closed", [b"more", b"all"])


def test_reset() -> None:
    """RFC 9293, section 3.10.7.1: a segment to no connection is answered by RST, RST by nothing."""
    client, closed = TcpConnection(), TcpConnection()
    client.connect()
    syn = client.take_segment(0)
    assert syn is not None
    closed.on_segment(0, syn[0])
    reset = closed.take_segment(0)
    assert reset is not None
    assert read_tcp_segment(reset[0])["flags"] == RST | ACK
    closed.on_segment(0, reset[0])
    assert closed.take_segment(0) is None
    client.on_segment(0, reset[0])
    assert (client.state, client.end) == ("closed", "refused")


def test_reset_out_of_place_is_challenged() -> None:
    """RFC 5961, section 3.2."""
    between = established()
    _client, server = between.ends
    server.on_segment(between.now_ps, bytes(TCP(sport=1, dport=2, seq=500, flags="R")))
    assert server.state == "established"
    answer = server.take_segment(between.now_ps)
    assert answer is not None
    assert read_tcp_segment(answer[0])["flags"] == ACK
    server.on_segment(between.now_ps, bytes(TCP(sport=1, dport=2, seq=1, flags="R")))
    assert (server.state, server.end) == ("closed", "reset")


def test_ecn_handshake_and_echo() -> None:
    """RFC 3168, section 6.1: ECE until CWR; the window falls once; what is sent again is not capable of ECN."""
    between = established(marked={1}, lost={5}, ecn=True)
    assert [fields["flags"] for _, _, fields, _, _ in between.log] == [SYN | ECE | CWR, SYN | ACK | ECE, ACK]
    write(between, 40 * FULL)
    between.run(lambda: between.ends[0].in_flight_bytes == 0)
    client, server = (end for end in between.ends)
    assert client.sender_counters["ecn_reductions"] + client.sender_counters["fast_recoveries"] == 2
    echoes = [bool(int(str(fields["flags"])) & ECE) for fields in sent_by(between, 1)[1:]]
    assert any(echoes)
    assert not echoes[-1]
    assert any(int(str(fields["flags"])) & CWR for fields in sent_by(between, 0)[2:])
    capable = {}
    for _, who, fields, payload, ecn in between.log:
        if who == 0 and payload:
            capable.setdefault(fields["sequence"], []).append(ecn)
    assert all(codes == [2] + [0] * (len(codes) - 1) for codes in capable.values())
    assert max(map(len, capable.values())) == 2
    assert {ecn for _, who, _, payload, ecn in between.log if not payload} == {0}
    assert server.receiver_counters["marked_segments"] == 1


def test_without_ecn_at_one_end() -> None:
    between = TwoEnds(TcpConnection(ecn=True), TcpConnection())
    between.establish()
    assert not between.ends[0].ecn_in_use
    write(between, 1000)
    assert between.log[-1][4] == 0


def test_exact_echo() -> None:
    """RFC 8257, section 3.2: an acknowledgement leaves as the marks change, with the state before."""
    between = established(marked={1, 2, 3}, congestion_control="dctcp")
    write(between, 6 * FULL)
    between.run_for(60 * MILLISECOND_PS)
    acknowledged = [
        ((int(str(fields["acknowledgement"])) - 1) // FULL, bool(int(str(fields["flags"])) & ECE))
        for fields in sent_by(between, 1)[1:]
    ]
    assert acknowledged == [(1, False), (3, True), (4, True), (6, False)]
    assert between.ends[0].sender_counters["ecn_reductions"] == 1


def test_headers_are_read_alike() -> None:
    """Scapy takes what a connection sends as what it says."""
    between = TwoEnds(TcpConnection(initial_sequence=99), TcpConnection(), arrive_at_once)
    client = TcpConnection(initial_sequence=99, source_port=40_000, destination_port=80, ecn=True)
    client.connect()
    taken = client.take_segment(123_456 * MILLISECOND_PS)
    assert taken is not None
    parsed = TCP(taken[0])
    assert (parsed.sport, parsed.dport, parsed.seq, str(parsed.flags)) == (40_000, 80, 99, "SEC")
    assert parsed.options == [
        ("MSS", 1460),
        ("NOP", None),
        ("NOP", None),
        ("SAckOK", b""),
        ("NOP", None),
        ("NOP", None),
        ("Timestamp", (123_456 + 99, 0)),
        ("NOP", None),
        ("WScale", 7),
    ]
    assert between.sent > 0


@pytest.mark.parametrize(
    ("segment", "problem"),
    [
        (b"", "shorter than a header"),
        (bytes(19), "shorter than a header"),
        (bytes(12) + b"\x40" + bytes(7), "data offset is below 5"),
        (bytes(12) + b"\xf0" + bytes(7), "beyond the segment's end"),
        (bytes(12) + b"\x60" + bytes(7) + b"\x02\x00\x00\x00", "an option's length is wrong"),
        (bytes(12) + b"\x60" + bytes(7) + b"\x02\x08\x00\x00", "an option's length is wrong"),
    ],
)
def test_what_is_no_segment(segment: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_tcp_segment(segment)
    connection = TcpConnection()
    connection.listen()
    with pytest.raises(ValueError, match=problem):
        connection.on_segment(0, segment)


def test_old_segments_by_their_timestamps() -> None:
    """PAWS (RFC 7323, section 5.3): what is older than the newest in order is dropped and acknowledged."""
    between = established()
    between.run_for(100 * MILLISECOND_PS)
    write(between, 100)
    between.run_for(60 * MILLISECOND_PS)
    server = between.ends[1]
    old = TCP(sport=1, dport=2, seq=101, ack=1, flags="PA", window=500, options=[("Timestamp", (0, 0))]) / b"old"
    server.on_segment(between.now_ps, bytes(old))
    assert server.read() == b""
    answer = server.take_segment(between.now_ps)
    assert answer is not None
    assert read_tcp_segment(answer[0])["acknowledgement"] == 101


def test_a_syn_within_the_window_is_challenged() -> None:
    """RFC 5961, section 4.2."""
    between = established(timestamps=False)
    server = between.ends[1]
    server.on_segment(between.now_ps, bytes(TCP(sport=1, dport=2, seq=1, flags="S")))
    assert server.state == "established"
    answer = server.take_segment(between.now_ps)
    assert answer is not None
    assert read_tcp_segment(answer[0])["flags"] == ACK
