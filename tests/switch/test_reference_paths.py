"""Random packets on random ways through v1model: simple_switch, the native switch and the oracle agree."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from native_twin import Twin
from reference_switch import AVAILABLE, ReferenceSwitch

from weft.compiler import compile_file
from weft.switch.backend import CloneSession, Replica

PROGRAM = Path(__file__).parent / "programs" / "packet_paths.p4"
PACKET_COUNT = 400
HEADERS_BYTES = 31
INSTANCE_TYPES = (0, 4, 6)

CLONE_SESSIONS = {5: 3, 6: 4}
GROUPS = {1: [(1, 7), (2, 8)], 2: [(5, 1), (5, 2), (6, 3)]}
"""Multicast groups as (port, replication id)."""


def _packets() -> list[tuple[int, bytes]]:
    """Each way alone, then any mixture; the first two bytes number the packets."""
    choose = random.Random(1)
    packets = []
    for number in range(PACKET_COUNT):
        alone = number < PACKET_COUNT // 10
        ingress = 1 << choose.randrange(8) if alone else choose.randrange(256)
        egress = 1 << choose.randrange(6) if alone else choose.randrange(64)
        request = number.to_bytes(2, "big") + bytes([ingress, egress, choose.randrange(7), 0])
        payload = choose.randbytes(choose.randrange(40))
        packets.append((choose.randrange(3), request.ljust(HEADERS_BYTES, b"\0") + payload))
    return packets


def _by_number(outputs: Iterable[tuple[int, bytes]]) -> dict[int, list[tuple[int, bytes]]]:
    found = defaultdict(list)
    for port, data in outputs:
        found[int.from_bytes(data[:2], "big")].append((port, data))
    return {number: sorted(copies) for number, copies in found.items()}


@pytest.fixture(scope="module")
def json_text() -> str:
    return compile_file(PROGRAM).json_text()


def _twin(json_text: str) -> Twin:
    twin = Twin(json_text.encode())
    for session, port in CLONE_SESSIONS.items():
        twin.both(lambda switch, s=session, p=port: switch.clone_session_set(s, CloneSession((Replica(p, 0),))))
    for group, replicas in GROUPS.items():
        members = [Replica(port, rid) for port, rid in replicas]
        twin.both(lambda switch, g=group, m=members: switch.multicast_group_set(g, m))
    return twin


def test_native_and_oracle_agree_on_all_ways(json_text: str) -> None:
    twin = _twin(json_text)
    left = sum(len(twin.process(port, data)) for port, data in _packets())
    assert left > PACKET_COUNT
    for instance_type in INSTANCE_TYPES:
        counts = [switch.counter_read("PathsIngress.seen", instance_type) for switch in (twin.native, twin.oracle)]
        assert counts[0] == counts[1]
        assert counts[0].packets > 0
    drops = {reason: count for reason, count in twin.native.drops().items() if count}
    assert drops == twin.oracle.drops


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
def test_simple_switch_agrees(json_text: str, tmp_path: Path) -> None:
    packets = _packets()
    (tmp_path / "program.json").write_text(json_text)
    with ReferenceSwitch(tmp_path / "program.json", tmp_path) as reference:
        reference.command(*(f"mirroring_add {session} {port}" for session, port in CLONE_SESSIONS.items()))
        node = 0
        for group, replicas in GROUPS.items():
            reference.command(f"mc_mgrp_create {group}")
            for port, rid in replicas:
                reference.command(f"mc_node_create {rid} {port}", f"mc_node_associate {group} {node}")
                node += 1
        reference.send(packets)
        counters = {number: reference.counter("PathsIngress.seen", number) for number in INSTANCE_TYPES}
        left = reference.stop()
    expected = _by_number((port, data) for port, copies in left.items() for data in copies)

    twin = _twin(json_text)
    found = _by_number(output for port, data in packets for output in twin.process(port, data))
    for number in range(PACKET_COUNT):
        assert found.get(number) == expected.get(number), packets[number][1].hex()
    for number, expected_counts in counters.items():
        value = twin.native.counter_read("PathsIngress.seen", number)
        assert (value.packets, value.bytes) == expected_counts
