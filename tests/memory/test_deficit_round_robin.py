"""Shares of deficit weighted round robin, beside strict priority."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.ports import GBPS, make_output
from weft.engine import Engine, Link, TransmitPort


def quanta(**classes: int) -> list[int]:
    return [classes.get(f"c{number}", 0) for number in range(8)]


def test_backlogged_classes_share_by_their_quanta(engine: Engine) -> None:
    """Over any time each class gets quantum / sum of quanta, but for one round and one packet."""
    weights = {1: 3000, 2: 6000, 5: 1500}
    output = make_output(
        engine, 8 * GBPS, queue_capacity_bytes=1 << 24, quantum_bytes=quanta(c1=3000, c2=6000, c5=1500)
    )
    for _ in range(800):
        for priority_class in weights:
            output.port.enqueue(bytes([priority_class]) * (700 + 100 * priority_class), priority_class)
    engine.run_until(1_060_000_000)  # a byte each nanosecond
    sent = Counter[int]()
    for _, _, data in output.collector.packets:
        sent[data[0]] += len(data)
    rounds = sum(sent.values()) / sum(weights.values())
    assert rounds > 100
    for priority_class, quantum in weights.items():
        assert abs(sent[priority_class] - rounds * quantum) <= quantum + 1200


def test_strict_classes_go_before_all_weighted_ones(engine: Engine) -> None:
    output = make_output(engine, GBPS, quantum_bytes=quanta(c4=1000, c7=1000))
    for priority_class in (0, 7, 7, 4, 4, 0, 6):
        output.port.enqueue(bytes([priority_class]) * 1000, priority_class)
    engine.run()
    # The first packet found the port idle; classes 6 and 0 are strict, though 7 and 4 have higher numbers.
    assert [data[0] for _, _, data in output.collector.packets] == [0, 6, 0, 4, 7, 4, 7]


def test_a_class_alone_takes_the_whole_line(engine: Engine) -> None:
    output = make_output(engine, GBPS, quantum_bytes=quanta(c0=64, c1=9000))
    for _ in range(20):
        output.port.enqueue(bytes(1500), 0)
    engine.run()
    assert [time for time, _, _ in output.collector.packets] == [12_000_000 * (i + 1) for i in range(20)]


def test_a_class_that_was_idle_has_saved_nothing(engine: Engine) -> None:
    output = make_output(engine, GBPS, quantum_bytes=quanta(c0=1000, c1=1000))
    for _ in range(50):
        output.port.enqueue(b"0" * 1000, 0)
    engine.run_until(20 * 8_000_000 + 1)
    for _ in range(10):
        output.port.enqueue(b"1" * 1000, 1)
    engine.run()
    order = "".join(chr(data[0]) for _, _, data in output.collector.packets)
    assert order == "0" * 21 + "10" * 10 + "0" * 19


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from([0, 64, 500, 1500, 9000]), min_size=8, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 9000)), max_size=60),
)
def test_everything_leaves_back_to_back_and_in_order_within_its_class(
    quantum_bytes: list[int], packets: list[tuple[int, int]]
) -> None:
    engine = Engine()
    output = make_output(engine, 8 * GBPS, queue_capacity_bytes=1 << 24, quantum_bytes=quantum_bytes)
    for index, (priority_class, size) in enumerate(packets):
        output.port.enqueue(bytes([priority_class, index]) + bytes(size), priority_class)
    engine.run()
    left = output.collector.packets
    assert len(left) == len(packets)
    assert (left[-1][0] if left else 0) == sum(size + 2 for _, size in packets) * 1000
    for priority_class in range(8):
        order = [data[1] for _, _, data in left if data[0] == priority_class]
        assert order == sorted(order)


def test_a_quantum_too_small_to_be_served_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="quantum_bytes is 63"):
        TransmitPort(engine, Link(engine), quantum_bytes=[63] + 7 * [0])
