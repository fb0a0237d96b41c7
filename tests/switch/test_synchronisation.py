"""Barriers and counters of p4/include/services, on both implementations of the switch, by docs/spec/services.md."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import Twin
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, raw

from weft.compiler import compile_file
from weft.paths import FABRIC_P4
from weft.switch.backend import ActionCall, ExactMatch, LpmMatch, Replica, SwitchBackend, TableEntry
from weft.topologies.addressing import IpVersion, service_group_address
from weft.traffic.layers import BTH, DETH, ServiceHeader, icrc_is_valid, service_frame
from weft.traffic.layers.frames import HOP_LIMIT, SWITCH_HOP_LIMIT
from weft.traffic.service_format import Kind, Operation

SERVICE = "FabricIngress.synchronisation."
MAC, PARENT_MAC, PARENT_PORT, STRANGER = "02:01:00:00:00:00", "02:02:00:00:00:00", 5, 6
OWN: dict[IpVersion, str] = {4: "10.0.0.254", 6: "fd00::fe"}
PARENT: dict[IpVersion, str] = {4: "10.0.255.1", 6: "fd00:0:ff::1"}
MEMBER: dict[IpVersion, str] = {4: "10.0.0.1", 6: "fd00::1"}
ROOT, INNER, SPINE, OUTLYING = 1, 2, 3, 4
QKEY, CHILDREN, CELLS, RANK_AT_PARENT, WINDOW = 0xDEADBEEF, 3, 2, 9, 4
CAPACITY = 1024
EPOCHS = itertools.count(1)
REASONS = {
    name: 32 + number
    for number, name in enumerate(
        (
            "bad_header", "bad_icrc", "foreign_group", "foreign_port", "wrong_qkey", "wrong_ip_version", "wrong_epoch",
            "wrong_member", "cell_out_of_range", "old_sequence", "early_round", "duplicate", "unexpected_answer",
            "not_forwarded", "from_afar",
        )
    )
}  # fmt: skip


def number(address: str) -> int:
    return int(address.replace(":", ""), 16)


def set_group(switch: SwitchBackend, group: int, epoch: int, modify: bool = True, version: IpVersion = 4) -> None:
    parent = (PARENT_PORT, number(PARENT_MAC), int(ip_address(PARENT[version])), RANK_AT_PARENT)
    base = CAPACITY - 1 if group == OUTLYING else group * 16
    values = (
        QKEY,
        epoch,
        version,
        base,
        CELLS,
        (1 << CHILDREN) - 1,
        int(group != INNER),
        *parent,
        7,
        WINDOW - 1,
    )
    entry = TableEntry((ExactMatch(group),), ActionCall(f"{SERVICE}set_group", values))
    (switch.table_modify if modify else switch.table_insert)(f"{SERVICE}service_group", entry)


def configure(switch: SwitchBackend) -> None:
    identity = (1, 1, number(MAC), *(int(ip_address(OWN[version])) for version in (4, 6)), 0, 0, 0, 0)
    switch.table_set_default(
        "FabricIngress.identity.identity", ActionCall("FabricIngress.identity.set_identity", identity)
    )
    for group in (ROOT, INNER, SPINE, OUTLYING):
        set_group(switch, group, 1, modify=False)
        members = [
            (rank + 1, ActionCall(f"{SERVICE}service_child", (rank, 1 << rank, int(group == SPINE))))
            for rank in range(CHILDREN)
        ]
        for port, call in [*members, (PARENT_PORT, ActionCall(f"{SERVICE}service_parent", ()))]:
            entry = TableEntry((ExactMatch(group), ExactMatch(port)), call)
            switch.table_insert(f"{SERVICE}service_member", entry)
        for client in range(CHILDREN):
            call = ActionCall(f"{SERVICE}to_client", (client + 1, group * 64 + client * WINDOW))
            entry = TableEntry((ExactMatch(group), ExactMatch(client)), call)
            switch.table_insert(f"{SERVICE}service_client", entry)
    switch.multicast_group_set(7, [Replica(rank + 1, 1) for rank in range(CHILDREN)])


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC_P4, defines={"SERVICE_SYNCHRONISATION": "1"}).json).encode())
    made.both(configure)
    return made


def packet(group: int, kind: Kind = Kind.REQUEST, version: IpVersion = 4, **fields: int) -> Packet:
    down = kind is Kind.ANSWER
    return service_frame(
        source_mac=PARENT_MAC,
        destination_mac=MAC,
        source_ip=(PARENT if down else MEMBER)[version],
        destination_ip=str(service_group_address(group, version)) if down else OWN[version],
        qkey=QKEY,
        kind=kind,
        group_id=group,
        **({"hop_limit": SWITCH_HOP_LIMIT if down else HOP_LIMIT, "epoch": 1} | fields),
    )


@dataclass
class Barrier:
    """A node's part in one barrier as the specification has it: `last` is the round that has begun last."""

    is_root: bool
    last: int = -1
    came: set[int] = field(default_factory=lambda: set(range(CHILDREN)))
    state: str = "done"

    def request(self, rank: int, turn: int) -> list[int]:
        """Return the ports by which something leaves."""
        if turn < self.last:
            return [rank + 1]
        if turn > self.last + 1 or (turn == self.last + 1 and self.state != "done"):
            return []
        if turn == self.last + 1:
            self.last, self.came, self.state = turn, set(), "collecting"
        if self.state == "sent up":
            return [PARENT_PORT]
        if self.state == "done":
            return [rank + 1]
        if rank in self.came:
            return []
        self.came.add(rank)
        if len(self.came) < CHILDREN:
            return []
        self.state = "done" if self.is_root else "sent up"
        return [1, 2, 3] if self.is_root else [PARENT_PORT]

    def answer(self, turn: int) -> list[int]:
        if turn != self.last or self.state != "sent up":
            return []
        self.state = "done"
        return [1, 2, 3]


SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@SOME
@given(
    st.sampled_from([ROOT, INNER]),
    st.sampled_from([4, 6]),
    st.lists(st.tuples(st.sampled_from([0, 1, 2, "answer"]), st.integers(0, 1), st.integers(-2, 2)), max_size=60),
)
def test_barriers_do_what_the_specification_says(
    twin: Twin, group: int, version: IpVersion, taken: list[tuple[int | str, int, int]]
) -> None:
    """Rounds are drawn about the present one, so that early, late and repeated packets are frequent."""
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_group(switch, group, epoch, version=version))
    cells = [Barrier(group == ROOT), Barrier(group == ROOT)]
    for who, cell, offset in taken:
        turn = max(0, cells[cell].last + offset)
        fields = {"epoch": epoch, "cell": cell, "sequence": turn}
        if isinstance(who, int):
            wanted, port = cells[cell].request(who, turn), who + 1
            frame = packet(group, version=version, member=who, **fields)
        else:
            wanted, port = cells[cell].answer(turn), PARENT_PORT
            frame = packet(group, Kind.ANSWER, version, **fields)
        sent = twin.process(port, raw(frame))
        assert [port for port, _ in sent] == wanted
        for out, data in sent:
            check_sent(data, group, version, up=out == PARENT_PORT, **fields)


def check_sent(data: bytes, group: int, version: IpVersion, *, up: bool, **fields: int) -> None:
    sent = Ether(data)
    header, ip = sent[ServiceHeader], sent[IPv6 if version == 6 else IP]
    assert icrc_is_valid(data)
    assert {name: getattr(header, name) for name in fields} == fields
    assert (header.kind, sent[BTH].dqpn) == ((Kind.REQUEST, 0xA66001) if up else (Kind.ANSWER, 0xFFFFFF))
    assert (ip.src, ip.dst) == (
        OWN[version],
        PARENT[version] if up else str(service_group_address(group, version)),
    )
    assert (ip.hlim if version == 6 else ip.ttl) == SWITCH_HOP_LIMIT
    assert (sent.src, sent[UDP].chksum) == (MAC, 0)
    if up:
        assert sent.dst == PARENT_MAC
    if header.operation == Operation.BARRIER:
        assert header.member == (RANK_AT_PARENT if up else 0)


