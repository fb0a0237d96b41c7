"""Dynamic thresholds, reservations and accounts of a switch's shared memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.ports import GBPS, Output, make_output
from weft.engine import Engine, SharedBuffer

CLASS = 3


def make_switch(engine: Engine, ports: int, buffer: SharedBuffer, rate_bps: int = GBPS) -> list[Output]:
    outputs = [make_output(engine, rate_bps) for _ in range(ports)]
    for number, output in enumerate(outputs):
        buffer.add_port(number)
        output.port.set_buffer(buffer, number)
    return outputs


def flood(outputs: Sequence[Output], size: int, packets: int) -> None:
    for _ in range(packets):
        for output in outputs:
            output.port.enqueue(bytes(size), CLASS)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("congested", [1, 2, 5])
def test_congested_queues_settle_at_the_dynamic_threshold(engine: Engine, alpha: float, congested: int) -> None:
    """Choudhury and Hahne, section III: n queues hold alpha B / (1 + alpha n) each."""
    capacity, size = 1_000_000, 100
    buffer = SharedBuffer(engine, capacity_bytes=capacity, alpha=[alpha] * 8)
    outputs = make_switch(engine, 8, buffer)
    flood(outputs[:congested], size, 2 * capacity // size)
    expected = alpha * capacity / (1 + alpha * congested)
    for output in outputs[:congested]:
        assert abs(output.port.queue_depth_bytes - expected) <= size * (1 + alpha * congested)
    # What is left is 1 / (1 + alpha n) of the memory, so that a new queue finds space.
    assert buffer.threshold_bytes(CLASS) == pytest.approx(expected, abs=size * (1 + alpha * congested))


def test_reservations_cannot_be_taken_by_others(engine: Engine) -> None:
    reserved = [0] * 8
    reserved[CLASS] = 10_000
    buffer = SharedBuffer(engine, capacity_bytes=100_000, reserved_bytes=reserved, alpha=[64.0] * 8)
    outputs = make_switch(engine, 4, buffer)
    flood(outputs[:1], 1000, 200)
    # One packet is being sent. The queue holds its own 10,000 and, of the 60,000 shared, all that fits.
    assert outputs[0].port.queue_depth_bytes == 70_000
    for output in outputs[1:]:
        output.port.enqueue(bytes(60), CLASS)
        flood([output], 1000, 20)
        assert output.port.queue_depth_bytes == 10_000


def test_a_refusal_is_a_counted_tail_drop(engine: Engine) -> None:
    buffer = SharedBuffer(engine, capacity_bytes=2500)
    (output,) = make_switch(engine, 1, buffer)
    taken = [output.port.enqueue(bytes(1000), CLASS) for _ in range(4)]
    assert taken == [True, True, True, False]
    stats = output.port.stats()
    assert stats["tail_dropped"] == stats["classes"][CLASS]["tail_dropped"] == {"packets": 1, "bytes": 1000}
    assert buffer.stats()["used_bytes"] == stats["queue_depth_bytes"] == 2000


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(1, 3000), st.integers(0, 20_000_000)),
        max_size=120,
    ),
    st.integers(5_000, 40_000),
    st.sampled_from([0.125, 1.0, 4.0]),
    st.sampled_from([0, 100]),
)
def test_accounts_equal_what_waits(
    packets: list[tuple[int, int, int, int]], capacity: int, alpha: float, reserved: int
) -> None:
    engine = Engine()
    buffer = SharedBuffer(engine, capacity_bytes=capacity, alpha=[alpha] * 8, reserved_bytes=[reserved] * 8)
    outputs = make_switch(engine, 4, buffer)

    def check() -> None:
        stats = buffer.stats()
        waiting = [output.port.stats() for output in outputs]
        for number, port in enumerate(waiting):
            queues = [each["queue_depth_bytes"] for each in port["classes"]]
            assert stats["ports"][number]["queue_bytes"] == queues
        assert stats["used_bytes"] == sum(port["queue_depth_bytes"] for port in waiting) <= capacity
        assert stats["class_bytes"] == [
            sum(port["classes"][each]["queue_depth_bytes"] for port in waiting) for each in range(8)
        ]
        assert stats["shared_used_bytes"] <= stats["shared_capacity_bytes"]

    for port, priority_class, size, time_ps in packets:
        engine.schedule_at(time_ps, lambda p=port, c=priority_class, s=size: outputs[p].port.enqueue(bytes(s), c))
    for until_ps in (3_000_000, 10_000_000, 10**12):
        engine.run_until(until_ps)
        check()
    assert buffer.stats()["used_bytes"] == buffer.stats()["shared_used_bytes"] == 0


def test_what_cannot_fit_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="a buffer of 0 B"):
        SharedBuffer(engine, capacity_bytes=0)
    with pytest.raises(ValueError, match="alpha is 0"):
        SharedBuffer(engine, capacity_bytes=1, alpha=[0.0] * 8)
    buffer = SharedBuffer(engine, capacity_bytes=10_000, reserved_bytes=[1000] * 8)
    buffer.add_port(1)
    with pytest.raises(ValueError, match=r"reservation of port 2 of 8000 B does not fit.*2000 B are left"):
        buffer.add_port(2)
    with pytest.raises(ValueError, match="port 1 is there already"):
        buffer.add_port(1)
