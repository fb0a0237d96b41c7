"""p4/include/valiant.p4 on native switch, oracle and simple_switch: which intermediate, and the shim's bytes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import pytest
from native_twin import Twin
from p4c import P4c
from reference_switch import AVAILABLE, ReferenceSwitch
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import raw
from test_native_fabric import FABRIC, IPV4_NUMBER, IPV6_NUMBER, MAC, MAC_NUMBER

from weft.compiler import compile_file
from weft.engine import Engine
from weft.switch.backend import (
    ActionCall,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    SwitchBackend,
    TableEntry,
)
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch
from weft.traffic.layers import IntShim, ValiantShim, icrc_is_valid, rdma_write_frame

COMPILERS = ["embedded", pytest.param("p4c", marks=pytest.mark.reference)]
INGRESS = "FabricIngress."
VALIANT, FORWARDING, LANES = f"{INGRESS}valiant.", f"{INGRESS}forwarding.", f"{INGRESS}virtual_lanes."
HOST, TRUNK = 1, 2
WAYS = {1: 3, 2: 4}
"""Port towards each other intermediate; this switch is in 0, where the destination's host is at HOST."""
OTHER_WAY = 5
DATA, SECOND = 3, 4
LAYER = 7
LIFETIME = 10**9
Call = tuple[str, str, tuple[int, ...], tuple[int, ...], int]
"""Table, action, key, arguments, bits of the prefix of a longest-prefix match."""


def calls(mode: str, last: int = 0, threshold: int = 0, layer: int = 0, hops: int = 5) -> list[Call]:
    """All entries, in a form that P4Runtime's backends and simple_switch's CLI take alike."""
    ugal = (0, last, threshold, LIFETIME)
    found: list[Call] = [
        (
            f"{VALIANT}source_routing_ports",
            f"{VALIANT}route_{mode}",
            (HOST,),
            ugal if mode == "ugal" else (0, last),
            0,
        ),
        (f"{VALIANT}intermediates", f"{VALIANT}reach", (0,), (layer,), 0),
    ]
    for version, bits in ((4, 32), (6, 128)):
        for number in (0, *WAYS):
            hop = (WAYS.get(number, HOST), MAC_NUMBER, 0x020000000000 + number)
            key = (address(version, number),)
            found.append((f"{FORWARDING}ipv{version}_lpm", f"{FORWARDING}set_next_hop", key, hop, bits - 8))
            found.append(
                (
                    f"{VALIANT}intermediate_by_ipv{version}",
                    f"{VALIANT}set_destination",
                    key,
                    (number, 2),
                    bits - 8,
                )
            )
    for number, port in WAYS.items():
        hop = (port, MAC_NUMBER, 0x020000000000 + number, hops)
        found.append((f"{VALIANT}intermediates", f"{VALIANT}go_by_next_hop", (number,), hop, 0))
    for dscp, number in ((26, DATA), (32, SECOND)):
        for table in ("class_map", "class_map_ipv6"):
            found.append((f"{INGRESS}classes.{table}", f"{INGRESS}classes.set_class", (dscp,), (number,), 0))
    found.append((f"{LANES}layer_lane", f"{LANES}set_virtual_lane", (LAYER, DATA), (SECOND, 32), 0))
    return found


def identity(mode: str) -> tuple[int, ...]:
    compares = int(mode == "ugal")
    return (1, 0, MAC_NUMBER, IPV4_NUMBER, IPV6_NUMBER, 0, compares, compares, 1)


def configure(switch: SwitchBackend, mode: str, entries: Iterable[Call]) -> None:
    switch.table_set_default(
        f"{INGRESS}identity.identity", ActionCall(f"{INGRESS}identity.set_identity", identity(mode))
    )
    for table, action, key, arguments, bits in entries:
        match = (LpmMatch(key[0], bits),) if bits else tuple(map(ExactMatch, key))
        switch.table_insert(table, TableEntry(match, ActionCall(action, arguments)))


def address(ip_version: int, number: int) -> int:
    return (10 << 24 if ip_version == 4 else 0xFD << 120) + (number << 8)


