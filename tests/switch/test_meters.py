"""Meters (RFC 2698 and RFC 2697): the native switch and the oracle give every packet the same colour, at any time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_twin import Twin

from weft.compiler import compile_file
from weft.switch.backend import MeterConfig
from weft.switch.oracle import Timing

PROGRAM = Path(__file__).parent / "programs" / "meters.p4"
PS_PER_NS = 1000

rates = st.integers(0, 2**33)
bursts = st.integers(0, 4000)
configs = st.builds(MeterConfig, rates, bursts, rates, bursts, st.none() | bursts)
arrivals = st.lists(st.tuples(st.integers(0, 3 * 10**8), st.integers(2, 1500)), min_size=1, max_size=30)
"""Gaps in nanoseconds, sizes in bytes."""


@pytest.fixture(scope="module")
def document() -> bytes:
    return compile_file(PROGRAM).json_text().encode()


@settings(max_examples=60, deadline=None)
@given(by_bytes=configs, by_packets=configs, packets=arrivals)
def test_both_switches_see_the_same_colours(
    document: bytes, by_bytes: MeterConfig, by_packets: MeterConfig, packets: list[tuple[int, int]]
) -> None:
    twin = Twin(document)
    twin.both(lambda switch: switch.meter_write("MetersIngress.bytes_meter", 1, by_bytes))
    twin.both(lambda switch: switch.meter_write("MetersIngress.packets_meter", 3, by_packets))
    now_ns = 0
    for gap_ns, size in packets:
        now_ns += gap_ns
        twin.native.engine.run_until(now_ns * PS_PER_NS)
        ((_, native),) = twin.native.process(0, bytes(size))
        (oracle,) = twin.oracle.process(0, bytes(size), Timing(now_ns=now_ns))
        assert native == oracle.data


def test_colours_of_a_burst(document: bytes) -> None:
    """Peak bucket 3 packets, committed bucket 1; after a second, one token has come to each."""
    twin = Twin(document)
    config = MeterConfig(committed_rate=1, committed_burst=1, peak_rate=1, peak_burst=3)
    twin.both(lambda switch: switch.meter_write("MetersIngress.packets_meter", 3, config))
    colours = [twin.process(0, bytes(2))[0][1][1] for _ in range(4)]
    assert colours == [0, 1, 1, 2]
    twin.native.engine.run_until(10**12)
    assert twin.native.process(0, bytes(2)) == [(1, b"\x00\x00")]
    assert twin.native.process(0, bytes(2)) == [(1, b"\x00\x02")]


def test_colours_of_a_single_rate(document: bytes) -> None:
    """Tokens fill the committed bucket first: after three seconds it is full, and one is in the excess bucket."""
    twin = Twin(document)
    config = MeterConfig(committed_rate=1, committed_burst=2, peak_rate=1, peak_burst=2, excess_burst=1)
    twin.both(lambda switch: switch.meter_write("MetersIngress.packets_meter", 3, config))
    assert [twin.process(0, bytes(2))[0][1][1] for _ in range(4)] == [0, 0, 1, 2]
    twin.native.engine.run_until(3 * 10**12)
    assert [twin.native.process(0, bytes(2))[0][1][1] for _ in range(4)] == [0, 0, 1, 2]
