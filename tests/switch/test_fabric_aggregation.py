"""The slots of p4/fabric.p4, on the native switch and on the oracle, against the table of docs/spec/aggregation.md."""

from __future__ import annotations

import itertools
import json
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import Twin
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, raw

from tests.traffic.slot_machine import COMBINE, OVERFLOW, Output, SlotMachine, combined
from weft.compiler import compile_file
from weft.switch.backend import (
    ActionCall,
    ExactMatch,
    LpmMatch,
    MeterConfig,
    Replica,
    SwitchBackend,
    TableEntry,
)
from weft.topologies.addressing import IpVersion, result_group_address, result_group_mac
from weft.traffic.aggregation_format import IN_PACKETS, Kind, LaneType, Operation, udp_length
from weft.traffic.layers import BTH, AggregationHeader, IntShim, aggregation_frame, icrc_is_valid
from weft.traffic.layers.frames import HOP_LIMIT, SWITCH_HOP_LIMIT

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"
AGGREGATION = "FabricIngress.aggregation."
MAC, PARENT_MAC, PARENT_PORT = "02:01:00:00:00:00", "02:02:00:00:00:00", 5
OWN: dict[IpVersion, str] = {4: "10.0.0.254", 6: "fd00::fe"}
PARENT: dict[IpVersion, str] = {4: "10.0.255.1", 6: "fd00:0:ff::1"}
WORKER: dict[IpVersion, str] = {4: "10.0.0.1", 6: "fd00::1"}
IP_LAYER: dict[IpVersion, type[Packet]] = {4: IP, 6: IPv6}
ROOT_JOB, INNER_JOB, OUTLYING_JOB, SPINE_JOB = 1, 2, 3, 4  # the children of the last one are switches
QKEY, CHILDREN, SLOTS, RANK_AT_PARENT = 0xDEADBEEF, 3, 2, 9
WORKERS = [range(0, 2), range(2, 5), range(5, 6)]  # below each child
ALL_WORKERS, WORKER_COUNT = 0xFFFF, 8
SLOT_CAPACITY = 4096
EPOCHS = itertools.count(1)
REASONS = {
    "over_rate": 15,
    "bad_header": 16,
    "bad_icrc": 17,
    "slot_out_of_range": 23,
    "old_round": 24,
    "duplicate": 25,
    "unexpected_result": 26,
    "wrong_operation": 27,
    "wrong_ip_version": 28,
    "not_forwarded": 29,
    "from_afar": 30,
    "wrong_destination": 31,
}


def number(address: str) -> int:
    return int(address.replace(":", ""), 16)


def set_job(switch: SwitchBackend, job: int, epoch: int, modify: bool = True, ip_version: IpVersion = 4) -> None:
    parent = (PARENT_PORT, number(PARENT_MAC), int(ip_address(PARENT[ip_version])), RANK_AT_PARENT)
    is_root = int(job != INNER_JOB)
    base = SLOT_CAPACITY - 1 if job == OUTLYING_JOB else job * 16
    values = (QKEY, epoch, ip_version, base, SLOTS, (1 << CHILDREN) - 1, is_root, *parent, 7, WORKER_COUNT)
    entry = TableEntry((ExactMatch(job),), ActionCall(f"{AGGREGATION}set_job", values))
    (switch.table_modify if modify else switch.table_insert)(f"{AGGREGATION}aggregation_job", entry)


