"""fabric.p4 on oracle switches, programmed by the controller over gRPC; frames are followed from host to host."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from emulated_fabric import Delivery, EmulatedFabric, emulated
from finsy.p4entity import encode_entities
from p4c import P4c
from p4info_fixture import fabric_p4info
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from weft.compiler.cli import compile_command
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.features import Settings
from weft.controller.features.acl import AclRule
from weft.controller.features.ecn import EcnProfile
from weft.controller.features.identity import switch_id
from weft.controller.grpc_targets import embedded_targets
from weft.controller.memberships import JobMembership
from weft.controller.pipeline import Pipeline
from weft.controller.plan import FabricState, desired_entities
from weft.controller.reconcile import entity_set
from weft.switch.oracle import Timing
from weft.topologies import leaf_spine
from weft.topologies.addressing import IpVersion
from weft.traffic.aggregation_format import Kind, Operation
from weft.traffic.layers import AggregationHeader, IntShim, aggregation_frame, icrc_is_valid, rdma_write_frame

FABRIC = leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
P4_SOURCE = Path(__file__).parents[2] / "p4" / "fabric.p4"


@pytest.fixture(scope="module", params=["weft", pytest.param("p4c", marks=pytest.mark.reference)])
def pipeline(request: pytest.FixtureRequest, p4c: P4c, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return fabric.p4 as Weft's compiler makes it, and as p4c does."""
    if request.param == "p4c":
        theirs = p4c.compiled(P4_SOURCE)
        return Pipeline.load(theirs.p4info, theirs.json)
    folder = tmp_path_factory.mktemp("compiled")
    json_path, p4info_path = folder / "fabric.json", folder / "fabric.txtpb"
    arguments = [str(P4_SOURCE), "-o", str(json_path), "--p4info", str(p4info_path)]
    result = CliRunner().invoke(compile_command, arguments)
    assert result.exit_code == 0, result.output
    return Pipeline.load(p4info_path, json_path)


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    with emulated(FABRIC) as running:
        yield running


@pytest.fixture
def control(fabric: EmulatedFabric, pipeline: Pipeline) -> Iterator[BlockingFabricController]:
    fabric.cut.clear()
    fabric.timing = Timing()
    with BlockingFabricController(
        FabricController(FABRIC, pipeline, embedded_targets(FABRIC, fabric.address))
    ) as running:
        yield running


def from_host(host: str, plane: int, *, to_mac: str | None = None) -> Ether:
    nic = FABRIC.host(host).nic(plane)
    return Ether(src=nic.mac, dst=to_mac or nic.gateway_mac)


def udp(source: str, destination: str, plane: int, *, version: int = 4, source_port: int = 1000) -> bytes:
    a, b = FABRIC.host(source).nic(plane), FABRIC.host(destination).nic(plane)
    ip = IP(src=str(a.ipv4.ip), dst=str(b.ipv4.ip)) if version == 4 else IPv6(src=str(a.ipv6.ip), dst=str(b.ipv6.ip))
    return bytes(from_host(source, plane) / ip / UDP(sport=source_port, dport=9) / Raw(b"payload"))


def only(deliveries: list[Delivery]) -> Packet:
    assert len(deliveries) == 1, deliveries
    return Ether(deliveries[0].frame)


def test_the_hand_made_p4info_is_the_compiler_s(pipeline: Pipeline) -> None:
    """What the pure tests encode, encodes alike by names: same fields, widths and parameters."""
    compiled, by_hand = pipeline.schema(), Pipeline(fabric_p4info()).schema()
    for table in by_hand.tables:
        real = compiled.tables[table.alias]
        assert [(f.alias, f.bitwidth, f.match_type) for f in table.match_fields] == [
            (f.alias, f.bitwidth, f.match_type) for f in real.match_fields
        ], table.alias
        for action in table.actions:
            shown = [(p.name, p.bitwidth) for p in action.params]
            assert shown == [(p.name, p.bitwidth) for p in real.actions[action.name].params], action.name
    assert pipeline.slot_capacity() == 4096


def test_the_whole_plan_encodes_with_the_compiler_s_p4info(pipeline: Pipeline) -> None:
    for entities in desired_entities(FABRIC, Settings(), FabricState()).values():
        assert len(entity_set(encode_entities(entities, pipeline.schema()))) == len(entities)


