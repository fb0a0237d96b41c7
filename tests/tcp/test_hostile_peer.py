"""A peer that sends anything: a connection may end, but its account of what is under way stays sound."""

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import TCP

from tests.tcp.two_ends import MILLISECOND_PS, TwoEnds
from weft.engine._core import TcpConnection

NEAR = st.integers(-5000, 20_000)
segments = st.builds(
    lambda sequence, acknowledgement, flags, window, size, blocks, stamp: (
        sequence % 2**32,
        acknowledgement % 2**32,
        flags,
        window,
        size,
        [(begin % 2**32, end % 2**32) for begin, end in blocks],
        stamp,
    ),
    st.one_of(NEAR, st.integers(0, 2**32 - 1)),
    st.one_of(NEAR, st.integers(0, 2**32 - 1)),
    st.integers(0, 255),
    st.sampled_from([0, 1, 10, 500, 65535]),
    st.sampled_from([0, 1, 700, 1448, 9000]),
    st.lists(st.tuples(NEAR, NEAR), max_size=3),
    st.one_of(st.none(), st.integers(0, 2**32 - 1)),
)


def bytes_of(
    sequence: int, acknowledgement: int, flags: int, window: int, blocks: object, stamp: int | None
) -> bytes:
    options: list[tuple[str, object]] = []
    if stamp is not None:
        options.append(("Timestamp", (stamp, 0)))
    flat = [edge for block in blocks for edge in block]  # type: ignore[attr-defined]
    if flat:
        options.append(("SAck", tuple(flat)))
    return bytes(
        TCP(sport=2, dport=1, seq=sequence, ack=acknowledgement, flags=flags, window=window, options=options)
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    control=st.sampled_from(["newreno", "cubic", "dctcp"]),
    sack=st.booleans(),
    sent=st.lists(st.tuples(segments, st.integers(0, 300), st.integers(0, 3)), max_size=30),
)
def test_anything_from_a_peer(
    control: str, sack: bool, sent: list[tuple[tuple[object, ...], int, int]]
) -> None:
    client = TcpConnection(congestion_control=control, sack=sack)
    between = TwoEnds(client, TcpConnection(congestion_control=control, sack=sack))
    between.establish()
    client.write(bytes(50_000))
    client.close()
    between.collect()
    now_ps = between.now_ps
    for (sequence, acknowledgement, flags, window, size, blocks, stamp), wait_ms, ecn in sent:
        header = bytes_of(sequence, acknowledgement, flags, window, blocks, stamp)  # type: ignore[arg-type]
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
