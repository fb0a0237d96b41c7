"""A peer that sends anything: a connection may end, but its account of what is under way stays sound."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import TCP

from tests.tcp.test_connection import established, write
from tests.tcp.two_ends import MILLISECOND_PS, SECOND_PS, TwoEnds
from weft.engine._core import TcpConnection, read_tcp_segment

NEAR = st.integers(-5000, 20_000)
segments = st.builds(
    lambda sequence, acknowledgement, flags, window, size, blocks, stamps: (
        sequence % 2**32,
        acknowledgement % 2**32,
        flags,
        window,
        size,
        [(begin % 2**32, end % 2**32) for begin, end in blocks],
        stamps,
    ),
    st.one_of(NEAR, st.integers(0, 2**32 - 1)),
    st.one_of(NEAR, st.integers(0, 2**32 - 1)),
    st.integers(0, 255),
    st.sampled_from([0, 1, 10, 500, 65535]),
    st.sampled_from([0, 1, 700, 1448, 9000]),
    st.lists(st.tuples(NEAR, NEAR), max_size=3),
    st.one_of(st.none(), st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))),
)


def bytes_of(
    sequence: int,
    acknowledgement: int,
    flags: int | str,
    window: int = 500,
    blocks: object = (),
    stamps: tuple[int, int] | None = None,
) -> bytes:
    options: list[tuple[str, object]] = []
    if stamps is not None:
        options.append(("Timestamp", stamps))
    flat = [edge for block in blocks for edge in block]  # type: ignore[attr-defined]
    if flat:
        options.append(("SAck", tuple(flat)))
    return bytes(TCP(sport=2, dport=1, seq=sequence, ack=acknowledgement, flags=flags, window=window, options=options))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    control=st.sampled_from(["newreno", "cubic", "dctcp"]),
    sack=st.booleans(),
    sent=st.lists(st.tuples(segments, st.integers(0, 300), st.integers(0, 3)), max_size=30),
)
def test_anything_from_a_peer(control: str, sack: bool, sent: list[tuple[tuple[object, ...], int, int]]) -> None:
    client = TcpConnection(congestion_control=control, sack=sack)
    between = TwoEnds(client, TcpConnection(congestion_control=control, sack=sack))
    between.establish()
    client.write(bytes(50_000))
    client.close()
    between.collect()
    now_ps = between.now_ps
    for (sequence, acknowledgement, flags, window, size, blocks, stamps), wait_ms, ecn in sent:
        header = bytes_of(sequence, acknowledgement, flags, window, blocks, stamps)  # type: ignore[arg-type]
        client.on_segment(now_ps, header + bytes(int(str(size))), ecn)
        for _ in range(200):
            if client.take_segment(now_ps) is None:
                break
        else:
            raise AssertionError("it sends without end")
        assert 0 <= client.pipe_bytes <= 2 * client.in_flight_bytes
        assert client.in_flight_bytes <= 50_001
        assert client.window_bytes >= client.segment_bytes
        now_ps += wait_ms * MILLISECOND_PS
        if client.next_deadline_ps is not None and client.next_deadline_ps <= now_ps:
            client.on_timer(now_ps)
        client.read()


def answers_of(connection: TcpConnection, now_ps: int, segment: bytes) -> int:
    """Return how many segments answer one."""
    connection.on_segment(now_ps, segment)
    return sum(1 for _ in iter(lambda: connection.take_segment(now_ps), None))


def test_two_that_disagree_do_not_answer_each_other_for_ever() -> None:
    """RFC 5961, section 7: acknowledgements that make no sense are answered twice a second."""
    ends = [established(timestamps=False, initial_sequence=first).ends[0] for first in (0, 10**9)]
    segment = bytes_of(5 * 10**8, 1, "A")
    sent = 0
    for now_ms in range(0, 2000, 10):
        for number, end in enumerate(ends):
            end.on_segment(SECOND_PS + now_ms * MILLISECOND_PS, segment)
            while (answer := end.take_segment(SECOND_PS + now_ms * MILLISECOND_PS)) is not None:
                segment = answer[0]
                sent += 1
                ends[1 - number].on_segment(SECOND_PS + now_ms * MILLISECOND_PS, segment)
    assert 4 <= sent <= 8


@pytest.mark.parametrize(
    ("header", "most"),
    [
        (bytes_of(900_000_000, 1, "A"), 1),
        (bytes_of(1, 700_000, "A"), 1),
        (bytes_of(2, 0, "R"), 1),
        (bytes_of(1, 1, "S"), 1),
        (bytes_of(900_000_000, 1, "A") + b"data", 10),
    ],
    ids=["outside the window", "of what was never sent", "RST", "SYN", "data"],
)
def test_challenges_are_rare_where_nothing_is_to_be_acknowledged(header: bytes, most: int) -> None:
    """RFC 5961, sections 3.2, 4.2 and 7; data, which may be a probe of the window, is always answered."""
    server = (between := established(timestamps=False)).ends[1]
    assert sum(answers_of(server, between.now_ps, header) for _ in range(10)) == most
    assert answers_of(server, between.now_ps + SECOND_PS // 2, header) == 1
    assert server.state == "established"


def test_data_beside_a_wrong_acknowledgement_is_dropped() -> None:
    """RFC 9293, section 3.10.7.4: who does not know what was sent cannot put bytes into the stream."""
    server = (between := established(timestamps=False)).ends[1]
    assert answers_of(server, between.now_ps, bytes_of(1, 700_000, "A") + b"spoof") == 1
    assert server.read() == b""
    assert answers_of(server, between.now_ps, bytes_of(1, 1, "PA") + b"data") <= 1
    assert server.read() == b"data"


def test_a_receiver_keeps_no_more_gaps_than_its_buffer_explains() -> None:
    """One gap for each 512 bytes of the buffer; what is not kept is neither acknowledged nor lost to the stream."""
    server = (between := established(timestamps=False, receive_buffer_bytes=64_000)).ends[1]
    stream = random.Random(5).randbytes(1000)
    for each in range(1, 1000, 2):
        server.on_segment(between.now_ps, bytes_of(1 + each, 1, "A") + stream[each : each + 1])
        while server.take_segment(between.now_ps) is not None:
            pass
    counters = server.receiver_counters
    assert counters["received_bytes"] == 125
    assert counters["discarded_segments"] == 500 - 125
    assert counters["duplicate_segments"] == 0
    # What touches a kept range still finds room, and so does what is next.
    server.on_segment(between.now_ps, bytes_of(1 + 2, 1, "A") + stream[2:3])
    assert server.receiver_counters["received_bytes"] == 126
    for each in range(0, 1000, 50):
        server.on_segment(between.now_ps, bytes_of(1 + each, 1, "A") + stream[each : each + 50])
    assert server.read() == stream


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    segments=st.lists(st.tuples(st.integers(0, 1999), st.integers(1, 3)), max_size=300),
    step=st.integers(1, 700),
)
def test_what_is_not_kept_arrives_when_it_is_sent_again(segments: list[tuple[int, int]], step: int) -> None:
    server = (between := established(timestamps=False, receive_buffer_bytes=10_000)).ends[1]
    stream = random.Random(6).randbytes(2000)
    for begin, size in segments:
        header = bytes_of(1 + begin, 1, "A")
        server.on_segment(between.now_ps, header + stream[begin : begin + size])
        while (answer := server.take_segment(between.now_ps)) is not None:
            fields = read_tcp_segment(answer[0])
            assert fields["acknowledgement"] <= 2001
    received = server.read()
    for begin in range(0, 2000, step):
        server.on_segment(between.now_ps, bytes_of(1 + begin, 1, "A") + stream[begin : begin + step])
        received += server.read()
    assert received == stream
    assert server.receiver_counters["received_bytes"] == 2000


def test_an_echo_of_a_timestamp_that_was_never_sent_says_nothing() -> None:
    """It would be a round trip of days."""
    between = established(lost={0}, rack_tlp=False)
    client = between.ends[0]
    write(between, 100)
    between.run(lambda: client.sender_counters["timeouts"] == 1)
    before = client.smoothed_round_trip_ps
    sent, echoed = between.log[-1][2]["timestamps"]  # type: ignore[misc]
    header = bytes_of(1, 101, "A", stamps=(echoed, (sent - 2**30) % 2**32))  # type: ignore[has-type]
    client.on_segment(between.now_ps, header)
    assert client.in_flight_bytes == 0
    assert client.smoothed_round_trip_ps == before