def configure(switch: SwitchBackend) -> None:
    identity = (1, 1, number(MAC), *(int(ip_address(OWN[version])) for version in (4, 6)), 0, 0, 0, 0)
    switch.table_set_default(
        "FabricIngress.identity.identity", ActionCall("FabricIngress.identity.set_identity", identity)
    )
    for job in (ROOT_JOB, INNER_JOB, OUTLYING_JOB, SPINE_JOB):
        set_job(switch, job, 1, modify=False)
        members = [
            (rank + 1, ActionCall(f"{AGGREGATION}child", (rank, 1 << rank, int(job == SPINE_JOB))))
            for rank in range(CHILDREN)
        ]
        for port, call in [*members, (PARENT_PORT, ActionCall(f"{AGGREGATION}parent", ()))]:
            entry = TableEntry((ExactMatch(job), ExactMatch(port)), call)
            switch.table_insert(f"{AGGREGATION}aggregation_member", entry)
        for rank, below in enumerate(WORKERS):
            leads_to = ActionCall("FabricEgress.copies.leads_to", (below.start, below.stop - 1))
            entry = TableEntry((ExactMatch(job), ExactMatch(rank + 1)), leads_to)
            switch.table_insert("FabricEgress.copies.aggregation_child", entry)
    switch.multicast_group_set(7, [Replica(rank + 1, 1) for rank in range(CHILDREN)])


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC).json).encode())
    made.both(configure)
    return made


def packet(
    job: int,
    lanes: np.ndarray | list[int] | None,
    *,
    kind: Kind = Kind.CONTRIBUTION,
    ip_version: IpVersion = 4,
    **fields: int,
) -> Packet:
    down = kind is Kind.RESULT
    return aggregation_frame(
        source_mac=PARENT_MAC,
        destination_mac=result_group_mac(job, ip_version) if down else MAC,
        source_ip=(PARENT if down else WORKER)[ip_version],
        destination_ip=str(result_group_address(job, ip_version)) if down else OWN[ip_version],
        qkey=QKEY,
        kind=kind,
        job_id=job,
        lanes=[] if lanes is None else [int(lane) for lane in lanes],
        **({"hop_limit": SWITCH_HOP_LIMIT if down else HOP_LIMIT} | fields),
    )


def lanes_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**31), 2**31, 64, dtype=np.int64).astype(np.int32)


def expected_ports(output: Output) -> list[int]:
    if output.to == "children":
        return list(range(1, CHILDREN + 1))
    return [PARENT_PORT] if output.to == "parent" else [int(output.to) + 1]


steps = st.tuples(
    st.sampled_from([0, 1, 2, "result"]),  # who: a child, or the parent with a result
    st.integers(0, SLOTS - 1),
    st.integers(0, 3),  # round, above the first
    st.sampled_from([Operation.SUM] * 6 + [*IN_PACKETS]),
    st.sampled_from([LaneType.INT32] * 3 + [LaneType.INT16, LaneType.INT8]),
    st.sampled_from([0, 0, 0, OVERFLOW]),
    st.integers(0, 2**16),
    st.sampled_from([True, True, False]),  # with lanes
    st.sampled_from([ALL_WORKERS, ALL_WORKERS, 0, 3, 5]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([ROOT_JOB, INNER_JOB]),
    st.sampled_from([4, 6]),
    st.sampled_from([0, 2**31 - 2, 2**32 - 2]),
    st.lists(steps, min_size=1, max_size=40),
)
def test_slots_do_what_the_table_of_the_architecture_says(
    twin: Twin,
    job: int,
    ip_version: IpVersion,
    first_round: int,
    taken: list[tuple[object, int, int, Operation, int, int, int, bool, int]],
) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, job, epoch, ip_version=ip_version))
    model = SlotMachine(CHILDREN, SLOTS, epoch, job == ROOT_JOB, WORKERS)
    for who, slot, later, operation, data_type, flags, seed, has_lanes, destination in taken:
        fields = {
            "epoch": epoch, "slot": slot, "round": (first_round + later) % 2**32, "operation": operation, "rank": 0,
            "destination": destination, "data_type": data_type, "flags": flags,
        }  # fmt: skip
        lanes = lanes_of(seed) if has_lanes else None
        if isinstance(who, int):
            fields["rank"] = who
            wanted = model.contribution(who, fields, lanes)
            kind, port = Kind.CONTRIBUTION, who + 1
        else:
            wanted = model.result(fields, lanes)
            kind, port = Kind.RESULT, PARENT_PORT
        fields["round_number"] = fields.pop("round")
        sent = twin.process(port, raw(packet(job, lanes, kind=kind, ip_version=ip_version, **fields)))
        assert [port for port, _ in sent] == [port for output in wanted for port in expected_ports(output)]
        for port, data in sent:
            to_parent = wanted[0].to == "parent"
            copy_lanes = wanted[0].lanes if to_parent else model.lanes_to(port - 1, wanted[0])
            check_sent(data, job, epoch, wanted[0], copy_lanes, ip_version)


