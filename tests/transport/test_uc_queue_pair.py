"""Queue pairs of UC: messages arrive whole or not at all, and what does not arrive is counted."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    MS,
    US,
    Bytes,
    Recording,
    WiredPair,
    cabled_pair,
    ideal_wire,
    random_bytes,
    wired_pair,
)
from tests.transport.test_foreign_memory import Foreign
from tests.transport.test_rc_transfer import marked
from tests.transport.test_uet_queue_pair import Wire
from weft.engine import SharedReceives, UcQueuePair, make_congestion_control, parse_packet

MTU = 256
ROOM = 4 * MTU
UC: dict[str, Any] = {"transport": UcQueuePair, "path_mtu_bytes": MTU}
FIRST, MIDDLE, LAST, LAST_IMMEDIATE, ONLY, ONLY_IMMEDIATE = range(6)
SENDS, WRITES = 0x20, 0x26


@dataclass
class Sent:
    """Messages of `a`, each of which takes a room of its own at `b`."""

    pair: WiredPair
    kinds: list[str]
    sizes: list[int]
    data: list[Bytes] = field(default_factory=list)
    rooms: Bytes = field(init=False)
    receives: Bytes = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.sizes)
        self.rooms, self.receives = np.zeros((count, ROOM), np.uint8), np.zeros((2 * count, ROOM), np.uint8)
        rooms = self.pair.b.register(self.rooms.reshape(-1))
        receives = self.pair.b.register(self.receives.reshape(-1))
        for place in range(2 * count):
            self.pair.b.queue_pair.post_receive(receives, place * ROOM, ROOM, work_id=place)
        for number, (kind, size) in enumerate(zip(self.kinds, self.sizes, strict=True)):
            self.data.append(random_bytes(size, number))
            source = self.pair.a.register(self.data[-1]) if size else None
            if kind == "send":
                self.pair.a.queue_pair.post_send(source, 0, size, immediate=number, work_id=number)
            else:
                self.pair.a.queue_pair.post_write(
                    source, 0, size, number * ROOM, rooms.rkey, immediate=number, work_id=number
                )

    def packets(self, number: int) -> int:
        return max(1, -(-self.sizes[number] // MTU))

    def arrived(self) -> list[int]:
        """Messages that completed at `b`; each has arrived whole."""
        numbers = []
        taken = 0
        for each in self.pair.b.completions.poll():
            assert each["status"] == "success"
            number = each["immediate"]
            assert number is not None
            assert each["kind"] == ("receive" if self.kinds[number] == "send" else "write_immediate")
            assert each["length_bytes"] == self.sizes[number]
            place = self.rooms[number] if self.kinds[number] == "write" else self.receives[each["work_id"]]
            if self.kinds[number] == "send":
                assert each["work_id"] == taken
                taken += 1
            assert np.array_equal(place[: self.sizes[number]], self.data[number])
            numbers.append(number)
        return numbers


MESSAGES = st.lists(st.tuples(st.sampled_from(["send", "write"]), st.integers(0, ROOM)), min_size=1, max_size=8)


@given(messages=MESSAGES, drops=st.lists(st.booleans(), max_size=20), psn=st.sampled_from([0, 0xFFFFFD]))
@settings(max_examples=100, deadline=None)
def test_what_loses_no_packet_arrives_and_all_losses_are_counted(
    messages: list[tuple[str, int]], drops: list[bool], psn: int
) -> None:
    pair = wired_pair(**UC, initial_psn=psn)
    lost: list[bool] = []

    def wire(sender: str, frame: bytes) -> list[bytes]:
        assert sender == "a"  # nothing is answered
        lost.append(len(lost) < len(drops) and drops[len(lost)])
        return [] if lost[-1] else [frame]

    sent = Sent(pair, [kind for kind, _ in messages], [size for _, size in messages])
    for _ in range(10):
        pair.step(wire)
    done = pair.a.completions.poll()
    assert [(each["work_id"], each["status"]) for each in done] == [(n, "success") for n in range(len(messages))]
    fates, at = [], 0
    for number in range(len(messages)):
        fates.append(lost[at : at + sent.packets(number)])
        at += sent.packets(number)
    assert at == len(lost)
    assert sent.arrived() == [number for number, fate in enumerate(fates) if not any(fate)]

    stats, counted = pair.b.queue_pair.stats(), pair.b.queue_pair.uc_stats()
    heard = max((place + 1 for place, gone in enumerate(lost) if not gone), default=0)  # what tells of earlier ones
    assert counted["packets_missing"] == sum(lost[:heard])
    taken = [fate.index(True) if any(fate) else len(fate) for fate in fates]
    assert stats["data_packets_received"] == sum(taken)
    assert counted["packets_skipped"] == len(lost) - sum(lost) - sum(taken)
    starts = np.cumsum([0, *map(len, fates)])
    begun = [any(fate) and not fate[0] and starts[number] + taken[number] < heard for number, fate in enumerate(fates)]
    assert counted["messages_broken"] == sum(begun)
    assert stats["error"] == "success"
    assert pair.a.queue_pair.stats()["data_packets_sent"] == len(lost)


@given(messages=MESSAGES, actions=st.lists(st.sampled_from(["deliver", "drop", "duplicate", "hold"]), max_size=20))
@settings(max_examples=100, deadline=None)
def test_whatever_the_wire_does_messages_arrive_whole(messages: list[tuple[str, int]], actions: list[str]) -> None:
    pair = wired_pair(**UC)
    wire, delivered = Wire(actions), list[int]()

    def watched(sender: str, frame: bytes) -> list[bytes]:
        frames = wire(sender, frame)
        delivered.append(len(frames))
        return frames

    # A packet that comes late may write to memory whose message was whole before, and with the same bytes.
    sent = Sent(pair, [kind for kind, _ in messages], [size for _, size in messages])
    for _ in range(10):
        pair.step(watched)
    sent.arrived()
    stats, counted = pair.b.queue_pair.stats(), pair.b.queue_pair.uc_stats()
    assert (
        stats["data_packets_received"] + counted["packets_skipped"]
        == sum(delivered) - counted["messages_without_receive"]
    )
    assert counted["messages_malformed"] == counted["messages_refused"] == counted["messages_too_long"] == 0


@pytest.mark.parametrize("version", [4, 6])
def test_opcodes_are_those_of_uc(version: int) -> None:
    pair = wired_pair(**UC, version=version)
    wire = Recording()

    rkey = pair.b.nic.register_sink(ROOM).rkey
    for size in (3 * MTU, MTU):
        pair.a.queue_pair.post_send(None, 0, size)
        pair.a.queue_pair.post_send(None, 0, size, immediate=1)
        pair.a.queue_pair.post_write(None, 0, size, 0, rkey)
        pair.a.queue_pair.post_write(None, 0, size, 0, rkey, immediate=1)
    pair.step(wire)
    headers = [parse_packet(frame)[0] for frame in wire.frames]
    long = [[FIRST, MIDDLE, LAST], [FIRST, MIDDLE, LAST_IMMEDIATE]]
    write = {ONLY: 4, ONLY_IMMEDIATE: 5}
    expected = [SENDS + each for shape in long for each in shape] + [WRITES + each for shape in long for each in shape]
    expected += [SENDS + ONLY, SENDS + ONLY_IMMEDIATE, WRITES + write[ONLY], WRITES + write[ONLY_IMMEDIATE]]
    assert [each["bth"]["opcode"] for each in headers] == expected
    assert [each["bth"]["psn"] for each in headers] == list(range(len(expected)))
    assert not any(each["bth"]["acknowledge_request"] for each in headers)


def test_drops_of_the_responder_are_counted_by_reason() -> None:
    pair = wired_pair(**UC)
    memory = np.zeros(100, np.uint8)
    region = pair.b.register(memory)
    pair.a.queue_pair.post_send(None, 0, 10)  # no receive
    pair.a.queue_pair.post_write(None, 0, 101, 0, region.rkey)
    pair.a.queue_pair.post_write(None, 0, 3 * MTU, 0, region.rkey + 1000)  # two packets are skipped
    for _ in range(3):
        pair.step(ideal_wire)
    pair.b.queue_pair.post_receive(region, 0, 100, work_id=7)
    pair.a.queue_pair.post_send(None, 0, 101)
    pair.a.queue_pair.post_send(None, 0, 100)
    for _ in range(3):
        pair.step(ideal_wire)
    assert [(each["work_id"], each["length_bytes"]) for each in pair.b.completions.poll()] == [(7, 100)]
    counted = {name: count for name, count in pair.b.queue_pair.uc_stats().items() if count}
    assert counted == {
        "messages_without_receive": 1,
        "messages_refused": 2,
        "messages_too_long": 1,
        "packets_skipped": 2,
    }


def test_an_immediate_takes_a_receive_if_asked_to() -> None:
    pair = wired_pair(**UC, receive_for_immediate=True)
    rkey = pair.b.nic.register_sink(100).rkey
    pair.a.queue_pair.post_write(None, 0, 100, 0, rkey, immediate=1)
    pair.step(ideal_wire)
    pair.step(ideal_wire)
    pair.b.queue_pair.post_receive(None, 0, 0, work_id=9)
    pair.a.queue_pair.post_write(None, 0, 100, 0, rkey, immediate=2)
    pair.step(ideal_wire)
    pair.step(ideal_wire)
    assert [(each["work_id"], each["immediate"]) for each in pair.b.completions.poll()] == [(9, 2)]
    assert pair.b.queue_pair.uc_stats()["messages_without_receive"] == 1


def test_a_broken_message_leaves_its_shared_receive_to_the_next() -> None:
    pair = wired_pair(**UC)
    shared = SharedReceives(pair.b.nic)
    pair.b.nic.detach(pair.b.queue_pair)
    pair.b.connect(pair.a, 4, **UC, shared_receives=shared)
    shared.post_receive(None, 0, ROOM, work_id=1)
    frames = 0

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        nonlocal frames
        frames += 1
        return [] if frames == 2 else [frame]

    pair.a.queue_pair.post_send(None, 0, 3 * MTU)
    pair.a.queue_pair.post_send(None, 0, 10)
    pair.a.queue_pair.post_send(None, 0, 10)
    for _ in range(3):
        pair.step(wire)
    assert [(each["work_id"], each["length_bytes"]) for each in pair.b.completions.poll()] == [(1, 10)]
    counted = pair.b.queue_pair.uc_stats()
    assert (counted["messages_broken"], counted["messages_without_receive"]) == (1, 1)


def test_marks_slow_the_sender_down() -> None:
    """DCQCN: CNPs come as RC's, and the pace follows them."""
    dcqcn = make_congestion_control(
        "dcqcn", line_rate_bps=100_000_000_000, base_round_trip_ps=2 * US, frame_bytes=MTU + 100
    )
    pair = wired_pair(**UC, sender={"congestion_control": dcqcn})
    rkey = pair.b.nic.register_sink(1 << 20).rkey
    pair.a.queue_pair.post_write(None, 0, 1 << 20, 0, rkey, immediate=1)

    def wire(sender: str, frame: bytes) -> list[bytes]:
        return [marked(frame) if sender == "a" else frame]

    for _ in range(30):
        pair.step(wire)
    assert pair.b.queue_pair.stats()["cnps_sent"] == pair.a.queue_pair.stats()["cnps_received"] == 1
    assert 0 < pair.a.queue_pair.pacing_rate_bps < 100_000_000_000
    pair.run(ideal_wire, lambda: pair.b.queue_pair.stats()["data_packets_received"] == (1 << 20) // MTU)
    [arrived] = pair.b.completions.poll()
    assert arrived["length_bytes"] == 1 << 20


def test_the_pace_is_that_of_the_congestion_control() -> None:
    pair = cabled_pair(**UC, pacing_rate_bps=1_000_000_000)
    rkey = pair.b.nic.register_sink(1 << 20).rkey
    pair.a.queue_pair.post_write(None, 0, 125_000, 0, rkey, immediate=1)  # 1 ms of payload
    pair.engine.run()
    [arrived] = pair.b.completions.poll()
    assert MS < arrived["completed_ps"] < 1.4 * MS  # with headers


def test_memory_that_is_not_there_fails_its_end() -> None:
    memory = np.zeros(ROOM, np.uint8)
    pair = wired_pair(**UC)
    sent, room = Foreign(pair.a, memory), Foreign(pair.b, np.zeros(ROOM, np.uint8))
    sent.memory.unmap(2 * MTU)
    room.memory.unmap()
    pair.a.queue_pair.post_send(sent.region, 0, MTU, work_id=1)
    pair.a.queue_pair.post_send(sent.region, 0, ROOM, work_id=2)
    pair.a.queue_pair.post_send(None, 0, 1, work_id=3)
    pair.b.queue_pair.post_receive(room.region, 0, ROOM, work_id=4)
    pair.b.queue_pair.post_receive(None, 0, ROOM, work_id=5)
    for _ in range(3):
        pair.step(ideal_wire)
    assert [(each["work_id"], each["status"]) for each in pair.a.completions.poll()] == [
        (1, "success"),
        (2, "local_protection_error"),
        (3, "flushed"),
    ]
    assert [(each["work_id"], each["status"]) for each in pair.b.completions.poll()] == [
        (4, "local_protection_error"),
        (5, "flushed"),
    ]


def test_what_uc_does_not_carry_is_refused() -> None:
    pair = wired_pair(**UC)
    with pytest.raises(ValueError, match=r"UC carries no read .valid: WRITE and SEND"):
        pair.a.queue_pair.post_read(None, 0, 1, 0, 1)
    with pytest.raises(ValueError, match="telemetry does not go with UC"):
        wired_pair(**UC, telemetry=True)
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 0


def test_malformed_packets_are_dropped_and_counted() -> None:
    pair = wired_pair(**UC)
    wire = Recording()

    Sent(pair, ["send", "write"], [3 * MTU, 3 * MTU])
    pair.step(wire)
    pair.step(wire)
    random = np.random.default_rng(5)
    injected = 0
    for _ in range(500):
        frame = wire.frames[random.integers(len(wire.frames))]
        pair.engine.inject(pair.b.nic, 0, frame)
        injected += 1
        bad = bytearray(frame)
        bad[random.integers(42, len(bad))] ^= 1 << random.integers(8)
        pair.engine.inject(pair.b.nic, 0, bytes(bad[: random.integers(42, len(bad) + 1)]))
        pair.step(ideal_wire)
    counted, stats = pair.b.queue_pair.uc_stats(), pair.b.queue_pair.stats()
    dropped = sum(counted[name] for name in ("packets_skipped", "messages_malformed", "messages_without_receive"))
    assert stats["data_packets_received"] + dropped == injected + len(wire.frames)
    assert stats["error"] == "success"