def frame(ip_version: int, number: int, int_telemetry: bool = False, host: int = 9) -> bytes:
    """A WRITE to a host of an intermediate."""
    source, destination = (
        ("10.0.0.77", f"10.0.{number}.{host}")
        if ip_version == 4
        else (
            "fd00::77",
            f"fd00::{number:x}{host:02x}",
        )
    )
    sent = rdma_write_frame(
        source_mac="02:00:00:00:00:01",
        destination_mac=MAC,
        source_ip=source,
        destination_ip=destination,
        destination_qp=9,
        psn=4,
        payload=b"x" * 64,
        int_telemetry=int_telemetry,
    )
    if ip_version == 4:
        sent[IP].tos = 26 << 2 | 2
        del sent[IP].chksum
    else:
        sent[IPv6].tc = 26 << 2 | 2
    return raw(sent)


def with_shim(data: bytes, intermediate: int, **fields: int) -> bytes:
    following = int.from_bytes(data[12:14], "big")
    shim = ValiantShim(**{"intermediate": intermediate, "next_ethertype": following, **fields})
    return data[:12] + b"\x88\xb6" + raw(shim) + data[14:]


def without_shim(data: bytes) -> bytes:
    return data[:12] + data[18:20] + data[20:]


@pytest.fixture(scope="module", params=COMPILERS)
def document(request: pytest.FixtureRequest, p4c: P4c) -> bytes:
    return (
        p4c.compiled(FABRIC).json.read_bytes() if request.param == "p4c" else compile_file(FABRIC).json_text().encode()
    )


def twin(document: bytes, mode: str = "valiant", **more: int) -> Twin:
    made = Twin(document)
    made.both(lambda switch: configure(switch, mode, calls(mode, **more)))
    return made


@lru_cache(maxsize=2)
def _program(document: bytes) -> Program:
    """Return one object for all switches, so that it is compiled once."""
    return load_program(document)


def native(document: bytes, mode: str, **more: int) -> NativeSwitch:
    """Return a switch at a time above 0."""
    engine = Engine(seed=1)
    engine.run_for(10**6)
    switch = NativeSwitch(engine, name="router")
    switch.load(_program(document))
    configure(switch, mode, calls(mode, **more))
    return switch


KINDS = list(itertools.product((4, 6), (False, True)))


@pytest.mark.parametrize(("ip_version", "int_telemetry"), KINDS)
def test_a_host_s_packet_goes_by_the_other_intermediate(document: bytes, ip_version: int, int_telemetry: bool) -> None:
    ((port, data),) = twin(document).process(HOST, frame(ip_version, 1, int_telemetry))
    assert port == WAYS[2]
    sent = Ether(data)
    assert (sent.src, sent.dst) == (MAC, "02:00:00:00:00:02")
    shim = sent[ValiantShim]
    assert (shim.version, shim.reserved, shim.intermediate) == (1, 0, 2)
    assert (IntShim in sent) == int_telemetry
    assert icrc_is_valid(without_shim(data))
    ((port, plain),) = twin(document).process(TRUNK, frame(ip_version, 1, int_telemetry))
    assert port == WAYS[1]
    # Hop limit, checksum and all else are those of a packet without a detour.
    assert without_shim(data)[14:] == plain[14:]


@pytest.mark.parametrize(("ip_version", "int_telemetry"), KINDS)
def test_switches_on_the_way_go_by_the_shim_and_the_intermediate_takes_it_off(
    document: bytes, ip_version: int, int_telemetry: bool
) -> None:
    both = twin(document)
    received = frame(ip_version, 1, int_telemetry)
    ((port, onward),) = both.process(TRUNK, with_shim(received, 2))
    ((_, plain),) = both.process(TRUNK, received)
    assert port == WAYS[2]
    assert without_shim(onward)[14:] == plain[14:]
    assert both.process(TRUNK, with_shim(received, 0)) == [(WAYS[1], plain)]
    # It may be at home there.
    at_home = frame(ip_version, 0, int_telemetry)
    assert both.process(TRUNK, with_shim(at_home, 0)) == both.process(TRUNK, at_home)