def check_sent(
    data: bytes, job: int, epoch: int, wanted: Output, lanes: np.ndarray | None, ip_version: IpVersion
) -> None:
    sent = Ether(data)
    ip = sent[IP_LAYER[ip_version]]
    header = sent[AggregationHeader]
    up = wanted.to == "parent"
    assert icrc_is_valid(data)
    assert header.lanes == ([] if lanes is None else lanes.tolist())
    assert header.lane_count == len(header.lanes)
    assert header.destination == wanted.destination
    assert len(data) == (34 if ip_version == 4 else 54) + udp_length(len(header.lanes))
    assert (header.epoch, header.slot, header.round) == (epoch, wanted.slot, wanted.round)
    assert (header.operation, header.data_type, header.flags, header.kind) == (
        wanted.operation,
        wanted.data_type,
        wanted.flags,
        Kind.CONTRIBUTION if up else Kind.RESULT,
    )
    assert (sent.src, sent.dst) == (MAC, PARENT_MAC if up else result_group_mac(job, ip_version))
    group = str(result_group_address(job, ip_version))
    assert (ip.src, ip.dst) == (OWN[ip_version], PARENT[ip_version] if up else group)
    assert (ip.hlim if ip_version == 6 else ip.ttl) == SWITCH_HOP_LIMIT
    if ip_version == 6:
        assert ip.fl == job
    assert (header.rank, sent[BTH].dqpn) == (RANK_AT_PARENT if up else 0, 0xA66000 if up else 0xFFFFFF)
    assert sent[UDP].chksum == 0


EXTREMES = {each: 2 ** (8 * each.element_bytes - 1) - 1 for each in LaneType}


