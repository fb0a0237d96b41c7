"""What a NIC does around its queue pairs: who gets what, who goes first, what is dropped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.utils import rdpcap

from tests.transport.rdma_pair import (
    RATE_BPS,
    TIMEOUT_PS,
    US,
    cabled_pair,
    fixed_window,
    ideal_wire,
    random_bytes,
    wired_pair,
)
from weft.engine import (
    Collector,
    CompletionQueue,
    Engine,
    Link,
    Nic,
    PcapWriter,
    RcQueuePair,
    TransmitPort,
    build_packet,
    parse_packet,
    retransmission_timeout_ps,
)

TO_B: dict[str, Any] = {
    "source_mac": "02:00:00:00:00:01",
    "destination_mac": "02:00:00:00:00:02",
    "source_ip": "10.0.0.1",
    "destination_ip": "10.0.0.2",
    "bth": {"opcode": 0x11, "destination_qp": 0x102},
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"destination_mac": "02:00:00:00:00:03"}, "foreign_mac"),
        ({"destination_ip": "10.0.0.3"}, "foreign_address"),
        ({"bth": {"opcode": 0x11, "destination_qp": 0x103}}, "unknown_queue_pair"),
        ({"bth": {"opcode": 0x64, "destination_qp": 0xFFFFFF}}, "foreign_address"),  # no such group
    ],
)
def test_what_is_for_nobody_is_counted(change: dict[str, Any], reason: str) -> None:
    pair = wired_pair()
    pair.engine.inject(pair.b.nic, 0, build_packet({**TO_B, **change}))  # type: ignore[typeddict-item]
    pair.step(ideal_wire)
    stats = pair.b.nic.stats(0)
    assert stats["received_packets"] == 0
    assert {name: count for name, count in stats["dropped"].items() if count} == {reason: 1}


def test_parse_errors_and_other_traffic_are_counted() -> None:
    pair = wired_pair()
    frame = build_packet(TO_B)  # type: ignore[arg-type]
    arp = b"\xff" * 6 + bytes(6) + b"\x08\x06" + bytes(28)
    for data in (frame[:40], frame[:-1] + b"\0", arp, b"", frame):
        pair.engine.inject(pair.b.nic, 0, data)
    pair.step(ideal_wire)
    stats = pair.b.nic.stats(0)
    assert (stats["received_packets"], stats["received_bytes"], stats["not_roce_packets"]) == (
        1,
        len(frame),
        1,
    )
    assert {name: count for name, count in stats["dropped"].items() if count} == {
        "truncated": 2,
        "bad_icrc": 1,
    }


def test_queue_pairs_take_turns_and_acknowledgements_go_first() -> None:
    engine = Engine()
    link, tap = Link(engine), Collector(engine)
    link.connect(tap)
    nic = Nic(engine, "sender")
    nic.add_port(TransmitPort(engine, link, rate_bps=RATE_BPS), mac=TO_B["destination_mac"], addresses=["10.0.0.2"])
    completions = CompletionQueue(engine)
    queue_pairs = [
        RcQueuePair(
            nic,
            0,
            completions,
            queue_pair=number,
            remote_queue_pair=number,
            destination_mac=TO_B["source_mac"],
            destination_ip="10.0.0.1",
            congestion_control=fixed_window(1 << 20),
            retransmission_timeout_ps=TIMEOUT_PS,
        )
        for number in (0x20, 0x21, 0x22)
    ]
    for queue_pair in queue_pairs:
        queue_pair.post_write(None, 0, 20 * 1024, 0, 0)
    request = {**TO_B, "bth": {"opcode": 0x0A, "destination_qp": 0x21, "acknowledge_request": True}}
    engine.inject(nic, 0, build_packet(request), 10 * serialisation_of_a_packet())  # type: ignore[arg-type]
    engine.run_for(4 * US)
    sent = [parse_packet(data)[0]["bth"] for _, _, data in tap.packets]
    acknowledgements = [at for at, bth in enumerate(sent) if bth["opcode"] == 0x11]
    data = [bth["destination_qp"] for bth in sent if bth["opcode"] != 0x11]
    assert len(data) > 30
    # The first packet left before the others had anything to send.
    assert data == [0x20, *([0x20, 0x21, 0x22] * len(data))[: len(data) - 1]]
    # The request came while the tenth or eleventh packet was being sent; its answer is the next.
    assert acknowledgements in ([10], [11])


def serialisation_of_a_packet() -> int:
    return (1024 + 58) * 80  # bytes at 100 Gb/s


def test_planes_are_independent() -> None:
    engine = Engine()
    nics = [Nic(engine, "left"), Nic(engine, "right")]
    links = {}
    for side, nic in enumerate(nics):
        for plane in range(2):
            link = Link(engine, name=f"{side}.{plane}", delay_ps=US)
            port = TransmitPort(engine, link, rate_bps=RATE_BPS)
            nic.add_port(port, mac=f"02:00:0{plane}:00:00:0{side + 1}", addresses=[f"10.{plane}.0.{side + 1}"])
            links[side, plane] = link
    for (side, plane), link in links.items():
        link.connect(nics[1 - side], plane)
    completions = CompletionQueue(engine)
    pairs: dict[tuple[int, int], RcQueuePair] = {}
    for side, nic in enumerate(nics):
        for plane in range(2):
            pairs[side, plane] = RcQueuePair(
                nic,
                plane,
                completions,
                queue_pair=0x30 + plane,
                remote_queue_pair=0x30 + plane,
                destination_mac=f"02:00:0{plane}:00:00:0{2 - side}",
                destination_ip=f"10.{plane}.0.{2 - side}",
                congestion_control=fixed_window(1 << 20),
                retransmission_timeout_ps=TIMEOUT_PS,
            )
    source, target = random_bytes(100_000), np.zeros(100_000, np.uint8)
    local, remote = nics[0].register_memory(source), nics[1].register_memory(target)
    for plane in range(2):
        pairs[0, plane].post_write(local, 50_000 * plane, 50_000, 50_000 * plane, remote.rkey)
    engine.run()
    assert np.array_equal(source, target)
    assert [nics[1].stats(plane)["received_packets"] for plane in range(2)] == [49, 49]
    done = [completion["completed_ps"] for completion in completions.poll()]
    assert done[0] == done[1]
    # A queue pair takes packets of its own plane only.
    stray = {**TO_B, "destination_mac": "02:00:01:00:00:02", "destination_ip": "10.1.0.2"}
    stray["bth"] = {"opcode": 0x11, "destination_qp": 0x30}
    engine.inject(nics[1], 1, build_packet(stray))  # type: ignore[arg-type]
    engine.run()
    assert nics[1].stats(1)["dropped"]["unknown_queue_pair"] == 1


def test_a_detached_queue_pair_gets_nothing() -> None:
    pair = cabled_pair(retry_limit=1)
    pair.b.nic.detach(pair.b.queue_pair)
    pair.a.queue_pair.post_write(None, 0, 0, 0, 0)
    pair.engine.run()
    assert [c["status"] for c in pair.a.completions.poll()] == ["retry_exceeded"]
    assert pair.b.nic.stats(0)["dropped"]["unknown_queue_pair"] == 2
    with pytest.raises(ValueError, match="not attached"):
        pair.b.nic.detach(pair.b.queue_pair)


def test_numbers_are_not_given_twice() -> None:
    pair = cabled_pair()
    first, second = (pair.a.nic.allocate_queue_pair_number() for _ in range(2))
    assert first != second
    with pytest.raises(ValueError, match="257 is in use"):
        pair.a.connect(pair.b, 4)
    with pytest.raises(ValueError, match="has no port 1"):
        pair.a.nic.stats(1)


@pytest.mark.parametrize("number", [0x11, 0xFFFF, 0x1_0000, 0xFF_FFFE])
def test_a_number_anywhere_is_found_while_it_is_attached(number: int) -> None:
    pair = wired_pair()
    queue_pair = RcQueuePair(
        pair.b.nic,
        0,
        CompletionQueue(pair.engine),
        queue_pair=number,
        remote_queue_pair=1,
        destination_mac=pair.a.mac,
        destination_ip=pair.a.ip(4),
        congestion_control=fixed_window(),
        retransmission_timeout_ps=TIMEOUT_PS,
    )
    packet = build_packet({**TO_B, "bth": {"opcode": 0x11, "destination_qp": number}})  # type: ignore[typeddict-item]
    pair.engine.inject(pair.b.nic, 0, packet)
    pair.step(ideal_wire)
    assert pair.b.nic.stats(0)["received_packets"] == 1
    pair.b.nic.detach(queue_pair)
    pair.engine.inject(pair.b.nic, 0, packet)
    pair.step(ideal_wire)
    stats = pair.b.nic.stats(0)
    assert (stats["received_packets"], stats["dropped"]["unknown_queue_pair"]) == (1, 1)


def test_the_others_of_a_nic_go_on_when_one_is_detached() -> None:
    pair = wired_pair()
    numbers = (0x20, 0x21, 0x22)
    queue_pairs = [
        RcQueuePair(
            pair.b.nic,
            0,
            CompletionQueue(pair.engine),
            queue_pair=number,
            remote_queue_pair=1,
            destination_mac=pair.a.mac,
            destination_ip=pair.a.ip(4),
            congestion_control=fixed_window(),
            retransmission_timeout_ps=TIMEOUT_PS,
        )
        for number in numbers
    ]
    for detached, queue_pair in enumerate(queue_pairs, start=1):
        pair.b.nic.detach(queue_pair)
        pair.b.nic.reset_stats()
        for number in numbers:
            packet = build_packet({**TO_B, "bth": {"opcode": 0x11, "destination_qp": number}})  # type: ignore[typeddict-item]
            pair.engine.inject(pair.b.nic, 0, packet)
        pair.step(ideal_wire)
        assert pair.b.nic.stats(0)["received_packets"] == len(numbers) - detached


def test_a_capture_reads_back(tmp_path: Path) -> None:
    pair = cabled_pair()
    capture = PcapWriter(str(tmp_path / "a.pcap"))
    pair.a.nic.set_capture(0, capture)
    pair.a.queue_pair.post_write(None, 0, 2500, 0, pair.b.nic.register_sink(2500).rkey)
    pair.engine.run()
    capture.close()
    opcodes = [parse_packet(bytes(frame))[0]["bth"]["opcode"] for frame in rdpcap(str(tmp_path / "a.pcap"))]
    assert opcodes == [0x06, 0x07, 0x08, 0x11, 0x11, 0x11]


def test_the_timeout_stands_above_path_and_host() -> None:
    assert retransmission_timeout_ps(10 * US, round_trips=4) == 40 * US
    # 5 ms of a late process are 500 us of emulated time if that runs ten times slower.
    assert retransmission_timeout_ps(10 * US, wall_clock_floor_ns=5_000_000, dilation=10) == 500 * US
    with pytest.raises(ValueError, match="dilation is 0"):
        retransmission_timeout_ps(10 * US, dilation=0)


def test_completions_can_be_waited_for() -> None:
    pair = cabled_pair()
    assert not pair.a.completions.wait(1, 0)
    pair.a.queue_pair.post_write(None, 0, 0, 0, 0, work_id=1)
    pair.a.queue_pair.post_write(None, 0, 0, 0, 0, work_id=2)
    pair.engine.run()
    assert pair.a.completions.wait(2, 0)
    assert [c["work_id"] for c in pair.a.completions.poll(1)] == [1]
    assert [c["work_id"] for c in pair.a.completions.poll(9)] == [2]


def test_a_line_does_not_wake_when_there_is_nothing_to_send() -> None:
    pair = cabled_pair()
    source = random_bytes(1000)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    pair.engine.run()
    assert target.tobytes() == source.tobytes()
    assert pair.engine.events_served == 3  # packet, acknowledgement, the timer, which finds that everything has arrived


def test_a_window_that_is_full_keeps_the_line_asleep_until_an_acknowledgement() -> None:
    pair = cabled_pair(window_bytes=3000, path_mtu_bytes=1024, ack_interval_packets=1)
    source = random_bytes(20 * 1024)
    target = np.zeros_like(source)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    pair.engine.run()
    assert target.tobytes() == source.tobytes()
    wakes = pair.engine.events_served - 2 * 20 - 1  # arrivals both ways, and the timer
    assert wakes < 20 / 2