def test_packets_within_an_intermediate_go_straight(document: bytes) -> None:
    for ip_version in (4, 6):
        ((port, data),) = twin(document).process(HOST, frame(ip_version, 0))
        assert (port, ValiantShim in Ether(data)) == (HOST, False)


def test_leaving_an_intermediate_may_change_the_lane(document: bytes) -> None:
    for ip_version in (4, 6):
        ((_, data),) = twin(document, layer=LAYER).process(TRUNK, with_shim(frame(ip_version, 1), 0))
        sent = Ether(data).payload
        assert (sent.tos if ip_version == 4 else sent.tc) == 32 << 2 | 2


def test_what_no_switch_would_send_is_dropped_by_its_reason(document: bytes) -> None:
    switch = native(document, "valiant")
    received = frame(4, 1)
    assert switch.process(HOST, with_shim(received, 2)) == []  # hosts have no say in it
    assert switch.process(TRUNK, with_shim(received, 9)) == []
    assert switch.process(TRUNK, with_shim(received, 2, version=2)) == []
    assert switch.process(TRUNK, with_shim(received, 2, next_ethertype=0x0806)) == []
    assert switch.process(TRUNK, with_shim(received, 2)[:17]) == []
    plain = native(document, "valiant")
    plain.table_set_default(
        f"{INGRESS}identity.identity", ActionCall(f"{INGRESS}identity.set_identity", (*identity("x")[:-1], 0))
    )
    ((port, data),) = plain.process(HOST, received)
    assert (port, ValiantShim in Ether(data)) == (WAYS[1], False)
    table = f"{INGRESS}drops.drops"
    counted = {
        entry.action.action.rpartition(".")[2]: count.packets
        for entry in switch.table_entries(table)
        if isinstance(entry.action, ActionCall) and (count := switch.direct_counter_read(table, entry.key, 0)).packets
    }
    assert counted == {"unknown_ethertype": 3, "no_route": 1, "parser_error": 1}


def test_every_other_intermediate_is_as_likely(document: bytes) -> None:
    switch = native(document, "valiant", last=4)
    for number in range(3, 7):
        hop = ActionCall(f"{VALIANT}go_by_next_hop", (6, MAC_NUMBER, 0, 5))
        switch.table_insert(f"{VALIANT}intermediates", TableEntry((ExactMatch(number),), hop))
    drawn = Counter(
        Ether(data)[ValiantShim].intermediate for _ in range(1000) for _, data in switch.process(HOST, frame(4, 2))
    )
    assert set(drawn) == {1, 3, 4, 5, 6}
    assert all(150 < count < 250 for count in drawn.values())


def test_without_a_way_to_the_intermediate_a_packet_goes_straight(document: bytes) -> None:
    switch = native(document, "valiant")
    switch.table_delete(f"{VALIANT}intermediates", (ExactMatch(2),), 0)
    ((port, data),) = switch.process(HOST, frame(4, 1))
    assert (port, ValiantShim in Ether(data)) == (WAYS[1], False)