@pytest.mark.parametrize("data_type", EXTREMES)
@pytest.mark.parametrize("operation", IN_PACKETS)
def test_every_operation_and_type_is_the_same_in_every_order_of_arrival(
    twin: Twin, operation: Operation, data_type: LaneType
) -> None:
    """Lanes with extremes, each beside others, so that a carry or a comparison would show in its neighbour."""
    generator = np.random.default_rng(int(operation) * 3 + data_type)
    size = data_type.element_bytes
    largest = EXTREMES[data_type]
    values = np.array([0, 1, -1, 2, largest, largest - 1, -largest, -largest - 1])
    inputs = [
        generator.choice(values, 64 * 4 // size).astype(f">i{size}").view(">i4").astype(np.int32)
        for _ in range(CHILDREN)
    ]
    expected, _ = combined(operation, data_type, *inputs[:2])
    expected, _ = combined(operation, data_type, expected, inputs[2])
    fields = {"operation": operation, "data_type": data_type, "epoch": 1}
    flags = set()
    for number, order in enumerate(itertools.permutations(range(CHILDREN))):
        epoch = next(EPOCHS)
        twin.both(lambda switch, epoch=epoch: set_job(switch, ROOT_JOB, epoch))
        for rank in order:
            sent = twin.process(
                rank + 1,
                raw(packet(ROOT_JOB, inputs[rank], rank=rank, round_number=number, **fields | {"epoch": epoch})),
            )
        header = Ether(sent[0][1])[AggregationHeader]
        assert header.lanes == expected.tolist()
        flags.add(header.flags)
    assert flags == ({OVERFLOW} if operation == Operation.SUM else {0})


@given(st.sampled_from(list(EXTREMES)), st.permutations(range(CHILDREN)), st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_overflow_is_flagged_if_the_sum_has_one_and_not_if_no_partial_sum_can(
    twin: Twin, data_type: LaneType, order: list[int], data: st.DataObject
) -> None:
    largest = EXTREMES[data_type]
    terms = data.draw(st.lists(st.integers(-largest - 1, largest), min_size=CHILDREN, max_size=CHILDREN))
    place = data.draw(st.integers(0, data_type.elements - 1))
    shift = 8 * data_type.element_bytes * place
    mask = 2 * largest + 1
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    for rank in order:
        word = (terms[rank] & mask) << shift
        lane = word - 2**32 if word >= 2**31 else word
        fields = {"data_type": data_type, "epoch": epoch, "rank": rank}
        sent = twin.process(rank + 1, raw(packet(ROOT_JOB, [lane], **fields)))
    header = Ether(sent[0][1])[AggregationHeader]
    assert header.lanes[0] & mask << shift == (sum(terms) & mask) << shift
    if not -largest - 1 <= sum(terms) <= largest:
        assert header.flags == OVERFLOW
    elif sum(map(abs, terms)) <= largest:
        assert header.flags == 0


@pytest.mark.parametrize("operation", IN_PACKETS)
def test_epoch_0_does_not_take_the_registers_first_content_for_a_slot(twin: Twin, operation: Operation) -> None:
    """The controller never uses epoch 0; a foreign one that does gets right sums, maxima and minima."""
    slot, lanes = 1, [lanes_of(seed) for seed in range(CHILDREN)]
    twin.both(lambda switch: switch.register_fill(f"{AGGREGATION}slot_tag", 0))
    twin.both(lambda switch: switch.register_fill(f"{AGGREGATION}slot_bitmap", 0))
    twin.both(lambda switch: set_job(switch, ROOT_JOB, 0))
    for rank in range(CHILDREN):
        sent = twin.process(rank + 1, raw(packet(ROOT_JOB, lanes[rank], slot=slot, rank=rank, operation=operation)))
    expected = COMBINE[operation].reduce(lanes, dtype=np.int32)
    assert Ether(sent[0][1])[AggregationHeader].lanes == expected.tolist()


def drops(twin: Twin, reason: str) -> int:
    key = (ExactMatch(REASONS[reason]),)
    return twin.native.direct_counter_read("FabricIngress.drops.drops", key, 0).packets


def with_field(layer: type[Packet], field: str, value: object, to: str | None = None, **options: object) -> Packet:
    frame = packet(ROOT_JOB, options.pop("lanes", [1]), **options)
    frame[layer].setfieldval(field, value)
    if to is not None:
        frame.dst, frame[IP].dst = MAC, to
    return frame


def test_a_member_is_held_to_its_meter_and_others_are_not(twin: Twin) -> None:
    """A burst of two packets, then one in a thousand seconds; without rates again, all pass."""
    epoch, before = next(EPOCHS), drops(twin, "over_rate")
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    size = len(raw(packet(ROOT_JOB, [1])))
    key = (ExactMatch(ROOT_JOB), ExactMatch(1))

    def sent_by(rank: int, slot: int) -> int:
        frame = packet(ROOT_JOB, [1], rank=rank, slot=slot, epoch=epoch)
        twin.process(rank + 1, raw(frame))
        return drops(twin, "over_rate") - before

    for config, dropped in ((MeterConfig(0, 2 * size, 0, 2 * size), [0, 0, 1]), (None, [1, 1, 1])):
        twin.both(lambda switch, c=config: switch.direct_meter_write(f"{AGGREGATION}aggregation_member", key, 0, c))  # type: ignore[misc]
        assert [sent_by(0, slot) for slot in (0, 1, 0)] == dropped
        assert sent_by(1, 0) == dropped[-1]


def spoilt(frame: Packet) -> Packet:
    data = bytearray(raw(frame))
    data[-1] ^= 1
    return Raw(bytes(data))


def behind_a_shim(frame: Packet) -> Packet:
    ethernet = Ether(src=frame.src, dst=frame.dst)
    return ethernet / IntShim() / frame.payload


FORGERIES = {
    "a contribution to the results' queue pair": (1, "bad_header", with_field(BTH, "dqpn", 0xFFFFFF)),
    "a contribution to the group": (
        1, "bad_header", with_field(IP, "dst", str(result_group_address(ROOT_JOB)))
    ),
    "a result to the contributions' queue pair": (
        PARENT_PORT, "bad_header", with_field(BTH, "dqpn", 0xA66000, kind=Kind.RESULT)
    ),
    "a result to another job's group": (
        PARENT_PORT, "bad_header", with_field(IP, "dst", str(result_group_address(INNER_JOB)), kind=Kind.RESULT)
    ),
    "an IP length beyond the packet": (1, "bad_header", with_field(IP, "len", 400)),
    "an IPv6 length beyond the packet": (1, "bad_header", with_field(IPv6, "plen", 400, ip_version=6)),
    "another IP version than the job's": (
        1, "wrong_ip_version", packet(ROOT_JOB, [1], epoch=1, ip_version=6)
    ),
    "an IPv6 result to another job's group": (
        PARENT_PORT,
        "bad_header",
        with_field(IPv6, "dst", str(result_group_address(INNER_JOB, 6)), kind=Kind.RESULT, ip_version=6),
    ),
    "flags that no version has": (1, "bad_header", with_field(AggregationHeader, "flags", 2)),
    "an unknown operation": (1, "bad_header", with_field(AggregationHeader, "operation", 6)),
    "an unknown kind": (1, "bad_header", with_field(AggregationHeader, "kind", 2)),
    "fewer lanes": (1, "bad_header", with_field(AggregationHeader, "lane_count", 63)),
    "lanes that the header denies": (1, "bad_header", with_field(AggregationHeader, "lane_count", 0)),
    "the version before": (1, "bad_header", with_field(AggregationHeader, "version", 1)),
    "an unknown data type": (1, "bad_header", with_field(AggregationHeader, "data_type", 3)),
    "a destination that is no worker's": (
        1, "wrong_destination", packet(ROOT_JOB, [1], epoch=1, destination=WORKER_COUNT)
    ),
    "a header for no worker": (1, "wrong_destination", packet(ROOT_JOB, [], epoch=1, destination=0xFFFE)),
    "a header's result from a child": (
        1, "unexpected_result", packet(ROOT_JOB, [], kind=Kind.RESULT, epoch=1)
    ),
    "a header's result that nobody waits for": (
        PARENT_PORT, "unexpected_result", packet(INNER_JOB, [], kind=Kind.RESULT, epoch=1)
    ),
    "a header to the parent": (1, "not_forwarded", with_field(IP, "dst", PARENT[4], lanes=())),
    "lanes that are missing": (1, "bad_header", with_field(AggregationHeader, "lane_count", 64, lanes=())),
    "a header with an IP length beyond it": (1, "bad_header", with_field(IP, "len", 328, lanes=())),
    "a header with a wrong iCRC": (1, "bad_icrc", spoilt(packet(ROOT_JOB, [], epoch=1))),
    "a result from a child": (1, "unexpected_result", packet(ROOT_JOB, [1], kind=Kind.RESULT, epoch=1)),
    "a result that nobody waits for": (
        PARENT_PORT, "unexpected_result", packet(ROOT_JOB, [1], kind=Kind.RESULT, epoch=1)
    ),
    "a contribution from the parent": (
        PARENT_PORT, "unexpected_result", packet(ROOT_JOB, [1], epoch=1, hop_limit=SWITCH_HOP_LIMIT)
    ),
    "a routed contribution as if from a leaf": (1, "from_afar", packet(SPINE_JOB, [1], epoch=1, hop_limit=254)),
    "a routed IPv6 contribution": (
        1, "from_afar", packet(SPINE_JOB, [1], epoch=1, ip_version=6, hop_limit=254)
    ),
    "a routed result": (
        PARENT_PORT, "from_afar", packet(INNER_JOB, [1], kind=Kind.RESULT, epoch=1, hop_limit=254)
    ),
    "a contribution to the parent": (1, "not_forwarded", with_field(IP, "dst", PARENT[4])),
    "an IPv6 contribution to the parent": (
        1, "not_forwarded", with_field(IPv6, "dst", PARENT[6], ip_version=6)
    ),
    "a contribution to a host": (1, "not_forwarded", with_field(IP, "dst", WORKER[4])),
    "a result to a host": (
        1, "not_forwarded", with_field(BTH, "dqpn", 0xFFFFFF, to=WORKER[4], kind=Kind.RESULT)
    ),
    "a contribution to the parent, from the parent": (
        PARENT_PORT, "not_forwarded", with_field(IP, "dst", PARENT[4])
    ),
    "a contribution to the parent, behind an INT shim": (
        1, "not_forwarded", behind_a_shim(with_field(IP, "dst", PARENT[4]))
    ),
    "a slot beyond the registers": (1, "slot_out_of_range", packet(OUTLYING_JOB, [1], slot=1, epoch=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_counted_by_reason_and_answered_to_nobody(twin: Twin, name: str) -> None:
    port, reason, frame = FORGERIES[name]
    for job in (ROOT_JOB, INNER_JOB, SPINE_JOB):
        twin.both(lambda switch, job=job: set_job(switch, job, 1))
    before = drops(twin, reason)
    assert twin.process(port, raw(frame)) == []
    assert drops(twin, reason) == before + 1


def test_repeated_results_are_distinguished_from_unexpected_ones(twin: Twin) -> None:
    """What a parent answers to a contribution sent again ends here, and is no loss."""
    twin.both(lambda switch: set_job(switch, INNER_JOB, 1))
    for turn in (1, 3):  # both use the same version of the slot
        for rank in range(CHILDREN):
            frame = packet(INNER_JOB, [1], rank=rank, round_number=turn, epoch=1)
            twin.process(rank + 1, raw(frame))
        result = packet(INNER_JOB, [CHILDREN], kind=Kind.RESULT, round_number=turn, epoch=1)
        assert len(twin.process(PARENT_PORT, raw(result))) == CHILDREN

    def counted(**options: object) -> list[int]:
        reasons = ("duplicate", "old_round", "unexpected_result")
        before = [drops(twin, reason) for reason in reasons]
        frame = packet(INNER_JOB, [CHILDREN], kind=Kind.RESULT, epoch=1, **options)
        assert twin.process(PARENT_PORT, raw(frame)) == []
        return [drops(twin, reason) - count for reason, count in zip(reasons, before, strict=True)]

    assert counted(round_number=3) == [1, 0, 0]
    assert counted(round_number=1) == [0, 1, 0]
    assert counted(round_number=5) == [0, 0, 1]
    assert counted(round_number=3, operation=Operation.MAX) == [0, 0, 1]


def test_what_is_ordinary_roce_is_forwarded_as_ever(twin: Twin) -> None:
    """Another length, queue pair or opcode makes no aggregation packet; a switch beyond would not take it, either."""
    route = ActionCall("FabricIngress.forwarding.set_next_hop", (PARENT_PORT, number(MAC), number(PARENT_MAC)))
    entry = TableEntry((LpmMatch(int(ip_address(PARENT[4])), 32),), route)
    twin.both(lambda switch: switch.table_insert("FabricIngress.forwarding.ipv4_lpm", entry))
    for layer, field, value in ((BTH, "opcode", 0x65), (BTH, "dqpn", 0xA66001), (UDP, "len", 303)):
        frame = with_field(IP, "dst", PARENT[4])
        frame[layer].setfieldval(field, value)
        assert [port for port, _ in twin.process(1, raw(frame))] == [PARENT_PORT]


def test_switches_contributions_come_with_the_hop_limit_of_neighbours(twin: Twin) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, SPINE_JOB, epoch))
    frames = [packet(SPINE_JOB, [1], rank=rank, epoch=epoch, hop_limit=SWITCH_HOP_LIMIT) for rank in range(CHILDREN)]
    sent = [twin.process(rank + 1, raw(frame)) for rank, frame in enumerate(frames)]
    assert [len(each) for each in sent] == [0, 0, CHILDREN]


def test_the_last_slot_of_the_registers_is_in_range(twin: Twin) -> None:
    frames = [packet(OUTLYING_JOB, [1], rank=rank, epoch=1) for rank in range(CHILDREN)]
    sent = [twin.process(rank + 1, raw(frame)) for rank, frame in enumerate(frames)]
    assert [len(each) for each in sent] == [0, 0, CHILDREN]
    assert Ether(sent[-1][0][1])[AggregationHeader].lanes[0] == CHILDREN


def test_a_contribution_with_another_operation_is_counted_and_the_sum_goes_on(twin: Twin) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    before = drops(twin, "wrong_operation")
    assert twin.process(1, raw(packet(ROOT_JOB, [1], rank=0, epoch=epoch))) == []
    assert twin.process(2, raw(packet(ROOT_JOB, [9], rank=1, epoch=epoch, operation=Operation.MAX))) == []
    assert twin.process(2, raw(packet(ROOT_JOB, [2], rank=1, epoch=epoch))) == []
    sent = twin.process(3, raw(packet(ROOT_JOB, [3], rank=2, epoch=epoch)))
    assert [Ether(data)[AggregationHeader].lanes[0] for _, data in sent] == [6] * CHILDREN
    assert drops(twin, "wrong_operation") == before + 1


def test_a_member_cannot_send_the_result_elsewhere_than_the_others(twin: Twin) -> None:
    """Nor have it by forging: the first to come says where it goes, for good or for its own job's harm."""
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    before = drops(twin, "wrong_destination")
    options = {"epoch": epoch, "destination": 3}
    assert twin.process(1, raw(packet(ROOT_JOB, [1], rank=0, **options))) == []
    assert twin.process(2, raw(packet(ROOT_JOB, [2], rank=1, **(options | {"destination": 5})))) == []
    assert twin.process(2, raw(packet(ROOT_JOB, [2], rank=1, **options))) == []
    sent = twin.process(3, raw(packet(ROOT_JOB, [3], rank=2, **options)))
    assert [Ether(data)[AggregationHeader].lanes[:1] for _, data in sent] == [[], [6], []]
    assert drops(twin, "wrong_destination") == before + 1
    # Who asks again gets no more than before.
    for port, lanes in ((1, []), (2, [6]), (3, [])):
        [(to, data)] = twin.process(port, raw(packet(ROOT_JOB, [9], rank=port - 1, **options)))
        assert (to, Ether(data)[AggregationHeader].lanes[:1]) == (port, lanes)


def test_lanes_that_nobody_asked_for_go_no_further_than_the_job(twin: Twin) -> None:
    """A barrier's members send headers; lanes of one that forges are its own job's result, and nothing else."""
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    for rank, lanes in enumerate(([], [7], [])):
        sent = twin.process(rank + 1, raw(packet(ROOT_JOB, lanes, rank=rank, epoch=epoch)))
    assert [port for port, _ in sent] == [1, 2, 3]
    assert [Ether(data)[AggregationHeader].lanes[:1] for _, data in sent] == [[7]] * 3


@pytest.mark.parametrize("ip_version", [4, 6])
def test_what_a_contributor_wrote_into_the_udp_checksum_does_not_spoil_the_result(
    twin: Twin, ip_version: IpVersion
) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch, ip_version=ip_version))
    for rank in range(CHILDREN):
        frame = packet(ROOT_JOB, [1], rank=rank, epoch=epoch, ip_version=ip_version)
        frame[UDP].chksum = 0x1234
        sent = twin.process(rank + 1, raw(frame))
    assert {Ether(data)[UDP].chksum for _, data in sent} == {0}


def test_a_contribution_for_another_mac_is_not_taken(twin: Twin) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_job(switch, ROOT_JOB, epoch))
    for rank in range(CHILDREN):
        frame = packet(ROOT_JOB, [1], rank=rank, epoch=epoch)
        frame.dst = PARENT_MAC
        assert twin.process(rank + 1, raw(frame)) == []
    bitmaps = twin.native.register_read_all(f"{AGGREGATION}slot_bitmap")
    tags = twin.native.register_read_all(f"{AGGREGATION}slot_tag")
    assert not [index for index, tag in enumerate(tags) if tag >> 32 == epoch and bitmaps[index]]
