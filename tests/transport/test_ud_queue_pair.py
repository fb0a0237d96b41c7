"""Queue pairs of UD: datagrams take receives in turn, and what is dropped is counted."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import Bytes, Host, Recording, WiredPair, ideal_wire, random_bytes, wired_pair
from tests.transport.test_uet_queue_pair import Wire
from weft.engine import (
    GRH_BYTES,
    ForeignMemory,
    SharedReceives,
    UdGroups,
    UdQueuePair,
    build_packet,
    parse_packet,
)

MTU = 1024
KEY = 0x1234
OWN_KEY = 0x80000000
NUMBER = 0x200
ROOMS = 12
GROUP = {4: "239.1.2.3", 6: "ff0e::7"}
GROUP_MAC = "01:00:5e:01:02:03"
MULTICAST = 0xFFFFFF


@dataclass
class Datagrams:
    """A queue pair of UD at each end, and rooms for datagrams at `b`."""

    version: int = 4
    pair: WiredPair = field(init=False)
    a: UdQueuePair = field(init=False)
    b: UdQueuePair = field(init=False)
    rooms: Bytes = field(init=False)

    def __post_init__(self) -> None:
        self.pair = wired_pair(version=self.version)
        self.a = datagrams_of(self.pair.a)
        self.b = datagrams_of(self.pair.b)
        self.rooms = np.zeros((ROOMS, GRH_BYTES + MTU), np.uint8)
        region = self.pair.b.register(self.rooms.reshape(-1))
        for place in range(ROOMS):
            self.b.post_receive(region, place * (GRH_BYTES + MTU), GRH_BYTES + MTU, work_id=100 + place)

    def to(self, host: Host, number: int = NUMBER, q_key: int = KEY) -> dict[str, Any]:
        return {
            "destination_mac": host.mac,
            "destination_ip": host.ip(self.version),
            "remote_queue_pair": number,
            "q_key": q_key,
        }

    def to_group(self) -> dict[str, Any]:
        return {
            "destination_mac": GROUP_MAC,
            "destination_ip": GROUP[self.version],
            "remote_queue_pair": MULTICAST,
            "q_key": KEY,
        }

    def send(self, size: int, number: int = 0, **to: Any) -> Bytes:
        data = random_bytes(size, number)
        source = self.pair.a.register(data) if size else None
        self.a.post_send(source, 0, size, work_id=number, **(to or self.to(self.pair.b)))
        return data

    def deliver(self) -> None:
        for _ in range(3):
            self.pair.step(ideal_wire)

    def counted(self) -> dict[str, Any]:
        return {name: count for name, count in self.b.stats().items() if count and name != "error"}


def datagrams_of(host: Host, **options: Any) -> UdQueuePair:
    return UdQueuePair(host.nic, 0, host.completions, **{"q_key": KEY, "queue_pair": NUMBER, **options})


@given(
    actions=st.lists(st.sampled_from(["deliver", "deliver", "drop", "duplicate", "hold"]), max_size=12),
    sizes=st.lists(st.integers(0, MTU), min_size=1, max_size=8),
    version=st.sampled_from([4, 6]),
)
@settings(max_examples=100, deadline=None)
def test_a_datagram_arrives_whole_as_often_as_the_wire_delivers_it(
    actions: list[str], sizes: list[int], version: int
) -> None:
    both = Datagrams(version)
    wire, delivered = Wire(actions), list[int]()

    def watched(sender: str, frame: bytes) -> list[bytes]:
        assert sender == "a"  # nothing is answered
        frames = wire(sender, frame)
        delivered.extend(parse_packet(each)[0]["bth"]["psn"] for each in frames)
        return frames

    sent = [both.send(size, number) for number, size in enumerate(sizes)]
    for _ in range(5):
        both.pair.step(watched)
    done = both.pair.a.completions.poll()
    assert [(each["work_id"], each["kind"], each["status"]) for each in done] == [
        (number, "send", "success") for number in range(len(sizes))
    ]
    arrived = both.pair.b.completions.poll()
    taken = delivered[:ROOMS]
    assert [each["work_id"] for each in arrived] == [100 + place for place in range(len(taken))]
    assert [each["length_bytes"] for each in arrived] == [GRH_BYTES + sizes[number] for number in taken]
    assert {each["source_queue_pair"] for each in arrived} <= {NUMBER}
    for room, number in zip(both.rooms, taken, strict=False):
        assert np.array_equal(room[GRH_BYTES : GRH_BYTES + sizes[number]], sent[number])
    assert both.b.stats()["datagrams_received"] == len(taken)
    assert both.b.stats()["datagrams_without_receive"] == len(delivered) - len(taken)
    assert both.a.stats()["datagrams_sent"] == len(sizes)


@pytest.mark.parametrize("version", [4, 6])
def test_the_ip_header_stands_before_the_data(version: int) -> None:
    both = Datagrams(version)
    wire = Recording()

    data = random_bytes(101)
    both.a.post_send(
        both.pair.a.register(data),
        0,
        101,
        immediate=5,
        dscp=10,
        hop_limit=9,
        flow_label=0x54321,
        **both.to(both.pair.b),
    )
    both.pair.step(wire)
    both.pair.step(wire)
    [frame] = wire.frames
    ip = frame[14 : 14 + (20 if version == 4 else 40)]
    assert bytes(both.rooms[0][:GRH_BYTES]) == bytes(GRH_BYTES - len(ip)) + ip
    assert np.array_equal(both.rooms[0][GRH_BYTES:][:101], data)
    [arrived] = both.pair.b.completions.poll()
    assert (arrived["immediate"], arrived["length_bytes"]) == (5, GRH_BYTES + 101)
    headers, payload = parse_packet(frame)
    assert payload == data.tobytes()
    assert (headers["bth"]["opcode"], headers["deth"]) == (0x65, {"q_key": KEY, "source_qp": NUMBER})
    assert (headers["dscp"], headers["ecn"], headers["hop_limit"]) == (10, 0, 9)
    assert headers["source_udp_port"] == 0xC000 | (0x54321 & 0x3FFF ^ 0x54321 >> 14)
    assert headers.get("flow_label") == (0x54321 if version == 6 else None)


def test_drops_are_counted_by_reason() -> None:
    both = Datagrams()
    small = datagrams_of(both.pair.b, queue_pair=NUMBER + 1)
    both.send(10, **both.to(both.pair.b, q_key=KEY + 1))
    both.send(10, **both.to(both.pair.b, NUMBER + 1))
    both.deliver()
    small.post_receive(None, 0, GRH_BYTES + 9)
    both.send(10, **both.to(both.pair.b, NUMBER + 1))
    both.send(9, **both.to(both.pair.b, NUMBER + 1))
    both.send(10, **both.to(both.pair.b, NUMBER + 2))
    both.deliver()
    assert both.counted() == {"bad_q_key": 1}
    assert [each["queue_pair"] for each in both.pair.b.completions.poll()] == [NUMBER + 1]
    counted = small.stats()
    assert (counted["datagrams_without_receive"], counted["datagrams_too_long"]) == (1, 1)
    assert both.pair.b.nic.stats(0)["dropped"]["unknown_queue_pair"] == 1


def test_a_q_key_with_the_highest_bit_is_the_queue_pairs_own() -> None:
    both = Datagrams()
    both.send(1, **both.to(both.pair.b, q_key=OWN_KEY | 77))
    both.deliver()
    assert both.counted()["datagrams_received"] == 1


def test_connection_managers_have_queue_pair_1() -> None:
    both = Datagrams()
    key = 0x80010000
    managers = [datagrams_of(host, queue_pair=1, q_key=key) for host in (both.pair.a, both.pair.b)]
    memory = np.zeros(GRH_BYTES + 256, np.uint8)
    managers[1].post_receive(both.pair.b.register(memory), 0, len(memory))
    datagram = random_bytes(256)
    managers[0].post_send(both.pair.a.register(datagram), 0, 256, **both.to(both.pair.b, 1, OWN_KEY))
    both.deliver()
    [arrived] = both.pair.b.completions.poll()
    assert (arrived["source_queue_pair"], arrived["queue_pair"]) == (1, 1)
    assert np.array_equal(memory[GRH_BYTES:], datagram)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("blocks", [False, True])
def test_each_member_of_a_group_gets_a_copy(version: int, blocks: bool) -> None:
    both = Datagrams(version)
    groups = [UdGroups(host.nic, 0) for host in (both.pair.a, both.pair.b)]
    hosts = [(both.pair.a, groups[0])] * 2 + [(both.pair.b, groups[1])] * 2
    members = [datagrams_of(host, queue_pair=NUMBER + 1 + place, groups=own) for place, (host, own) in enumerate(hosts)]
    senders = members[:2]
    for member in members:
        member.join(GROUP[version])
        member.post_receive(None, 0, GRH_BYTES + MTU)
    senders[0].block_own_copies(blocks)
    senders[0].post_send(None, 0, 100, **both.to_group())
    both.deliver()
    at_a, at_b = both.pair.a.completions.poll(), both.pair.b.completions.poll()
    local = [NUMBER + 2] if blocks else [NUMBER + 1, NUMBER + 2]
    assert [each["queue_pair"] for each in at_a if each["kind"] == "receive"] == local
    assert [each["queue_pair"] for each in at_b] == [NUMBER + 3, NUMBER + 4]
    assert {each["source_queue_pair"] for each in [*at_b, *at_a[1:]]} == {NUMBER + 1}
    assert senders[0].stats()["datagrams_looped"] == 1

    for member in members[2:]:
        member.leave(GROUP[version])
    with pytest.raises(ValueError, match="no member"):
        members[3].leave(GROUP[version])
    senders[1].post_send(None, 0, 100, **both.to_group())
    both.deliver()
    assert both.pair.b.completions.poll() == []
    assert both.pair.b.nic.stats(0)["dropped"]["foreign_address"] == 1


def test_a_member_that_goes_is_forgotten() -> None:
    both = Datagrams()
    groups = UdGroups(both.pair.b.nic, 0)
    stays, goes = (datagrams_of(both.pair.b, queue_pair=NUMBER + 1 + place, groups=groups) for place in (0, 1))
    for member in (goes, stays):
        member.join(GROUP[4])
        member.post_receive(None, 0, GRH_BYTES + MTU)
    both.pair.b.nic.detach(goes)
    del goes, member
    both.send(50, **both.to_group())
    both.deliver()
    assert [each["queue_pair"] for each in both.pair.b.completions.poll()] == [NUMBER + 1]


def test_receives_may_be_shared() -> None:
    both = Datagrams()
    shared = SharedReceives(both.pair.b.nic)
    memory = np.zeros((3, GRH_BYTES + MTU), np.uint8)
    region = both.pair.b.register(memory.reshape(-1))
    takers = [datagrams_of(both.pair.b, queue_pair=NUMBER + 1 + place, shared_receives=shared) for place in (0, 1)]
    for place in range(3):
        shared.post_receive(region, place * (GRH_BYTES + MTU), GRH_BYTES + MTU, work_id=place)
    for number in (1, 2, 1, 2):
        both.send(10 + number, **both.to(both.pair.b, NUMBER + number))
    both.deliver()
    arrived = [(each["queue_pair"], each["work_id"]) for each in both.pair.b.completions.poll()]
    assert arrived == [(NUMBER + 1, 0), (NUMBER + 2, 1), (NUMBER + 1, 2)]
    assert takers[1].stats()["datagrams_without_receive"] == 1
    with pytest.raises(ValueError, match="shared queue"):
        takers[0].post_receive(None, 0, 100)


def test_memory_that_is_not_there_fails_its_end() -> None:
    both = Datagrams()
    sender, receiver = datagrams_of(both.pair.a, queue_pair=1), datagrams_of(both.pair.b, queue_pair=1)
    foreign = [ForeignMemory(np.zeros(GRH_BYTES + MTU, np.uint8)) for _ in (0, 1)]
    source = both.pair.a.nic.register_foreign(foreign[0])
    target = both.pair.b.nic.register_foreign(foreign[1])
    receiver.post_receive(target, 0, GRH_BYTES + MTU, work_id=1)
    receiver.post_receive(target, 0, GRH_BYTES + MTU, work_id=2)
    receiver.post_receive(target, 0, GRH_BYTES + MTU, work_id=3)
    sender.post_send(source, 0, MTU, work_id=1, **both.to(both.pair.b, 1))
    both.deliver()
    foreign[1].unmap(GRH_BYTES + 1)
    sender.post_send(source, 0, MTU, work_id=2, **both.to(both.pair.b, 1))
    both.deliver()
    foreign[0].unmap()
    sender.post_send(source, 0, MTU, work_id=3, **both.to(both.pair.b, 1))
    sender.post_send(source, 0, MTU, work_id=4, **both.to(both.pair.b, 1))
    both.deliver()
    statuses = ["success", "local_protection_error", "flushed"]
    assert [each["status"] for each in both.pair.b.completions.poll()] == statuses
    assert [each["status"] for each in both.pair.a.completions.poll()] == ["success", *statuses]


def test_what_is_posted_to_a_failed_queue_pair_is_flushed() -> None:
    both = Datagrams()
    both.a.post_receive(None, 0, MTU, work_id=1)
    both.a.flush()
    both.a.post_receive(None, 0, MTU, work_id=2)
    both.a.post_send(None, 0, 1, work_id=3, **both.to(both.pair.b))
    both.deliver()
    flushed = [(each["work_id"], each["kind"], each["status"]) for each in both.pair.a.completions.poll()]
    assert flushed == [(1, "receive", "flushed"), (2, "receive", "flushed"), (3, "send", "flushed")]


def test_what_ud_does_not_carry_is_refused() -> None:
    both = Datagrams()
    with pytest.raises(ValueError, match=f"datagram of {MTU + 1} bytes .valid: at most a packet, {MTU}"):
        both.send(MTU + 1)
    with pytest.raises(ValueError, match="dscp"):
        both.send(1, **{**both.to(both.pair.b), "dscp": 64})
    with pytest.raises(ValueError, match="aggregation"):
        both.send(20, **both.to_group())
    with pytest.raises(ValueError, match=r"path_mtu_bytes is 1000 .valid: 256, 512"):
        datagrams_of(both.pair.a, queue_pair=9, path_mtu_bytes=1000)
    with pytest.raises(ValueError, match="made without groups"):
        both.a.join(GROUP[4])
    both.deliver()
    assert both.pair.a.completions.poll() == []


def test_malformed_packets_are_dropped_and_counted() -> None:
    both = Datagrams()
    wire = Recording()

    for size in (MTU, 3):
        both.send(size)
    both.pair.step(wire)
    both.pair.step(wire)
    both.pair.b.completions.poll()
    random = np.random.default_rng(5)
    for _ in range(300):
        frame = wire.frames[random.integers(len(wire.frames))]
        bad = bytearray(frame)
        bad[random.integers(42, len(bad))] ^= 1 << random.integers(8)
        both.pair.engine.inject(both.pair.b.nic, 0, bytes(bad[: random.integers(42, len(bad) + 1)]))
        headers, payload = parse_packet(frame)
        other = {**headers, "bth": {**headers["bth"], "opcode": 0x04}}
        both.pair.engine.inject(both.pair.b.nic, 0, build_packet(other, payload))  # type: ignore[arg-type]
        both.pair.step(ideal_wire)
    assert both.pair.b.completions.poll() == []
    assert both.counted()["unexpected_opcode"] == 300
    assert both.counted()["datagrams_received"] == 2
