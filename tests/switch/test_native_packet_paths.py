"""Clone, resubmit, recirculate, multicast, drop, digest, truncate: as simple_switch's document orders them."""

from __future__ import annotations

from typing import Any

import pytest
from native_twin import CPU_PORT, Twin
from paths_program import (
    ASSERT,
    CLONE,
    DIGEST,
    DROP,
    ENDLESS,
    EXIT,
    MULTICAST,
    RECIRCULATE,
    RESUBMIT,
    TRUNCATE,
    UNICAST,
    paths_json,
    paths_packet,
    report_of,
)

from weft.engine import Collector, Engine, Link, TransmitPort
from weft.switch.backend import CloneSession, Digest, PacketIn, Replica, SwitchBackend
from weft.switch.native import NativeSwitch

GBPS = 10**9


def configure(switch: SwitchBackend) -> None:
    switch.multicast_group_set(3, [Replica(1, 11), Replica(2, 12), Replica(2, 13)])
    switch.clone_session_set(4, CloneSession((Replica(7, 0),)))
    switch.clone_session_set(5, CloneSession((Replica(7, 1), Replica(8, 2)), packet_length_bytes=25))


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(paths_json())
    made.both(configure)
    return made


def test_unicast(twin: Twin) -> None:
    ((port, data),) = twin.process(4, paths_packet(argument=6))
    report = report_of(data)
    assert port == report["egress_port"] == 6
    assert (report["instance_type"], report["kept"], report["lost"], report["length"]) == (
        0,
        1,
        109,
        len(data),
    )


@pytest.mark.parametrize("orders", [(DROP, UNICAST), (UNICAST, DROP)])
def test_drop(twin: Twin, orders: tuple[int, int]) -> None:
    assert twin.process(1, paths_packet(*orders)) == []


def test_egress_spec_511_drops_without_mark_to_drop(twin: Twin) -> None:
    assert twin.process(1, paths_packet(argument=511)) == []


def test_multicast_copies_carry_their_instance(twin: Twin) -> None:
    outputs = twin.process(1, paths_packet(MULTICAST, argument=3))
    reports = [report_of(data) for _, data in outputs]
    assert sorted((port, report["egress_rid"]) for (port, _), report in zip(outputs, reports, strict=True)) == [
        (1, 11),
        (2, 12),
        (2, 13),
    ]
    assert {report["instance_type"] for report in reports} == {5}


def test_drop_in_egress_drops_each_copy(twin: Twin) -> None:
    assert twin.process(1, paths_packet(MULTICAST, DROP, 3)) == []


@pytest.mark.parametrize(("orders", "instance_type"), [((CLONE, UNICAST), 1), ((UNICAST, CLONE), 2)])
def test_clone_keeps_the_field_list_only(twin: Twin, orders: tuple[int, int], instance_type: int) -> None:
    outputs = dict(twin.process(1, paths_packet(*orders, argument=4)))
    assert set(outputs) == {4, 7}
    clone = report_of(outputs[7])
    assert (clone["instance_type"], clone["kept"], clone["lost"]) == (instance_type, 1, 0)


def test_clone_session_truncates_and_replicates(twin: Twin) -> None:
    outputs = dict(twin.process(1, paths_packet(CLONE, argument=5)))
    assert {port: len(data) for port, data in outputs.items()} == {5: len(paths_packet()), 7: 25, 8: 25}


def test_clone_to_an_unknown_session_makes_none(twin: Twin) -> None:
    assert [port for port, _ in twin.process(1, paths_packet(CLONE, argument=6))] == [6]


def test_resubmit_starts_over_with_the_preserved_field(twin: Twin) -> None:
    ((_, data),) = twin.process(1, paths_packet(RESUBMIT))
    assert (report_of(data)["kept"], report_of(data)["lost"]) == (2, 9)


def test_recirculated_packet_is_parsed_again(twin: Twin) -> None:
    ((_, data),) = twin.process(1, paths_packet(UNICAST, RECIRCULATE))
    assert (report_of(data)["kept"], report_of(data)["passes"]) == (2, 2)


def test_endless_resubmission_ends(twin: Twin) -> None:
    assert twin.process(1, paths_packet(RESUBMIT, ENDLESS)) == []
    assert twin.native.drops()["pass_limit"] == 1


def test_digest_carries_the_learn_list(twin: Twin) -> None:
    assert len(twin.process(3, paths_packet(DIGEST, argument=1))) == 1  # the twin compares digests


def test_truncate(twin: Twin) -> None:
    ((_, data),) = twin.process(1, paths_packet(TRUNCATE, payload=100))
    assert len(data) == 40


def test_exit_ends_ingress(twin: Twin) -> None:
    ((_, data),) = twin.process(1, paths_packet(EXIT))
    assert report_of(data)["lost"] == 1


