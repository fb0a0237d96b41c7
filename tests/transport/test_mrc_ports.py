"""Ports of a NIC that go down: MRC's queue pairs leave them at once, tell their peers, and come back."""

from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import MS, US, random_bytes
from tests.transport.test_mrc_queue_pair import two_planes
from weft.engine import _core, parse_packet

ENDPOINT_REQUEST = 0xD8


def endpoint_stats(end: Any) -> dict[str, int]:
    return dict(_core.mrc_endpoint_stats(end[0]))


def post(ends: Any, size: int = 4_000_000) -> tuple[Any, Any]:
    (sending, _, sender), (receiving, _, _) = ends
    source = random_bytes(size, 1)
    target = np.zeros_like(source)
    rkey = receiving.register_memory(target).rkey
    sender.post_write(sending.register_memory(source), 0, len(source), 0, rkey, immediate=1, work_id=1)
    return source, target


@pytest.mark.parametrize("down", [0, 1])
@pytest.mark.parametrize("whose", [0, 1])
def test_a_port_that_goes_down_is_left_by_both_ends_and_used_again(down: int, whose: int) -> None:
    """Whether the sender's or the receiver's: no timeout, no blame on the other plane, all arrives."""
    engine, ends, links = two_planes()
    source, target = post(ends)
    engine.run_for(40 * US)
    there = ends[whose][0]
    there.set_port_up(down, False)
    links[2 * whose + down].cut()
    engine.run_for(20 * US)
    left = [down != plane for plane in range(2)]
    assert [end[2].planes_up() for end in ends] == [left, left]
    engine.run_for(20 * US)  # what was on its way has arrived or is lost
    before = ends[1][0].stats(down)["received_packets"]
    engine.run_for(40 * US)
    assert ends[1][0].stats(down)["received_packets"] == before
    there.set_port_up(down, True)
    engine.run_for(60 * US)
    assert [end[2].planes_up() for end in ends] == [[True, True]] * 2
    assert ends[1][0].stats(down)["received_packets"] > before
    engine.run_for(5 * MS)
    assert [each["status"] for each in ends[0][1].poll()] == ["success"]
    assert np.array_equal(source, target)
    assert ends[0][2].stats()["timeouts"] == 0
    assert not [each for each in ends[0][2].evs() if each["plane"] != down and each["state"] == "assumed_bad"]
    told, heard = endpoint_stats(ends[whose]), endpoint_stats(ends[1 - whose])
    assert told["port_updates_sent"] == told["port_updates_confirmed"] == heard["port_updates_received"] == 2


@pytest.mark.parametrize("out", [0, 1])
def test_a_port_that_an_operator_withdraws_is_left_without_a_loss_and_used_again(out: int) -> None:
    """At both ends, as the operator tells all hosts: what is under way arrives, and no peer is told."""
    engine, ends, _ = two_planes()
    source, target = post(ends)
    engine.run_for(40 * US)
    for nic, _, _ in ends:
        _core.withdraw_mrc_ports(nic, [out])
    left = [out != plane for plane in range(2)]
    assert [end[2].planes_up() for end in ends] == [left, left]
    engine.run_for(20 * US)
    before = ends[1][0].stats(out)["received_packets"]
    engine.run_for(40 * US)
    assert ends[1][0].stats(out)["received_packets"] == before
    for nic, _, _ in ends:
        _core.withdraw_mrc_ports(nic, [])
    engine.run_for(20 * US)
    assert ends[1][0].stats(out)["received_packets"] > before
    engine.run_for(5 * MS)
    assert [each["status"] for each in ends[0][1].poll()] == ["success"]
    assert np.array_equal(source, target)
    assert ends[0][2].stats()["retransmitted_packets"] == ends[0][2].stats()["timeouts"] == 0
    assert endpoint_stats(ends[0])["port_updates_sent"] == 0


def test_a_withdrawn_port_is_used_if_no_other_is_up() -> None:
    _, ends, _ = two_planes()
    nic, _, queue_pair = ends[0]
    _core.withdraw_mrc_ports(nic, [1])
    assert queue_pair.planes_up() == [True, False]
    nic.set_port_up(0, False)
    assert queue_pair.planes_up() == [False, True]
    nic.set_port_up(0, True)
    assert queue_pair.planes_up() == [True, False]
    _core.withdraw_mrc_ports(nic, [0, 1])
    assert queue_pair.planes_up() == [True, True]


