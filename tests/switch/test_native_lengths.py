"""Packets that carry their payload as a length go through switches as if all their bytes, zeros, were there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native_twin import CPU_PORT, Twin
from paths_program import (
    CLONE,
    EXIT,
    MULTICAST,
    RECIRCULATE,
    RESUBMIT,
    TRUNCATE,
    UNICAST,
    paths_json,
)

from weft.compiler import compile_file
from weft.engine import (
    Collector,
    CongestionControl,
    Engine,
    Link,
    TransmitPort,
    _core,
    make_congestion_control,
)
from weft.switch.backend import CloneSession, PacketIn, Replica
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch

RATE_BPS = 100 * 10**9
PORTS = range(1, 9)
Arrivals = list[tuple[int, int, bytes]]


def large_window() -> CongestionControl:
    """More than is ever sent."""
    return make_congestion_control(
        "fixed-window",
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=10**6,
        frame_bytes=1100,
        parameters={"window_bytes": 10**6},
    )


def sender(engine: Engine, destination_mac: str, link: Link) -> _core.RcQueuePair:
    """A queue pair whose NIC sends into the link; nobody answers."""
    nic = _core.Nic(engine, "sender")
    transmit_port = TransmitPort(engine, link, rate_bps=RATE_BPS)
    port = nic.add_port(transmit_port, mac="02:00:00:00:00:01", addresses=["10.0.0.1"])
    return _core.RcQueuePair(
        nic,
        port,
        None,
        queue_pair=0x100,
        remote_queue_pair=0x200,
        destination_mac=destination_mac,
        destination_ip="10.0.0.2",
        congestion_control=large_window(),
        retransmission_timeout_ps=10**15,
        retry_limit=0,
        telemetry=True,
    )


def write_lengths(destination_mac: str, engine: Engine, link: Link, size_bytes: int) -> None:
    queue_pair = sender(engine, destination_mac, link)
    queue_pair.post_write_as_length(size_bytes, remote_address=0, rkey=1)
    engine.run_for(10**9)


class Rig:
    """A switch with a collector behind each port, and what it is sent."""

    def __init__(self, program: Program, capacity_bytes: int = 10**6) -> None:
        self.engine = Engine(seed=1)
        self.switch = NativeSwitch(self.engine, "leaf", cpu_port=CPU_PORT)
        self.switch.load(program)
        self.collector = Collector(self.engine)
        self.ports = []
        for number in PORTS:
            link = Link(self.engine)
            link.connect(self.collector, number)
            self.ports.append(
                TransmitPort(self.engine, link, rate_bps=RATE_BPS // 10, queue_capacity_bytes=capacity_bytes)
            )
            self.switch.native.attach_port(number, self.ports[-1])
        self.switch.multicast_group_set(3, [Replica(1, 11), Replica(2, 12), Replica(2, 13)])
        self.switch.clone_session_set(4, CloneSession((Replica(7, 0),)))
        self.switch.clone_session_set(5, CloneSession((Replica(7, 1), Replica(8, 2)), packet_length_bytes=300))
        self.entrance = Link(self.engine)
        self.entrance.connect(self.switch.native, 4)

    def outcome(self) -> tuple[Arrivals, list[bytes], dict[str, int], list[object]]:
        """What left, what went to the controller, what was dropped, and what the ports counted."""
        packet_ins = []
        while (event := self.switch.wait_stream_event(0)) is not None:
            assert isinstance(event, PacketIn)
            packet_ins.append(event.data)
        return (
            self.collector.packets,
            packet_ins,
            self.switch.drops(),
            [port.stats() for port in self.ports],
        )


def compare(program: Program, destination_mac: str, size_bytes: int, capacity_bytes: int = 10**6) -> Arrivals:
    """Send lengths, and the same frames written out, through the program; what left, which must be the same."""
    engine = Engine(seed=1)
    written_out = Collector(engine)
    link = Link(engine)
    link.connect(written_out)
    write_lengths(destination_mac, engine, link, size_bytes)

    bytes_rig = Rig(program, capacity_bytes)
    transmit_port = TransmitPort(bytes_rig.engine, bytes_rig.entrance, rate_bps=RATE_BPS)
    for _, _, frame in written_out.packets:
        transmit_port.enqueue(frame)
    bytes_rig.engine.run_for(10**9)
    lengths_rig = Rig(program, capacity_bytes)
    write_lengths(destination_mac, lengths_rig.engine, lengths_rig.entrance, size_bytes)
    assert lengths_rig.outcome() == bytes_rig.outcome()
    assert lengths_rig.switch.native.received_packets == len(written_out.packets)
    return lengths_rig.collector.packets


@pytest.fixture(scope="module")
def paths() -> Program:
    return Twin(paths_json()).program


@pytest.fixture(scope="module")
def lengths() -> Program:
    source = Path(__file__).parent / "programs" / "lengths.p4"
    return load_program(compile_file(source).json_text().encode())


def order(ingress: int, egress: int = 0, argument: int = 1) -> str:
    """The MAC address that the paths program reads as orders."""
    return ":".join(f"{byte:02x}" for byte in (ingress, egress, argument >> 8, argument & 0xFF, 0, 0))


@pytest.mark.parametrize("size_bytes", [1, 3, 1000, 5000])
def test_frames_have_the_lengths_of_real_ones(size_bytes: int) -> None:
    engine = Engine(seed=1)
    for as_length in (False, True):
        collector, link = Collector(engine), Link(engine)
        link.connect(collector)
        queue_pair = sender(engine, "02:00:00:00:00:02", link)
        if as_length:
            queue_pair.post_write_as_length(size_bytes, remote_address=0, rkey=1)
        else:
            queue_pair.post_write(None, 0, size_bytes, remote_address=0, rkey=1)
        engine.run_for(10**9)
        if not as_length:
            # But for the iCRC, its last four bytes.
            expected = [frame[:-4] + bytes(4) for _, _, frame in collector.packets]
    assert [frame for _, _, frame in collector.packets] == expected
    assert collector.received_bytes == sum(map(len, expected))


@pytest.mark.parametrize(
    ("ingress", "egress", "argument"),
    [
        (UNICAST, 0, 6),
        (MULTICAST, 0, 3),
        (CLONE, 0, 4),
        (CLONE, 0, 5),
        (UNICAST, CLONE, 5),
        (RESUBMIT, 0, 1),
        (TRUNCATE, 0, 1),
        (UNICAST, RECIRCULATE, 1),
        (EXIT, 0, 1),
        (UNICAST, 0, CPU_PORT),
    ],
)
def test_every_path_through_a_switch(paths: Program, ingress: int, egress: int, argument: int) -> None:
    compare(paths, order(ingress, egress, argument), 3000)


def test_queues_hold_whole_packets(paths: Program) -> None:
    arrived = compare(paths, order(UNICAST), 10_000, capacity_bytes=3000)
    assert 1 < len(arrived) < 10


@pytest.mark.parametrize("action", ["forward", "parse", "parse too far", "checksum"])
def test_programs_that_look_at_the_payload(lengths: Program, action: str) -> None:
    number = ["forward", "parse", "parse too far", "checksum"].index(action)
    arrived = compare(lengths, f"02:00:00:00:00:{number:02x}", 150)
    (frame,) = (frame for _, _, frame in arrived)
    assert int.from_bytes(frame[6:12], "big") == len(frame)
    assert (frame[12:14] == b"\xee\xee") is (action == "parse too far")
    assert (frame[213] == 1) is action.startswith("parse")


def test_payloads_that_a_switch_has_written_out_are_still_accepted(lengths: Program) -> None:
    """Their iCRC was never computed, so a NIC does not look at it."""
    engine = Engine(seed=1)
    switch = NativeSwitch(engine, "leaf")
    switch.load(lengths)
    receiver, back, forth, entrance = (
        _core.Nic(engine, "receiver"),
        Collector(engine),
        Link(engine),
        Link(engine),
    )
    answers = Link(engine)
    answers.connect(back)
    transmit_port = TransmitPort(engine, answers, rate_bps=RATE_BPS)
    port = receiver.add_port(transmit_port, mac="02:00:00:00:00:01", addresses=["10.0.0.2"])
    forth.connect(receiver, port)
    entrance.connect(switch.native, 1)
    switch.native.attach_port(2, TransmitPort(engine, forth, rate_bps=RATE_BPS))
    memory = np.full(1000, 7, np.uint8)
    region = receiver.register_memory(memory)
    queue_pair = _core.RcQueuePair(
        receiver,
        port,
        None,
        queue_pair=0x200,
        remote_queue_pair=0x100,
        destination_mac="02:00:00:00:00:02",
        destination_ip="10.0.0.1",
        congestion_control=large_window(),
        retransmission_timeout_ps=10**15,
    )
    requester = sender(engine, "02:00:00:00:00:01", entrance)
    requester.post_write_as_length(500, remote_address=region.virtual_address, rkey=region.rkey)
    engine.run_for(10**9)
    assert queue_pair.stats()["data_bytes_received"] == 500
    ((_, _, answer),) = back.packets
    assert answer[-4:] == bytes(4)  # of lengths, too: no iCRC
    assert (memory == 7).all()  # lengths are written nowhere
