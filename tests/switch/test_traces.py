"""Traces: the native switch and the oracle report the same events for every packet, and tracing changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from router_program import router_document
from test_native_router import configure, ipv4_packet

from weft.switch.trace.events import Copied, CopyTrace, Dropped, Event, Received, Sent, Step
from weft.switch.trace.places import ActionRun, Extracted, ParserEnded, Places, TableApplied

ANY_PACKET = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    made = Twin(router_document())
    made.both(configure)
    made.native.trace.start()
    yield made
    made.native.trace.stop()


def flat(trace: CopyTrace) -> Iterator[Event]:
    """Events of a packet and its copies."""
    for event in trace.events:
        yield event
        if isinstance(event, Copied):
            yield from flat(event.copy)


@ANY_PACKET
@given(
    port=st.sampled_from([0, 1, 2, 3, 4, 5, 6, CPU_PORT]),
    source=st.sampled_from([0x0B000001, 0x0C000001]) | st.integers(0, 0xFFFFFFFF),
    destination=st.sampled_from([0x0A010203, 0x0A010204, 0x0A010205, 0x0A0000FF]),
    ttl=st.integers(0, 255),
    protocol=st.sampled_from([6, 17]),
)
def test_both_switches_report_the_same_of_packets(
    twin: Twin, port: int, source: int, destination: int, ttl: int, protocol: int
) -> None:
    trace = twin.trace(port, ipv4_packet(source, destination, ttl, protocol))
    assert trace.ended


@ANY_PACKET
@given(st.sampled_from([0, 1, 2, 3, 4, CPU_PORT]), st.binary(max_size=60))
def test_both_switches_report_the_same_of_any_bytes(twin: Twin, port: int, data: bytes) -> None:
    trace = twin.trace(port, data)
    assert trace.events[0] == Received(port, 0, data)
    assert any(isinstance(event, Step) and isinstance(event.place, ParserEnded) for event in flat(trace))


def test_a_trace_shows_tables_actions_and_where_the_packet_goes(twin: Twin) -> None:
    events = list(flat(twin.trace(1, ipv4_packet(0x0C000001, 0x0A010203))))
    steps = [event for event in events if isinstance(event, Step)]
    extracted = [step.data for step in steps if isinstance(step.place, Extracted)]
    assert extracted[0] == bytes(range(12)) + b"\x08\x00"
    routed = next(step for step in steps if step.place == TableApplied("routes", (32,)))
    assert routed.values == (0x0A010203,)
    assert routed.match is not None
    (match,), priority = routed.match
    assert (match.value, match.prefix_length, priority) == (0x0A010203, 32, 0)  # type: ignore[union-attr]
    assert any(isinstance(step.place, ActionRun) and step.values == (3, 0x020000000003) for step in steps)
    sent = [event for event in events if isinstance(event, Sent)]
    assert [event.port for event in sent] == [3]


def test_copies_are_reported_where_they_are_made(twin: Twin) -> None:
    trace = twin.trace(3, ipv4_packet(0x0C000001, 0x0A010203))
    copies = [event for event in trace.events if isinstance(event, Copied)]
    assert [event.copy.events[-1].port for event in copies] == [1, 2, CPU_PORT]  # type: ignore[union-attr]


def test_drops_are_reported_with_the_counter_s_reason(twin: Twin) -> None:
    trace = twin.trace(5, ipv4_packet(1, 2))
    assert trace.events[-1] == Dropped("empty_multicast_group")


def test_tracing_keeps_the_state_and_stops() -> None:
    fresh = Twin(router_document())
    fresh.both(configure)
    packet = ipv4_packet(0x0C000001, 0x0A010203)
    before = fresh.process(1, packet)
    fresh.native.trace.start(packets=1)
    assert fresh.process(1, packet) == before
    assert fresh.process(1, packet) == before
    assert len(fresh.native.trace.take()) == 1, "one packet was asked for"
    fresh.native.trace.stop()
    assert fresh.process(1, packet) == before
    assert fresh.native.trace.take() == []
    assert fresh.native.counter_read_all("counter") == fresh.oracle.counter_read_all("counter")


def test_only_packets_of_a_port_are_traced() -> None:
    fresh = Twin(router_document())
    fresh.both(configure)
    fresh.native.trace.start(port=2)
    for port in (1, 2, 1, 2):
        fresh.process(port, ipv4_packet(0x0C000001, 0x0A010203))
    ports = [trace.root.events[0].port for trace in fresh.native.trace.take()]  # type: ignore[union-attr]
    assert ports == [2, 2]


def test_places_have_numbers_of_their_own() -> None:
    places = Places(Twin(router_document()).program)
    assert [places.number(places[number]) for number in range(len(places))] == list(range(len(places)))