@SOME
@given(
    st.lists(
        st.tuples(
            st.integers(0, CHILDREN - 1),
            st.integers(0, CELLS - 1),
            st.sampled_from([Operation.FETCH_AND_ADD, Operation.COMPARE_AND_SWAP]),
            st.sampled_from([0, 1, 5, 2**64 - 1]),
            st.sampled_from([0, 1, 6]),
            st.sampled_from(["new", "new", "again", "old"]),
        ),
        max_size=40,
    )
)
def test_each_request_to_a_counter_is_executed_once(
    twin: Twin, taken: list[tuple[int, int, Operation, int, int, str]]
) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_group(switch, ROOT, epoch))
    values, answers = [0] * CELLS, [{} for _ in range(CHILDREN)]
    for client, cell, operation, operand, comparand, how in taken:
        known = answers[client]
        newest = max(known, default=-1)
        sequence = {"new": newest + 1, "again": newest, "old": newest - WINDOW}[how]
        if sequence < 0:
            continue
        frame = packet(
            ROOT, operation=operation, epoch=epoch, cell=cell, sequence=sequence, member=client,
            operand=operand, comparand=comparand,
        )  # fmt: skip
        sent = twin.process(client + 1, raw(frame))
        if how == "old":
            assert sent == []
            continue
        if how == "new":
            known[sequence] = values[cell]
            if operation is Operation.FETCH_AND_ADD:
                values[cell] = (values[cell] + operand) % 2**64
            elif values[cell] == comparand:
                values[cell] = operand
        ((port, data),) = sent
        assert port == client + 1
        check_sent(data, ROOT, 4, up=False, operand=known[sequence], member=client, sequence=sequence)


def test_requests_to_counters_pass_inner_nodes_and_answers_find_their_client(twin: Twin) -> None:
    twin.both(lambda switch: set_group(switch, INNER, 1))
    asked = {"operation": Operation.FETCH_AND_ADD, "member": 2, "operand": 7, "sequence": 3, "cell": 1}
    ((port, data),) = twin.process(3, raw(packet(INNER, **asked)))
    assert port == PARENT_PORT
    check_sent(data, INNER, 4, up=True, **asked)
    ((port, data),) = twin.process(PARENT_PORT, raw(packet(INNER, Kind.ANSWER, **asked)))
    assert port == 3
    check_sent(data, INNER, 4, up=False, **asked)


def changed(layer: type[Packet], name: str, value: object, group: int = ROOT, **fields: int) -> Packet:
    frame = packet(group, **fields)
    frame[layer].setfieldval(name, value)
    return frame