def test_failed_assertion_drops_the_packet(twin: Twin) -> None:
    assert twin.process(1, paths_packet(ASSERT, argument=2)) == []
    assert twin.native.drops()["assertion"] == 1
    assert len(twin.process(1, paths_packet(ASSERT, argument=1))) == 1


# ---- with queues


class Line:
    """A native switch with one slow port, number 1."""

    def __init__(self, **options: Any) -> None:
        self.engine = Engine(seed=1)
        self.switch = NativeSwitch(self.engine, "leaf", **options)
        self.switch.load(Twin(paths_json()).program)
        configure(self.switch)
        self.collector = Collector(self.engine)
        self.link = Link(self.engine)
        self.link.connect(self.collector, 1)
        self.port = TransmitPort(self.engine, self.link, rate_bps=GBPS, queue_capacity_bytes=400)
        self.switch.native.attach_port(1, self.port)

    def receive(self, *packets: bytes) -> list[dict[str, int]]:
        """Reports of what leaves when these arrive at once."""
        for packet in packets:
            self.switch.native.receive(2, packet)
        self.engine.run()
        return [report_of(data) for _, _, data in self.collector.packets]


def test_queue_metadata_in_cells_and_nanoseconds() -> None:
    packet = paths_packet(payload=100 - len(paths_packet(payload=0)))
    first, second, third = Line().receive(packet, packet, packet)
    assert (first["enq_qdepth"], first["deq_timedelta"]) == (0, 0)
    assert (second["enq_qdepth"], second["deq_timedelta"]) == (0, 800)
    # one packet of 100 bytes was waiting: one cell of 80 bytes is full
    assert (third["enq_qdepth"], third["deq_timedelta"], third["deq_qdepth"]) == (1, 1600, 0)


def test_queue_metadata_in_larger_cells() -> None:
    packet = paths_packet(payload=120 - len(paths_packet(payload=0)))
    depths = {
        cell_bytes: [report["enq_qdepth"] for report in Line(cell_bytes=cell_bytes).receive(*[packet] * 4)]
        for cell_bytes in (80, 160, 320)
    }
    # Behind the packet on the line wait 0, 0, 120 and 240 bytes.
    assert depths == {80: [0, 0, 1, 3], 160: [0, 0, 0, 1], 320: [0, 0, 0, 0]}
    for cell_bytes in (0, 40, 100, 240):
        with pytest.raises(ValueError, match=rf"cell_bytes {cell_bytes} \(valid: 80 times a power of two\)"):
            Line(cell_bytes=cell_bytes)


def test_queue_metadata_in_packets_and_microseconds() -> None:
    packet = paths_packet(payload=250 - len(paths_packet(payload=0)))
    line = Line(depth_unit="packets", time_unit="us")
    reports = line.receive(paths_packet(), packet)
    assert [report["enq_qdepth"] for report in reports] == [0, 0]
    assert reports[1]["deq_timedelta"] == 0  # 0.5 µs


def test_tail_drops_are_counted() -> None:
    line = Line()
    packet = paths_packet(payload=100 - len(paths_packet(payload=0)))
    assert len(line.receive(*[packet] * 9)) == 5  # one being sent, four in the queue of 400 bytes
    assert line.switch.drops()["tail_drop"] == 4


def test_unknown_port_and_missing_pipeline_are_counted() -> None:
    line = Line()
    assert line.receive(paths_packet(argument=9)) == []
    assert line.switch.drops()["unknown_port"] == 1
    bare = NativeSwitch(Engine())
    bare.native.receive(1, b"whatever")
    assert bare.drops()["no_pipeline"] == 1


def test_packets_queued_under_a_replaced_program_are_dropped() -> None:
    line = Line()
    for _ in range(3):
        line.switch.native.receive(2, paths_packet())
    line.switch.load(Twin(paths_json()).program)
    line.engine.run()
    assert line.collector.received_packets == 1
    assert line.switch.drops()["pipeline_replaced"] == 2


def test_cpu_port_becomes_a_packet_in() -> None:
    line = Line()
    line.receive(paths_packet(argument=CPU_PORT))
    event = line.switch.wait_stream_event(0)
    assert isinstance(event, PacketIn)
    assert report_of(event.data)["egress_port"] == CPU_PORT


def test_events_of_a_replaced_program_are_gone() -> None:
    twin = Twin(paths_json())
    for switch in (twin.native, twin.oracle):
        switch.process(1, paths_packet(ingress=DIGEST))
        switch.load(twin.program)
        assert switch.wait_stream_event(0) is None
        switch.process(1, paths_packet(ingress=DIGEST))
        assert isinstance(switch.wait_stream_event(0), Digest)
