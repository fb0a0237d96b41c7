"""Whatever happens between them, two ends deliver exactly the bytes, in order, and come to an end."""

import itertools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tcp.two_ends import MILLISECOND_PS, SECOND_PS, TwoEnds
from weft.engine._core import TcpConnection, tcp_congestion_control_names


class BadChannel:
    """Loses, doubles, delays and marks, each with a probability, until `well_after` segments have passed."""

    def __init__(self, seed: int, loss: float, doubling: float, reordering: float, marking: float, well_after: int):
        self.random = random.Random(seed)
        self.loss, self.doubling, self.reordering, self.marking = loss, doubling, reordering, marking
        self.well_after = well_after

    def __call__(self, _sender: int, number: int, _segment: bytes) -> list[tuple[int, bool]]:
        if number >= self.well_after:
            return [(MILLISECOND_PS, False)]
        if self.random.random() < self.loss:
            return []
        copies = 2 if self.random.random() < self.doubling else 1
        return [(self.delay_ps(), self.random.random() < self.marking) for _ in range(copies)]

    def delay_ps(self) -> int:
        late = self.random.random() < self.reordering
        return MILLISECOND_PS + (self.random.randrange(5 * MILLISECOND_PS) if late else 0)


channels = st.builds(
    BadChannel,
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0, 0.02, 0.1, 0.3]),
    doubling=st.sampled_from([0, 0.1]),
    reordering=st.sampled_from([0, 0.1, 0.5]),
    marking=st.sampled_from([0, 0.2, 1]),
    well_after=st.just(3000),
)
settings_of_an_end = st.fixed_dictionaries(
    {
        "sack": st.booleans(),
        "rack_tlp": st.booleans(),
        "timestamps": st.booleans(),
        "window_scaling": st.booleans(),
        "nagle": st.booleans(),
        "ecn": st.booleans(),
        "initial_sequence": st.sampled_from([0, 1, 2**31 - 1, 2**32 - 1, 2**32 - 3000, 12345]),
        "maximum_segment_bytes": st.sampled_from([64, 536, 1460]),
        "receive_buffer_bytes": st.sampled_from([1, 700, 4000, 65535, 1 << 20]),
    }
)
CONTROLS = tuple(tcp_congestion_control_names())


class FlightChecks:
    """Looks at every new segment as it leaves: the window has room for it, and so has the receiver."""

    def __init__(self, between: TwoEnds) -> None:
        self.between = between
        self.new_segments = 0
        self.highest = [0, 0]
        between.on_sent.append(self)

    def __call__(self, sender: int, fields: dict[str, object]) -> None:
        end = self.between.ends[sender]
        if end.state in ("syn_sent", "syn_received", "closed"):
            return
        assert end.room_in_receiver_bytes >= 0
        sent_segments = end.sender_counters["sent_segments"] - end.sender_counters["retransmitted_segments"]
        is_new, self.highest[sender] = sent_segments > self.highest[sender], sent_segments
        if is_new and not end.in_recovery and end.sender_counters["window_probes"] == 0:
            # Limited transmit sends two segments more; FIN has a number of its own.
            assert end.pipe_bytes <= max(end.window_bytes, end.segment_bytes) + 2 * end.segment_bytes + 1
            self.new_segments += 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    channel=channels,
    control=st.sampled_from(CONTROLS),
    ends=st.tuples(settings_of_an_end, settings_of_an_end),
    sizes=st.tuples(st.sampled_from([0, 1, 1000, 30_000]), st.sampled_from([0, 1, 5000])),
)
def test_both_streams_arrive(
    channel: BadChannel, control: str, ends: tuple[dict[str, int], dict[str, int]], sizes: tuple[int, int]
) -> None:
    client, server = (TcpConnection(congestion_control=control, **end) for end in ends)  # type: ignore[arg-type]
    # A window of a byte takes a segment and a probe for every byte.
    most = [300 if end["receive_buffer_bytes"] == 1 else 30_000 for end in reversed(ends)]
    data = [random.Random(each).randbytes(min(size)) for each, size in enumerate(zip(sizes, most, strict=True))]
    between = TwoEnds(client, server, channel)
    FlightChecks(between)
    client.write(data[0])
    client.close()
    between.run(lambda: server.state != "listen" or client.state == "closed")
    if server.state != "listen":
        server.write(data[1])
    server.close()
    between.collect()
    between.run()
    ends_of_both = {client.end, server.end}
    if "timed_out" not in ends_of_both:
        assert between.received == [data[1], data[0]]
    # The last acknowledgement may be lost for longer than TIME-WAIT takes.
    assert ends_of_both == {"closed"} or channel.loss > 0
    assert ends_of_both <= {"closed", "timed_out", "reset"}
    assert data[1].startswith(between.received[0])
    assert data[0].startswith(between.received[1])


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("sack", [True, False])
def test_sequence_numbers_wrap(control: str, sack: bool) -> None:
    """Past 2^32 in both directions, with losses about the wrap."""
    client = TcpConnection(congestion_control=control, initial_sequence=2**32 - 20_000, sack=sack)
    server = TcpConnection(congestion_control=control, initial_sequence=2**32 - 5, sack=sack)
    between = TwoEnds(client, server, BadChannel(1, 0.05, 0, 0, 0, 100))
    data = random.Random(2).randbytes(100_000)
    client.write(data)
    client.close()
    between.run(lambda: server.state == "established")
    server.close()
    between.collect()
    between.run()
    assert between.received[1] == data
    assert client.end == server.end == "closed"


def test_nothing_answers() -> None:
    """R2 of RFC 9293, section 3.8.3: the connection ends after so many retransmissions."""
    client = TcpConnection(most_retransmissions=3)
    between = TwoEnds(
        client, TcpConnection(), lambda _sender, number, _segment: [(MILLISECOND_PS, False)] * (number < 3)
    )
    between.establish()
    client.write(b"x" * 10_000)
    between.collect()
    between.run(lambda: client.state == "closed")
    assert client.end == "timed_out"
    assert client.sender_counters["timeouts"] == 4
    assert between.now_ps > 200 * MILLISECOND_PS * (1 + 2 + 4 + 8)


def test_no_peer() -> None:
    client = TcpConnection()
    client.connect()
    now_ps, times = 0, []
    while client.state != "closed":
        while client.take_segment(now_ps) is not None:
            times.append(now_ps)
        if client.next_deadline_ps is not None:
            now_ps = client.next_deadline_ps
            client.on_timer(now_ps)
    times.append(now_ps)
    waits = [round((later - earlier) / SECOND_PS) for earlier, later in itertools.pairwise(times)]
    assert waits == [1, 2, 4, 8, 16, 32, 64]
    assert client.end == "timed_out"