@pytest.mark.parametrize("port", [-1, 2, 40])
def test_ports_that_are_not_there_cannot_be_withdrawn(port: int) -> None:
    _, ends, _ = two_planes()
    with pytest.raises(ValueError, match=f"has no port {port}"):
        _core.withdraw_mrc_ports(ends[0][0], [0, port])
    assert ends[0][2].planes_up() == [True, True]


def test_an_update_is_repeated_until_the_peer_confirms_it() -> None:
    engine, ends, links = two_planes()
    for link in links:
        link.set_faults(loss=1.0)
    ends[0][0].set_port_up(0, False)
    engine.run_for(200 * US)
    assert endpoint_stats(ends[0])["port_updates_sent"] == 3  # at 0, 50 and 150 us
    assert ends[1][2].planes_up() == [True, True]
    for link in links:
        link.set_faults(loss=0.0)
    engine.run_for(300 * US)
    assert ends[1][2].planes_up() == [False, True]
    assert endpoint_stats(ends[0])["port_updates_confirmed"] == 1
    sent = endpoint_stats(ends[0])["port_updates_sent"]
    engine.run_for(5 * MS)
    assert endpoint_stats(ends[0])["port_updates_sent"] == sent


def test_with_all_ports_down_packets_wait_for_the_first_that_comes_up() -> None:
    engine, ends, _ = two_planes(retry_limit=100)
    source, target = post(ends, 100_000)
    for plane in range(2):
        ends[0][0].set_port_up(plane, False)
    engine.run_for(200 * US)
    assert ends[0][1].poll() == []
    ends[0][0].set_port_up(1, True)
    engine.run_for(5 * MS)
    assert [each["status"] for each in ends[0][1].poll()] == ["success"]
    assert np.array_equal(source, target)


def request(ends: Any, ports_up: int, number: int, **changed: Any) -> bytes:
    """Return an update of the second host's, as it comes to the first host's port 1."""
    headers, _ = parse_packet(ends[1][2].frame)
    headers |= {
        "destination_mac": "02:00:00:00:01:01",
        "source_ip": "10.1.0.2",
        "destination_ip": "10.1.0.1",
        "bth": headers["bth"] | {"opcode": ENDPOINT_REQUEST, "destination_qp": 2, "psn": number},
        "mrc": {"erth": {"op": 0, "port_status_mask": ports_up}},
    }
    return _core.build_packet(headers | changed)


def test_updates_that_are_overtaken_change_nothing() -> None:
    engine, ends, _ = two_planes()
    nic, _, queue_pair = ends[0]
    for number, ports_up, seen in (
        (0xFFFF, 0b01, [True, False]),
        (0x0000, 0b10, [False, True]),
        (0xFFFF, 0b01, [False, True]),
        (0x0000, 0b11, [False, True]),
        (0x0001, 0b11, [True, True]),
    ):
        engine.inject(nic, 1, request(ends, ports_up, number))
        engine.run_for(US)
        assert queue_pair.planes_up() == seen
    assert endpoint_stats(ends[0])["port_updates_received"] == 5


def test_strangers_are_refused() -> None:
    engine, ends, _ = two_planes()
    nic, _, queue_pair = ends[0]
    engine.inject(nic, 1, request(ends, 0, 1, source_ip="10.1.0.77"))
    engine.run_for(US)
    assert queue_pair.planes_up() == [True, True]
    assert endpoint_stats(ends[0])["endpoint_packets_refused"] == 1
    assert endpoint_stats(ends[0])["port_updates_received"] == 0


def test_a_queue_pair_made_later_knows_of_ports_that_are_down() -> None:
    engine, ends, _ = two_planes()
    ends[0][0].set_port_up(0, False)
    engine.run_for(100 * US)
    later = []
    for nic, _, queue_pair in ends:
        own = 3 - int(queue_pair.frame[5])
        planes = [(plane, f"02:00:00:00:{plane:02x}:{3 - own:02x}", f"10.{plane}.0.{3 - own}") for plane in range(2)]
        later.append(
            _core.MrcQueuePair(
                nic,
                0,
                _core.CompletionQueue(engine),
                queue_pair=0x200 + own,
                remote_queue_pair=0x200 + 3 - own,
                destination_mac=planes[0][1],
                destination_ip=planes[0][2],
                more_planes=planes[1:],
                congestion_control=_core.make_congestion_control(
                    "fixed-window", line_rate_bps=10**11, base_round_trip_ps=2 * US, frame_bytes=1100
                ),
                retransmission_timeout_ps=50 * US,
            )
        )
    assert [each.planes_up() for each in later] == [[False, True]] * 2
