"""Costs of the links inside a host to payload on its way between memory and NICs, to the picosecond."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.transport.rdma_pair import DELAY_PS, US, fixed_window
from weft.engine import CompletionQueue, Engine, Link, Nic, RcQueuePair, TransmitPort, _core, serialisation_ps
from weft.topologies.hosts.pcie import PcieLink

PORT_BPS = 400 * 10**9
PAYLOAD = 1024
OUTER, RETH, ACK_BYTES = 14 + 20 + 8 + 12 + 4, 16, 62
SLOT_BPS = PcieLink(4, 8).rate_bps(256)


class Pairs:
    """Pairs of adapters, the left ones in one host and the right ones in another, with a cable each.

    `ways[n]`: numbers of the links that payload of the n-th left adapter crosses to be sent, and of the right one when
    received.
    """

    def __init__(self, rates_bps: Sequence[int], ways: Sequence[tuple[list[int], list[int]]]) -> None:
        self.engine = Engine()
        self.left, self.right = (_core.HostLinks(self.engine, list(rates_bps)) for _ in range(2))
        self.done = CompletionQueue(self.engine)
        self.queue_pairs: list[RcQueuePair] = []
        self.receivers: list[Nic] = []
        for number, (fetched, placed) in enumerate(ways):
            ends = [Link(self.engine, name=f"{number} {side}", delay_ps=DELAY_PS) for side in range(2)]
            nics = [Nic(self.engine, f"{number} {side}") for side in range(2)]
            for side, (nic, links) in enumerate(zip(nics, (self.left, self.right), strict=True)):
                nic.add_port(
                    TransmitPort(self.engine, ends[side], rate_bps=PORT_BPS),
                    mac=f"02:00:00:00:{number:02x}:0{side + 1}",
                    addresses=[f"10.0.{number}.{side + 1}"],
                    host_links=links,
                    fetched_over=fetched if side == 0 else [],
                    placed_over=placed if side == 1 else [],
                )
                ends[side].connect(nics[1 - side], 0)
            sender, _ = (self._queue_pair(nic, side, number) for side, nic in enumerate(nics))
            self.queue_pairs.append(sender)
            self.receivers.append(nics[1])

    def _queue_pair(self, nic: Nic, side: int, number: int) -> RcQueuePair:
        return RcQueuePair(
            nic,
            0,
            self.done,
            queue_pair=0x20 + number,
            remote_queue_pair=0x20 + number,
            destination_mac=f"02:00:00:00:{number:02x}:0{2 - side}",
            destination_ip=f"10.0.{number}.{2 - side}",
            congestion_control=fixed_window(1 << 30, 0),
            retransmission_timeout_ps=10**11,
            ack_interval_packets=10**6,
        )

    def times(self, packets: int) -> list[int]:
        """Write as many packets over every pair; returns when each write was acknowledged, in their order."""
        size = packets * PAYLOAD
        for number, (sender, receiver) in enumerate(zip(self.queue_pairs, self.receivers, strict=True)):
            sender.post_write(None, 0, size, 0, receiver.register_sink(size).rkey, work_id=number)
        self.engine.run()
        found = {each["work_id"]: each["completed_ps"] for each in self.done.poll()}
        return [found[number] for number in range(len(self.queue_pairs))]


def expected_ps(packets: int, fetch_bps: int, place_bps: int) -> int:
    """Each payload is fetched, sent, carried and placed, one after the other at every stage."""
    fetched = sent = placed = 0
    for index in range(packets):
        fetched += serialisation_ps(PAYLOAD, fetch_bps)
        frame = OUTER + PAYLOAD + (RETH if index == 0 else 0)
        sent = max(sent, fetched) + serialisation_ps(frame, PORT_BPS)
        placed = max(placed, sent + DELAY_PS) + serialisation_ps(PAYLOAD, place_bps)
    return placed + serialisation_ps(ACK_BYTES, PORT_BPS) + DELAY_PS


@pytest.mark.parametrize("packets", [1, 2, 60])
def test_a_slot_of_eight_lanes_bounds_a_port_of_400g(packets: int) -> None:
    assert Pairs([SLOT_BPS], [([0], [])]).times(packets) == [expected_ps(packets, SLOT_BPS, 0)]
    assert Pairs([SLOT_BPS], [([], [0])]).times(packets) == [expected_ps(packets, 0, SLOT_BPS)]


def test_a_packet_cuts_through_and_the_slowest_link_counts_once() -> None:
    fast_bps = 4 * SLOT_BPS
    [alone] = Pairs([SLOT_BPS], [([0], [0])]).times(40)
    assert Pairs([SLOT_BPS, fast_bps, fast_bps], [([1, 0, 2], [2, 0, 1])]).times(40) == [alone]


def test_a_memory_that_is_crossed_twice_carries_half() -> None:
    [twice] = Pairs([2 * SLOT_BPS], [([0, 0], [])]).times(40)
    assert twice == expected_ps(40, SLOT_BPS, 0)


@pytest.mark.parametrize("direction", [0, 1])
def test_two_nics_behind_one_link_get_half_each(direction: int) -> None:
    own = ([1], [1]) if direction else ([2], [2])
    ways = [([0, *own[0]], []), ([0, *own[0]], [])] if direction == 0 else [([], [0]), ([], [0])]
    packets = 400
    pairs = Pairs([SLOT_BPS, 10 * SLOT_BPS, 10 * SLOT_BPS], ways)
    times = pairs.times(packets)
    together_ps = 2 * packets * serialisation_ps(PAYLOAD, SLOT_BPS)
    assert together_ps <= max(times) < together_ps + 3 * DELAY_PS
    assert abs(times[0] - times[1]) <= serialisation_ps(PAYLOAD, SLOT_BPS)
    stats = (pairs.right if direction else pairs.left).stats(0)
    assert (stats["packets"], stats["bytes"]) == (2 * packets, 2 * packets * PAYLOAD)
    assert stats["busy_ps"] == together_ps
    # All the time somebody waits until the other's packet has crossed it.
    if direction == 0:
        assert stats["waited_ps"] > together_ps / 3


def test_a_slow_slot_does_not_hold_up_what_other_nics_share_with_it() -> None:
    """The first adapter's payload waits in it, not on the shared link behind its slot."""
    slow, shared = 0, 1
    pairs = Pairs([SLOT_BPS // 8, PORT_BPS * 2], [([], [slow, shared]), ([], [shared])])
    held, free = pairs.times(200)
    # A packet of the other may be on the shared link.
    [alone] = Pairs([PORT_BPS * 2], [([], [0])]).times(200)
    assert free < alone + 200 * serialisation_ps(PAYLOAD, PORT_BPS * 2) // 8
    assert held > 4 * free
    assert pairs.right.stats(slow)["packets"] == 200


def test_payload_that_waits_in_an_adapter_is_counted() -> None:
    pairs = Pairs([SLOT_BPS], [([], [0])])
    pairs.times(100)
    waited = pairs.receivers[0].most_waiting_bytes(0)
    # What came at the port's rate meanwhile, less what has crossed.
    assert 100 * PAYLOAD * (1 - SLOT_BPS / PORT_BPS * 1.06) - 2 * PAYLOAD <= waited <= 100 * PAYLOAD
    pairs.right.reset_stats()
    assert pairs.right.stats(0)["packets"] == 0


def test_what_is_not_there_is_refused() -> None:
    engine = Engine()
    with pytest.raises(ValueError, match="a link of 0 b/s"):
        _core.HostLinks(engine, [0])
    nic, links = Nic(engine, "nic"), _core.HostLinks(engine, [SLOT_BPS])
    port = TransmitPort(engine, Link(engine, delay_ps=US), rate_bps=PORT_BPS)
    arguments = {"mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1"]}
    with pytest.raises(ValueError, match=r"no link 1 in the host \(valid: below 1\)"):
        nic.add_port(port, host_links=links, fetched_over=[1], **arguments)
    with pytest.raises(ValueError, match="of another engine than its host's links"):
        nic.add_port(port, host_links=_core.HostLinks(Engine(), [SLOT_BPS]), fetched_over=[0], **arguments)