@pytest.mark.parametrize("version", [4, 6])
def test_every_host_reaches_every_host(fabric: EmulatedFabric, control: BlockingFabricController, version: int) -> None:
    for plane in range(FABRIC.planes):
        for source in FABRIC.hosts:
            for destination in FABRIC.hosts:
                if source is destination:
                    continue
                frame = udp(source.name, destination.name, plane, version=version)
                (delivery,) = fabric.send(source.name, plane, frame)
                assert (delivery.host, delivery.plane) == (destination.name, plane)
                packet = Ether(delivery.frame)
                nic = destination.nic(plane)
                assert (packet.dst, packet.src) == (nic.mac, nic.gateway_mac)
                hops = 1 if nic.switch == source.nic(plane).switch else 3
                assert (packet[IP].ttl if version == 4 else packet[IPv6].hlim) == 64 - hops
                assert packet[Raw].load == b"payload"


def test_flows_spread_over_the_spines_and_stay_on_one(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    for port in range(1000, 1064):
        for _ in range(2):
            only(fabric.send("h0", 0, udp("h0", "h3", 0, source_port=port)))
    counters = control.read_counters()
    sent = [counters["p0l0"].ports[port].sent.packets for port in (3, 4)]
    assert sum(sent) == 128
    assert all(each % 2 == 0 and each >= 32 for each in sent)


def test_a_failed_link_is_routed_around(fabric: EmulatedFabric, control: BlockingFabricController) -> None:
    fabric.cut.add(frozenset(("p0l1", "p0s0")))
    flows = [udp("h0", "h3", 0, source_port=port) for port in range(1000, 1032)]
    assert sum(len(fabric.send("h0", 0, flow)) for flow in flows) < 32
    control.link_down(FABRIC.link_between("p0l1", "p0s0"))
    assert sum(len(fabric.send("h0", 0, flow)) for flow in flows) == 32
    back = [udp("h3", "h0", 0, source_port=port) for port in range(1000, 1032)]
    assert sum(len(fabric.send("h3", 0, flow)) for flow in back) == 32
    control.link_up(FABRIC.link_between("p0l1", "p0s0"))


def test_arp_and_neighbour_discovery_are_answered_by_the_leaf(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    nic, other = FABRIC.host("h0").nic(0), FABRIC.host("h1").nic(0)
    for asked in (nic.gateway_ipv4, other.ipv4.ip):
        request = from_host("h0", 0, to_mac="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=nic.mac, psrc=str(nic.ipv4.ip), pdst=str(asked)
        )
        reply = only(fabric.send("h0", 0, bytes(request)))
        assert (reply[ARP].op, reply[ARP].psrc, reply[ARP].hwsrc) == (2, str(asked), nic.gateway_mac)
        assert (reply.dst, reply[ARP].pdst) == (nic.mac, str(nic.ipv4.ip))
    for wanted in (nic.gateway_ipv6, other.ipv6.ip):
        solicitation = (
            from_host("h0", 0, to_mac="33:33:ff:00:00:01")
            / IPv6(src=str(nic.ipv6.ip), dst="ff02::1:ff00:1", hlim=255)
            / ICMPv6ND_NS(tgt=str(wanted))
            / ICMPv6NDOptSrcLLAddr(lladdr=nic.mac)
        )
        advert = only(fabric.send("h0", 0, bytes(solicitation)))
        assert (advert[ICMPv6ND_NA].tgt, advert[ICMPv6ND_NA].S) == (str(wanted), 1)
        assert advert.dst == nic.mac
        computed = Ether(bytes(advert))
        del computed[ICMPv6ND_NA].cksum
        assert Ether(bytes(computed))[ICMPv6ND_NA].cksum == advert[ICMPv6ND_NA].cksum


def test_switches_answer_ping(fabric: EmulatedFabric, control: BlockingFabricController) -> None:
    nic = FABRIC.host("h0").nic(0)
    for address in (FABRIC.switch("p0l0").address, FABRIC.switch("p0s1").address):
        request = from_host("h0", 0) / IP(src=str(nic.ipv4.ip), dst=str(address)) / ICMP(id=7, seq=1) / Raw(b"x" * 16)
        reply = only(fabric.send("h0", 0, bytes(request)))
        assert (reply[IP].src, reply[ICMP].type, reply[ICMP].id) == (str(address), 0, 7)
    ping6 = from_host("h0", 0) / IPv6(src=str(nic.ipv6.ip), dst=str(nic.gateway_ipv6)) / ICMPv6EchoRequest(id=7)
    assert only(fabric.send("h0", 0, bytes(ping6)))[IPv6].src == str(nic.gateway_ipv6)


def write_frame(*, int_telemetry: bool) -> bytes:
    a, b = FABRIC.host("h0").nic(0), FABRIC.host("h3").nic(0)
    return bytes(
        rdma_write_frame(
            source_mac=a.mac,
            destination_mac=a.gateway_mac,
            source_ip=str(a.ipv4.ip),
            destination_ip=str(b.ipv4.ip),
            destination_qp=17,
            psn=1,
            payload=bytes(64),
            int_telemetry=int_telemetry,
        )
    )


def test_int_is_stamped_hop_by_hop(fabric: EmulatedFabric, control: BlockingFabricController) -> None:
    fabric.timing = Timing(egress_timestamp=123_456, dequeue_depth=77)
    packet = only(fabric.send("h0", 0, write_frame(int_telemetry=True)))
    shim = packet[IntShim]
    assert shim.hop_count == 3
    assert [(hop.rate_code, hop.timestamp_ns, hop.queue_cells) for hop in shim.hops[:3]] == [(2, 123_456, 77)] * 3
    spines = {switch_id(FABRIC.switch(name)) for name in ("p0s0", "p0s1")}
    leaves = switch_id(FABRIC.switch("p0l0")) ^ switch_id(FABRIC.switch("p0l1"))
    assert shim.path_id ^ leaves in spines


def test_ecn_marks_above_the_installed_threshold_only(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    control.set_ecn({3: EcnProfile(8_000, 16_000, 1.0)})
    assert codepoints(fabric, [Timing(dequeue_depth=depth) for depth in (100, 201)]) == [2, 3]
    assert sum(each.ecn_marked_packets for each in control.read_counters().values()) == 1


def test_ecn_marks_by_the_depth_a_packet_leaves_or_by_the_one_it_met(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    met, left = Timing(enqueue_depth=500), Timing(dequeue_depth=500)
    control.set_ecn({3: EcnProfile(8_000, 16_000, 1.0)})
    assert codepoints(fabric, [met, left]) == [2, 3]
    control.set_ecn({3: EcnProfile(8_000, 16_000, 1.0)}, "enqueue")
    assert codepoints(fabric, [met, left]) == [3, 2]
    control.set_ecn({3: EcnProfile(8_000, 16_000, 1.0)}, "dequeue")
    assert codepoints(fabric, [met, left]) == [2, 3]


def codepoints(fabric: EmulatedFabric, timings: list[Timing]) -> list[int]:
    """ECN fields with which packets arrive that saw these depths at every switch."""
    found = []
    for timing in timings:
        fabric.timing = timing
        (delivery,) = fabric.send("h0", 0, write_frame(int_telemetry=False))
        found.append(Ether(delivery.frame)[IP].tos & 3)
        assert icrc_is_valid(delivery.frame)
    return found


def contribute(
    membership: JobMembership,
    lanes: list[int],
    *,
    round_number: int = 0,
    slot: int = 3,
    qkey: int | None = None,
    epoch: int | None = None,
    rank: int | None = None,
) -> bytes:
    """A worker's contribution; what is given differs from its membership."""
    nic = FABRIC.host(membership.host).nic(membership.plane)
    return bytes(
        aggregation_frame(
            source_mac=nic.mac,
            destination_mac=membership.aggregation_mac,
            source_ip=str(nic.ipv4.ip if membership.group_address.version == 4 else nic.ipv6.ip),
            destination_ip=str(membership.aggregation_address),
            job_id=membership.job_id,
            qkey=membership.q_key if qkey is None else qkey,
            epoch=membership.epoch if epoch is None else epoch,
            rank=membership.rank if rank is None else rank,
            slot=slot,
            round_number=round_number,
            operation=Operation.SUM,
            lanes=lanes,
        )
    )


def all_reduce(
    fabric: EmulatedFabric, memberships: dict[str, tuple[JobMembership, ...]], plane: int, round_number: int
) -> list[Delivery]:
    delivered = []
    for number, host in enumerate(memberships):
        frame = contribute(memberships[host][plane], [number + 1, -number, 1 << 31 >> 1], round_number=round_number)
        delivered.extend(fabric.send(host, plane, frame))
    return delivered


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("hosts", [["h0", "h1", "h2", "h3"], ["h3", "h0", "h1"], ["h0", "h1"], ["h2"]])
def test_gradients_add_up_and_every_worker_gets_the_same_result(
    fabric: EmulatedFabric, control: BlockingFabricController, hosts: list[str], ip_version: IpVersion
) -> None:
    memberships = control.add_job(300, hosts, slot_count=8, ip_version=ip_version)
    for plane in range(FABRIC.planes):
        for round_number in range(3):
            results = all_reduce(fabric, memberships, plane, round_number)
            assert sorted(each.host for each in results) == sorted(hosts)
            for each in results:
                packet = Ether(each.frame)
                membership = memberships[each.host][plane]
                ip = packet[IP if ip_version == 4 else IPv6]
                assert (ip.dst, packet.dst) == (str(membership.group_address), membership.group_mac)
                assert ip.src == str(membership.aggregation_address)
                header = packet[AggregationHeader]
                assert (header.kind, header.epoch, header.round) == (
                    Kind.RESULT,
                    membership.epoch,
                    round_number,
                )
                count = len(hosts)
                wrapped = struct.unpack("!i", struct.pack("!I", count * (1 << 30) & 0xFFFFFFFF))[0]
                assert header.lanes[:3] == [count * (count + 1) // 2, -count * (count - 1) // 2, wrapped]
                assert icrc_is_valid(each.frame)


def test_forged_contributions_are_counted_and_harm_nobody(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    memberships = control.add_job(1, ["h0", "h1", "h2"], slot_count=8)
    other = control.add_job(2, ["h1", "h3"], slot_count=8)
    genuine = memberships["h0"][0]
    assert fabric.send("h0", 0, contribute(genuine, [5])) == []
    forgeries = {
        "aggregation_wrong_qkey": contribute(genuine, [9], qkey=genuine.q_key ^ 1),
        "aggregation_wrong_epoch": contribute(genuine, [9], epoch=genuine.epoch + 1),
        "aggregation_wrong_rank": contribute(genuine, [9], rank=7),
        "aggregation_slot_out_of_range": contribute(genuine, [9], slot=8),
        "aggregation_foreign_port": contribute(other["h1"][0], [9]),
        "aggregation_duplicate": contribute(genuine, [9]),
        "aggregation_bad_icrc": contribute(genuine, [9])[:-1] + b"\xff",
    }
    for frame in forgeries.values():
        assert fabric.send("h0", 0, frame) == []
    assert fabric.send("h1", 0, contribute(memberships["h1"][0], [10])) == []
    results = fabric.send("h2", 0, contribute(memberships["h2"][0], [6]))
    assert sorted(each.host for each in results) == ["h0", "h1", "h2"]
    assert {Ether(each.frame)[AggregationHeader].lanes[0] for each in results} == {21}
    drops = control.read_counters()["p0l0"].drops
    assert {reason: drops[reason].packets for reason in forgeries} == dict.fromkeys(forgeries, 1)


def test_a_job_goes_on_in_a_new_epoch_after_its_root_is_lost(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    memberships = control.add_job(4, ["h0", "h3"], slot_count=8)
    root = control.jobs[0].trees[0].tree.root.switch
    assert fabric.send("h0", 0, contribute(memberships["h0"][0], [100])) == []
    fabric.cut.add(frozenset(("p0l0", root)))
    repaired = control.link_down(FABRIC.link_between("p0l0", root)).memberships[4]
    results = all_reduce(fabric, repaired, 0, 0)
    assert {Ether(each.frame)[AggregationHeader].lanes[0] for each in results} == {3}
    assert sorted(each.host for each in results) == ["h0", "h3"]
    control.link_up(FABRIC.link_between("p0l0", root))


def test_punted_packets_reach_the_controller_and_packet_outs_the_host(
    fabric: EmulatedFabric, control: BlockingFabricController
) -> None:
    control.set_acl([AclRule(1, "punt", ether_type=0x0800, destination_port=9)])
    frame = udp("h1", "h0", 0)
    assert fabric.send("h1", 0, frame) == []
    packet = next(control.packet_ins())
    assert (packet.switch, packet.ingress_port, packet.payload) == ("p0l0", 2, frame)
    oracle = fabric.switches["p0l0"]
    oracle.outputs.clear()
    control.packet_out("p0l0", 1, frame)
    for _ in range(1000):  # the stream is served by another thread than the counters
        if oracle.outputs:
            break
        control.read_counters()
    assert [(output.port, output.data) for output in oracle.outputs] == [(1, frame)]
    assert control.read_counters()["p0l0"].ports[1].sent.packets == 1


def test_a_controller_that_leaves_makes_room_for_the_next(fabric, pipeline) -> None:
    for _ in range(4):
        with BlockingFabricController(
            FabricController(FABRIC, pipeline, embedded_targets(FABRIC, fabric.address))
        ) as running:
            assert running.read_counters()