ADD = {"operation": Operation.FETCH_AND_ADD}
FORGERIES = {
    "a request to the answers' queue pair": (1, "bad_header", changed(BTH, "dqpn", 0xFFFFFF)),
    "a request to the group": (1, "bad_header", changed(IP, "dst", str(service_group_address(ROOT)))),
    "an answer to another group": (
        PARENT_PORT, "bad_header", changed(IP, "dst", str(service_group_address(INNER)), kind=Kind.ANSWER)
    ),
    "flags": (1, "bad_header", changed(ServiceHeader, "flags", 1)),
    "an unknown operation": (1, "bad_header", packet(ROOT, operation=3)),
    "an unknown version": (1, "bad_header", changed(ServiceHeader, "version", 2)),
    "an IP length beyond the packet": (1, "bad_header", changed(IP, "len", 400)),
    "an unknown group": (1, "foreign_group", packet(9)),
    "a stranger's port": (STRANGER, "foreign_port", packet(ROOT)),
    "a wrong key": (1, "wrong_qkey", changed(DETH, "qkey", 1)),
    "another IP version": (1, "wrong_ip_version", packet(ROOT, version=6)),
    "an old epoch": (1, "wrong_epoch", packet(ROOT, epoch=0)),
    "another member's rank": (1, "wrong_member", packet(ROOT, member=1)),
    "another client's number": (1, "wrong_member", packet(ROOT, member=1, **ADD)),
    "an unknown client": (1, "wrong_member", packet(ROOT, member=99, **ADD)),
    "a cell beyond the group's": (1, "cell_out_of_range", packet(ROOT, cell=CELLS)),
    "a cell beyond the registers": (1, "cell_out_of_range", packet(OUTLYING, cell=1)),
    "a barrier ahead of the others": (1, "early_round", packet(ROOT, sequence=7, cell=1)),
    "an answer from a child": (1, "unexpected_answer", packet(ROOT, Kind.ANSWER)),
    "an answer that nobody waits for": (PARENT_PORT, "unexpected_answer", packet(INNER, Kind.ANSWER)),
    "a request from the parent": (PARENT_PORT, "unexpected_answer", packet(INNER, hop_limit=SWITCH_HOP_LIMIT)),
    "a routed request as if from a leaf": (1, "from_afar", packet(SPINE, hop_limit=254)),
    "a routed answer": (PARENT_PORT, "from_afar", packet(INNER, Kind.ANSWER, hop_limit=254)),
    "a request to the parent": (1, "not_forwarded", changed(IP, "dst", PARENT[4])),
    "an IPv6 request to the parent": (1, "not_forwarded", changed(IPv6, "dst", PARENT[6], version=6)),
    "a request to a host": (1, "not_forwarded", changed(IP, "dst", MEMBER[4])),
}  # fmt: skip


def drops(twin: Twin, reason: str) -> int:
    key = (ExactMatch(REASONS[reason]),)
    return twin.native.direct_counter_read("FabricIngress.drops.drops", key, 0).packets


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_counted_by_reason_and_answered_to_nobody(twin: Twin, name: str) -> None:
    port, reason, frame = FORGERIES[name]
    for group in (ROOT, INNER, SPINE):
        twin.both(lambda switch, group=group: set_group(switch, group, 1))
    before = drops(twin, reason)
    assert twin.process(port, raw(frame)) == []
    assert drops(twin, reason) == before + 1


def test_a_packet_whose_icrc_is_wrong_is_dropped(twin: Twin) -> None:
    before = drops(twin, "bad_icrc")
    frame = bytearray(raw(packet(ROOT)))
    frame[-10] ^= 1
    assert twin.process(1, bytes(frame)) == []
    assert drops(twin, "bad_icrc") == before + 1


def test_what_is_ordinary_roce_is_forwarded_as_ever(twin: Twin) -> None:
    route = ActionCall("FabricIngress.forwarding.set_next_hop", (PARENT_PORT, number(MAC), number(PARENT_MAC)))
    entry = TableEntry((LpmMatch(int(ip_address(PARENT[4])), 32),), route)
    twin.both(lambda switch: switch.table_insert("FabricIngress.forwarding.ipv4_lpm", entry))
    for layer, name, value in ((BTH, "opcode", 0x65), (BTH, "dqpn", 0xA66002), (UDP, "len", 63)):
        frame = changed(IP, "dst", PARENT[4])
        frame[layer].setfieldval(name, value)
        assert [port for port, _ in twin.process(1, raw(frame))] == [PARENT_PORT]


def test_a_program_without_services_has_nothing_of_them() -> None:
    """Whoever does not choose the module pays nothing for it: no header, state, table, register or action."""
    without = compile_file(FABRIC_P4).json
    named = [
        each["name"] for kind in ("headers", "register_arrays", "actions", "counter_arrays") for each in without[kind]
    ]
    tables = [each["name"] for pipeline in without["pipelines"] for each in pipeline["tables"]]
    states = [each["name"] for each in without["parsers"][0]["parse_states"]]
    assert not [
        name
        for name in (*named, *tables, *states)
        if any(word in name for word in ("service", "synchronisation", "parameter", "cache"))
    ]