def set_port_depths(switch: NativeSwitch, depths: dict[int, int], written: int | None = None) -> None:
    """Leave depths as egress does; now unless it is said when."""
    for port, depth in depths.items():
        switch.register_write("port_depths", port, depth)
        switch.register_write("port_depth_times", port, switch.engine.now_ps // 1000 if written is None else written)


@pytest.mark.parametrize(
    ("minimal", "other", "threshold", "is_detour"),
    [
        (0, 0, 0, False),
        (10, 4, 0, False),
        (11, 4, 0, True),
        (11, 4, 2, False),
        (12, 4, 3, True),
        (1, 0, 0, True),
    ],
)
def test_ugal_weighs_depths_by_hops(document: bytes, minimal: int, other: int, threshold: int, is_detour: bool) -> None:
    """2 hops straight, 5 by the intermediate."""
    switch = native(document, "ugal", threshold=threshold)
    set_port_depths(switch, {WAYS[1]: minimal, WAYS[2]: other})
    ((port, data),) = switch.process(HOST, frame(4, 1))
    assert port == WAYS[2 if is_detour else 1]
    assert (ValiantShim in Ether(data)) == is_detour
    assert Ether(data).dst == f"02:00:00:00:00:0{2 if is_detour else 1}"


def test_a_port_s_depth_does_not_outlive_its_lifetime(document: bytes) -> None:
    switch = native(document, "ugal")
    switch.engine.run_for(2 * 10**12)
    set_port_depths(switch, {WAYS[1]: 100}, written=1)
    ((port, _),) = switch.process(HOST, frame(4, 1))
    assert port == WAYS[1]


def test_egress_keeps_the_sum_of_a_port_s_queues(document: bytes) -> None:
    switch = native(document, "ugal")
    switch.register_write("queue_depths", WAYS[1] << 3 | DATA, 5)
    switch.register_write("port_depths", WAYS[1], 9)  # four are in another class
    switch.process(TRUNK, frame(4, 1))
    assert switch.register_read("port_depths", WAYS[1]) == 4
    assert switch.register_read("port_depth_times", WAYS[1]) == switch.engine.now_ps // 1000


@pytest.mark.parametrize("mode", ["valiant", "ugal"])
def test_several_links_lead_to_an_intermediate(document: bytes, mode: str) -> None:
    switch = native(document, mode)
    key = (ExactMatch(2),)
    switch.table_delete(f"{VALIANT}intermediates", key, 0)
    group = ActionCall(f"{VALIANT}go_by_ecmp_group", (1, 5))
    switch.table_insert(f"{VALIANT}intermediates", TableEntry(key, group))
    for table, action in (
        (f"{FORWARDING}ecmp", "forwarding.set_next_hop"),
        (f"{INGRESS}departure.ecmp_nonminimal", "departure.set_nonminimal_next_hop"),
    ):
        for port in (WAYS[2], OTHER_WAY):
            member = ActionCall(f"{INGRESS}{action}", (port, MAC_NUMBER, 0x020000000000 + port))
            switch.member_insert(f"{table}_selector", port, member)
        members = [GroupMember(port, 1, watch_port=port) for port in (WAYS[2], OTHER_WAY)]
        switch.group_insert(f"{table}_selector", 1, members)
        switch.table_insert(table, TableEntry((ExactMatch(1),), GroupRef(1)))
    found = set()
    for host in range(1, 30):
        set_port_depths(switch, {WAYS[1]: 100, WAYS[2]: 0, OTHER_WAY: 0})
        ((port, data),) = switch.process(HOST, frame(4, 1, host=host))
        assert Ether(data)[ValiantShim].intermediate == 2
        assert Ether(data).dst == f"02:00:00:00:00:0{port}"
        found.add(port)
    assert found == {WAYS[2], OTHER_WAY}


def commands(mode: str) -> list[str]:
    """What configure() does, for simple_switch_CLI."""
    lines = [
        f"table_set_default {INGRESS}identity.identity {INGRESS}identity.set_identity "
        f"{' '.join(map(str, identity(mode)))}"
    ]
    for table, action, key, arguments, bits in calls(mode):
        match = f"{key[0]:#x}/{bits}" if bits else " ".join(map(str, key))
        lines.append(f"table_add {table} {action} {match} => {' '.join(map(str, arguments))}")
    return lines


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
@pytest.mark.parametrize("mode", ["valiant", "ugal"])
def test_simple_switch_sends_the_same(document: bytes, tmp_path: Path, mode: str) -> None:
    (tmp_path / "program.json").write_bytes(document)
    received = [
        (port, data)
        for ip_version, int_telemetry in KINDS
        for number in (0, 1, 2)
        for plain in [frame(ip_version, number, int_telemetry)]
        for port, data in (
            (HOST, plain),
            (TRUNK, plain),
            *((TRUNK, with_shim(plain, intermediate)) for intermediate in (0, 1, 2, 9)),
        )
    ]
    with ReferenceSwitch(tmp_path / "program.json", tmp_path) as reference:
        reference.command(*commands(mode))
        reference.send(received)
        left = reference.stop()
    both = twin(document, mode)
    found = [output for port, data in received for output in both.process(port, data)]
    # One of six is to an intermediate that there is no way to.
    assert len(found) == len(received) * 5 // 6
    assert sorted(found) == sorted((port, data) for port, copies in left.items() for data in copies)
