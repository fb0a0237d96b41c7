"""Requests, receives and regions in memory that the engine reaches by copies alone, as another process's."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import (
    PATIENT,
    US,
    Bytes,
    Host,
    RdmaPair,
    cabled_pair,
    ideal_wire,
    random_bytes,
    wired_pair,
)
from weft.engine import ForeignMemory, MemoryDomain, MemoryRegion

SIZE = 8000
MTU = 1024


@dataclass
class Foreign:
    """Memory of another process at a host, registered there."""

    host: Host
    data: Bytes
    memory: ForeignMemory = field(init=False)
    region: MemoryRegion = field(init=False)

    def __post_init__(self) -> None:
        self.memory = ForeignMemory(self.data)
        self.region = self.host.nic.register_foreign(self.memory, virtual_address=0x1000)


def statuses(host: Host) -> list[tuple[int, str, str]]:
    return [(each["work_id"], each["kind"], each["status"]) for each in host.completions.poll()]


@given(
    sizes=st.lists(st.integers(0, 2500), min_size=1, max_size=3),
    offset=st.integers(0, 100),
    loss=st.sampled_from([0.0, 0.1]),
    retransmission=st.sampled_from(["go-back-n", "selective-repeat"]),
    seed=st.integers(1, 100),
)
@settings(max_examples=60, deadline=None)
def test_every_request_moves_what_it_moves_in_own_memory(
    sizes: list[int], offset: int, loss: float, retransmission: str, seed: int
) -> None:
    options: dict[str, Any] = {**PATIENT, "retransmission": retransmission, "seed": seed}
    pair = cabled_pair(faults={"loss": loss}, **options)
    a, b = Foreign(pair.a, random_bytes(SIZE, seed)), Foreign(pair.b, np.zeros(SIZE, np.uint8))
    expected = b.data.copy()
    copied = a.data.copy()
    for number, size in enumerate(sizes):
        to = number * 2500 + offset
        pair.a.queue_pair.post_write(a.region, offset, size, 0x1000 + to, b.region.rkey, work_id=number)
        expected[to : to + size] = a.data[offset : offset + size]
    pair.engine.run()
    assert statuses(pair.a) == [(number, "write", "success") for number in range(len(sizes))]
    assert np.array_equal(b.data, expected)
    pair.a.queue_pair.post_read(a.region, 4000, 3000, 0x1000 + 100, b.region.rkey, work_id=7)
    pair.engine.run()
    copied[4000:7000] = expected[100:3100]
    assert statuses(pair.a) == [(7, "read", "success")]
    assert np.array_equal(a.data, copied)
    if retransmission == "selective-repeat":
        return
    pair.b.queue_pair.post_receive(b.region, 5, SIZE - 5, work_id=9)
    pair.a.queue_pair.post_send(a.region, 7, 3000)
    pair.engine.run()
    assert statuses(pair.b) == [(9, "receive", "success")]
    assert np.array_equal(b.data[5:3005], a.data[7:3007])


def test_atomics_work_on_it() -> None:
    pair = cabled_pair()
    a, b = Foreign(pair.a, np.zeros(64, np.uint8)), Foreign(pair.b, np.zeros(64, np.uint8))
    b.data.view(np.uint64)[2] = 40
    pair.a.queue_pair.post_fetch_add(a.region, 8, 0x1010, b.region.rkey, add=2)
    pair.a.queue_pair.post_compare_swap(a.region, 16, 0x1010, b.region.rkey, compare=42, swap=7)
    pair.engine.run()
    assert a.data.view(np.uint64)[1:3].tolist() == [40, 42]
    assert b.data.view(np.uint64)[2] == 7


def test_bytes_are_there_when_their_packet_has_arrived() -> None:
    """A program that polls for the last byte of a WRITE sees all before it."""
    pair = wired_pair(path_mtu_bytes=MTU, rate_bps=10_000_000_000)  # a packet takes 0.9 us
    a, b = Foreign(pair.a, random_bytes(8 * MTU)), Foreign(pair.b, np.zeros(8 * MTU, np.uint8))
    pair.a.queue_pair.post_write(a.region, 0, 8 * MTU, 0x1000, b.region.rkey)
    arrived: list[int] = []
    while len(arrived) < 20:
        pair.step(ideal_wire)
        arrived.append(pair.b.queue_pair.stats()["data_packets_received"])
        assert np.array_equal(b.data[: arrived[-1] * MTU], a.data[: arrived[-1] * MTU])
        assert not b.data[arrived[-1] * MTU :].any()
    assert arrived[-1] == 8
    assert len(set(arrived)) > 4


def pair_with(region_at: str) -> tuple[RdmaPair, Foreign]:
    pair = cabled_pair()
    return pair, Foreign(pair.a if region_at == "a" else pair.b, random_bytes(SIZE))


def test_a_source_that_has_gone_fails_its_request_alone() -> None:
    pair, a = pair_with("a")
    rkey = pair.b.nic.register_sink(SIZE).rkey
    a.memory.unmap(3000)
    pair.a.queue_pair.post_write(a.region, 0, 3000, 0, rkey, work_id=1)
    pair.a.queue_pair.post_read(None, 0, 3000, 0, rkey, work_id=2)
    pair.a.queue_pair.post_write(a.region, 0, 3001, 0, rkey, work_id=3)
    pair.a.queue_pair.post_write(None, 0, 10, 0, rkey, work_id=4)
    pair.a.queue_pair.post_receive(None, 0, 10, work_id=5)
    pair.engine.run()
    assert statuses(pair.a) == [
        (1, "write", "success"),
        (2, "read", "success"),
        (3, "write", "local_protection_error"),
        (4, "write", "flushed"),
        (5, "receive", "flushed"),
    ]
    assert pair.a.queue_pair.stats()["error"] == "local_protection_error"


def test_a_source_that_goes_among_lost_packets_fails_its_request_alone() -> None:
    pair = wired_pair(path_mtu_bytes=MTU)
    a = Foreign(pair.a, random_bytes(SIZE))
    rkey = pair.b.nic.register_sink(SIZE).rkey
    a.memory.unmap(3000)
    frames = 0

    def wire(_sender: str, frame: bytes) -> list[bytes]:
        nonlocal frames
        frames += 1
        return [] if frames == 1 else [frame]

    pair.a.queue_pair.post_write(a.region, 0, 3000, 0, rkey, work_id=1)
    pair.a.queue_pair.post_write(a.region, 0, SIZE, 0, rkey, work_id=2)
    done: list[tuple[int, str, str]] = []

    def both() -> bool:
        done.extend(statuses(pair.a))
        return len(done) == 2

    pair.run(wire, both)
    assert done == [(1, "write", "success"), (2, "write", "local_protection_error")]


@pytest.mark.parametrize("kind", ["write", "send", "read", "atomic", "gone at once"])
def test_memory_of_the_responder_that_has_gone_is_an_error_of_its(kind: str) -> None:
    pair, b = pair_with("b")
    b.memory.unmap(0 if kind in ("atomic", "gone at once") else 3000)
    if kind == "send":
        pair.b.queue_pair.post_receive(b.region, 0, SIZE, work_id=5)
        pair.b.queue_pair.post_receive(b.region, 0, SIZE, work_id=6)
        pair.a.queue_pair.post_send(None, 0, SIZE, work_id=1)
    elif kind == "read":
        pair.a.queue_pair.post_read(None, 0, SIZE, 0x1000, b.region.rkey, work_id=1)
    elif kind == "atomic":
        pair.a.queue_pair.post_fetch_add(None, 0, 0x1000, b.region.rkey, add=1, work_id=1)
    else:
        pair.a.queue_pair.post_write(None, 0, SIZE, 0x1000, b.region.rkey, work_id=1)
    pair.a.queue_pair.post_write(None, 0, 1, 0x1000, b.region.rkey, work_id=2)
    pair.engine.run()
    ends = [(number, status) for number, _, status in statuses(pair.a)]
    assert ends == [(1, "remote_operation_error"), (2, "flushed")]
    if kind == "send":
        assert statuses(pair.b) == [(5, "receive", "local_protection_error"), (6, "receive", "flushed")]
    assert pair.b.queue_pair.stats()["responder_error"] == "remote_operation_error"


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
def test_a_target_that_has_gone_fails_its_request(atomic: bool, retransmission: str) -> None:
    pair = cabled_pair(retransmission=retransmission)
    a = Foreign(pair.a, np.zeros(SIZE, np.uint8))
    source = random_bytes(SIZE)
    region = pair.b.nic.register_memory(source.copy(), remote_read=True, remote_atomic=True)
    a.memory.unmap(3000)
    pair.a.queue_pair.post_read(a.region, 0, 3000, 0, region.rkey, work_id=1)
    if atomic:
        pair.a.queue_pair.post_fetch_add(a.region, 2996, SIZE - 8, region.rkey, add=1, work_id=2)
    else:
        pair.a.queue_pair.post_read(a.region, 0, SIZE, 0, region.rkey, work_id=2)
    pair.a.queue_pair.post_write(None, 0, 1, 0, region.rkey, work_id=3)
    pair.engine.run()
    ends = [(number, status) for number, _, status in statuses(pair.a)]
    assert ends == [(1, "success"), (2, "local_protection_error"), (3, "flushed")]
    assert np.array_equal(a.data[1:2996], source[1:2996])  # the WRITE may go before the second READ


@pytest.mark.parametrize(
    "options",
    [{"uet_options": {}}, {"uet_options": {"service": "uud"}}],
    ids=["uet", "uud"],
)
def test_other_transports_write_to_it_or_refuse_it(options: dict[str, Any]) -> None:
    pair = cabled_pair(**options, version=6, retransmission_timeout_ps=50 * US)
    a, b = Foreign(pair.a, random_bytes(SIZE)), Foreign(pair.b, np.zeros(SIZE, np.uint8))
    post = pair.a.queue_pair.post_send if "service" in options.get("uet_options", {}) else pair.a.queue_pair.post_write
    to: tuple[int, ...] = () if "service" in options.get("uet_options", {}) else (0x1000, b.region.rkey)
    with pytest.raises(ValueError, match=r"takes no foreign memory .valid: RC, UC, UD and MRC"):
        post(a.region, 0, 10, *to)
    if not to:
        return
    source = random_bytes(SIZE)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, SIZE, 0x1000, b.region.rkey, work_id=1)
    pair.engine.run()
    assert statuses(pair.a) == [(1, "write", "success")]
    assert np.array_equal(b.data, source)
    b.memory.unmap(100)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, SIZE, 0x1000, b.region.rkey, work_id=2)
    pair.engine.run()
    [(_, _, status)] = statuses(pair.a)
    assert status in ("remote_operation_error", "remote_access_error")


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_mrc_writes_from_it_and_to_it(loss: float) -> None:
    pair = cabled_pair(mrc_options={}, version=6, faults={"loss": loss}, **PATIENT, path_mtu_bytes=MTU)
    a, b = Foreign(pair.a, random_bytes(SIZE)), Foreign(pair.b, np.zeros(SIZE, np.uint8))
    expected = np.zeros(SIZE, np.uint8)
    for number, (start, size) in enumerate([(0, 0), (1, 3000), (4000, 4000)]):
        pair.a.queue_pair.post_write(a.region, start, size, 0x1000 + start, b.region.rkey, work_id=number)
        expected[start : start + size] = a.data[start : start + size]
    pair.engine.run()
    assert statuses(pair.a) == [(number, "write", "success") for number in range(3)]
    assert np.array_equal(b.data, expected)
    b.memory.unmap(3000)
    pair.a.queue_pair.post_write(a.region, 0, SIZE, 0x1000, b.region.rkey, work_id=4)
    pair.engine.run()
    assert statuses(pair.a) == [(4, "write", "remote_operation_error")]


def test_a_source_of_mrc_that_has_gone_fails_its_request_in_its_turn() -> None:
    pair = cabled_pair(mrc_options={}, version=6, **PATIENT, path_mtu_bytes=MTU)
    a = Foreign(pair.a, random_bytes(SIZE))
    rkey = pair.b.nic.register_sink(SIZE).rkey
    a.memory.unmap(3000)
    for number, size in enumerate([3000, 3001, 10]):
        pair.a.queue_pair.post_write(a.region, 0, size, 0, rkey, work_id=number)
    pair.a.queue_pair.post_receive(None, 0, 10, work_id=5)
    pair.engine.run()
    assert statuses(pair.a) == [
        (0, "write", "success"),
        (1, "write", "local_protection_error"),
        (2, "write", "flushed"),
        (5, "receive", "flushed"),
    ]
    assert pair.a.queue_pair.stats()["error"] == "local_protection_error"


def test_domains_of_a_nic_share_no_key() -> None:
    pair = cabled_pair()
    first = [pair.b.register(np.zeros(10, np.uint8)) for _ in range(2)]
    domains = [MemoryDomain(pair.b.nic) for _ in range(2)]
    more = [
        pair.b.nic.register_memory(np.zeros(10, np.uint8), memory_domain=domain) for domain in domains for _ in range(2)
    ]
    keys = [region.rkey for region in [*first, *more, pair.b.register(np.zeros(10, np.uint8))]]
    assert len(set(keys)) == len(keys)
    more[0].deregister()
    with pytest.raises(ValueError, match="no memory region has rkey"):
        more[0].deregister()


def test_a_peer_reaches_its_own_domain_alone() -> None:
    for own in (True, False):
        pair = cabled_pair()
        domain = MemoryDomain(pair.b.nic)
        pair.b.nic.detach(pair.b.queue_pair)
        pair.b.connect(pair.a, 4, remote_initial_psn=0, initial_psn=0x555, memory_domain=domain)
        target = np.zeros(100, np.uint8)
        region = pair.b.nic.register_memory(target, memory_domain=domain if own else MemoryDomain(pair.b.nic))
        pair.a.queue_pair.post_write(pair.a.register(random_bytes(100)), 0, 100, 0, region.rkey)
        pair.engine.run()
        [(_, _, status)] = statuses(pair.a)
        assert status == ("success" if own else "remote_access_error")
        assert target.any() == own
