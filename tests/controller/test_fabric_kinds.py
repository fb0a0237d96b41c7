"""The controller and native switches on fabrics of other kinds: three tiers, rails, links of uneven rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from emulated_fabric import EmulatedFabric, emulated
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from weft.compiler.cli import compile_command
from weft.controller.blocking import BlockingFabricController
from weft.controller.entities import exact_arguments
from weft.controller.fabric import FabricController
from weft.controller.features.aggregation import aggregation_entities
from weft.controller.features.ecn import ecn_entities
from weft.controller.features.telemetry_int import int_entities
from weft.controller.grpc_targets import embedded_targets
from weft.controller.jobs import JobTable
from weft.controller.memberships import JobMembership
from weft.controller.pipeline import Pipeline
from weft.controller.target import EMBEDDED
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.addressing import IpVersion
from weft.topologies.int_rates import STANDARD_INT_RATES, rate_code
from weft.traffic.layers import BTH, AggregationHeader, IntShim, aggregation_frame, icrc_is_valid

P4_SOURCE = Path(__file__).parents[2] / "p4" / "fabric.p4"
THREE_TIERS = fat_tree(pods=2, leaves_per_pod=2, spines_per_pod=4, cores_per_spine=4, hosts_per_leaf=1)
FAR_HOST = THREE_TIERS.hosts[-1].name


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("compiled")
    json_path, p4info_path = folder / "fabric.json", folder / "fabric.txtpb"
    arguments = [str(P4_SOURCE), "-o", str(json_path), "--p4info", str(p4info_path)]
    result = CliRunner().invoke(compile_command, arguments)
    assert result.exit_code == 0, result.output
    return Pipeline.load(p4info_path, json_path)


@contextmanager
def running(fabric: FabricSpec, pipeline: Pipeline) -> Iterator[tuple[EmulatedFabric, BlockingFabricController]]:
    with (
        emulated(fabric, native=True) as switches,
        BlockingFabricController(
            FabricController(fabric, pipeline, embedded_targets(fabric, switches.address))
        ) as control,
    ):
        yield switches, control


@pytest.fixture(scope="module")
def three_tiers(pipeline: Pipeline) -> Iterator[tuple[EmulatedFabric, BlockingFabricController]]:
    with running(THREE_TIERS, pipeline) as both:
        yield both


def roce(fabric: FabricSpec, source: str, destination: str, version: IpVersion, entropy: int, plane: int = 0) -> bytes:
    """A RoCEv2 packet with space for INT."""
    a, b = fabric.host(source).nic(plane), fabric.host(destination).nic(plane)
    ip = IP(src=str(a.ipv4.ip), dst=str(b.ipv4.ip)) if version == 4 else IPv6(src=str(a.ipv6.ip), dst=str(b.ipv6.ip))
    transport = UDP(sport=0xC000 | entropy, dport=4791, chksum=0) / BTH(opcode=4) / Raw(bytes(64))
    return bytes(Ether(src=a.mac, dst=a.gateway_mac) / IntShim() / ip / transport)


@pytest.mark.parametrize("version", [4, 6])
def test_every_host_reaches_every_host_over_shortest_paths(
    three_tiers: tuple[EmulatedFabric, BlockingFabricController], version: IpVersion
) -> None:
    switches, _ = three_tiers
    for source in THREE_TIERS.hosts:
        for destination in THREE_TIERS.hosts:
            if source is destination:
                continue
            (delivery,) = switches.send(source.name, 0, roce(THREE_TIERS, source.name, destination.name, version, 1))
            assert delivery.host == destination.name
            same_pod = source.index // 2 == destination.index // 2
            assert len(switches.passed) == (3 if same_pod else 5)
            assert Ether(delivery.frame)[IntShim].hop_count == len(switches.passed)


@pytest.mark.parametrize("version", [4, 6])
def test_two_tiers_of_ecmp_choose_independently(
    three_tiers: tuple[EmulatedFabric, BlockingFabricController], version: IpVersion
) -> None:
    """1,600 flows over 4 spines and 4 cores above each: every path within five standard deviations of its 100."""
    switches, _ = three_tiers
    paths: Counter[tuple[str, str]] = Counter()
    for flow in range(1600):
        assert switches.send("h0", 0, roce(THREE_TIERS, "h0", FAR_HOST, version, flow))
        paths[switches.passed[1], switches.passed[2]] += 1
    assert len(paths) == 16
    deviation = (1600 * (1 / 16) * (15 / 16)) ** 0.5
    assert all(abs(count - 100) < 5 * deviation for count in paths.values()), paths


def contribute(fabric: FabricSpec, membership: JobMembership, lanes: list[int], version: IpVersion) -> bytes:
    nic = fabric.host(membership.host).nic(membership.plane)
    return bytes(
        aggregation_frame(
            source_mac=nic.mac,
            destination_mac=membership.aggregation_mac,
            source_ip=str(nic.ipv4.ip if version == 4 else nic.ipv6.ip),
            destination_ip=str(membership.aggregation_address),
            job_id=membership.job_id,
            qkey=membership.q_key,
            epoch=membership.epoch,
            rank=membership.rank,
            lanes=lanes,
        )
    )


def check_all_reduce(
    fabric: FabricSpec,
    switches: EmulatedFabric,
    memberships: dict[str, tuple[JobMembership, ...]],
    plane: int,
    version: IpVersion,
) -> None:
    results = []
    for number, (_, planes) in enumerate(memberships.items()):
        frame = contribute(fabric, planes[plane], [number + 1, -number], version)
        results += switches.send(planes[plane].host, plane, frame)
    assert sorted(each.host for each in results) == sorted(memberships)
    count = len(memberships)
    for each in results:
        assert icrc_is_valid(each.frame)
        assert Ether(each.frame)[AggregationHeader].lanes[:2] == [
            count * (count + 1) // 2,
            -count * (count - 1) // 2,
        ]


@pytest.mark.parametrize("version", [4, 6])
def test_gradients_add_up_over_three_tiers_and_after_a_core_is_lost(
    three_tiers: tuple[EmulatedFabric, BlockingFabricController], version: IpVersion
) -> None:
    switches, control = three_tiers
    job = 100 + version
    memberships = control.add_job(job, [host.name for host in THREE_TIERS.hosts], 8, ip_version=version)
    tree = next(each for each in control.jobs if each.job_id == job).trees[0].tree
    assert tree.root.switch.startswith("p0c")
    assert len(tree.nodes) == 1 + 2 + 4
    check_all_reduce(THREE_TIERS, switches, memberships, 0, version)
    spine = tree.root.children[0].name
    switches.cut.add(frozenset((spine, tree.root.switch)))
    repaired = control.link_down(THREE_TIERS.link_between(spine, tree.root.switch)).memberships[job]
    check_all_reduce(THREE_TIERS, switches, repaired, 0, version)
    switches.cut.clear()
    control.link_up(THREE_TIERS.link_between(spine, tree.root.switch))
    control.remove_job(job)


def test_a_job_inside_one_pod_stays_below_the_cores() -> None:
    job = JobTable(THREE_TIERS, 64).add(1, ["h0", "h1"], 8)
    assert [node.switch for node in job.trees[0].tree.nodes] == ["p0s0", "p0l0", "p0l1"]
    assert set(aggregation_entities(THREE_TIERS, [job])) == {"p0s0", "p0l0", "p0l1"}


def test_rails_of_one_leaf_each_are_fabrics_of_their_own(pipeline: Pipeline) -> None:
    rails = leaf_spine(planes=4, leaves=1, spines=0, hosts_per_leaf=3)
    with running(rails, pipeline) as (switches, control):
        memberships = control.add_job(1, ["h0", "h1", "h2"], 8)
        for plane in range(4):
            (delivery,) = switches.send("h0", plane, roce(rails, "h0", "h2", 4, 0, plane))
            assert (delivery.host, delivery.plane) == ("h2", plane)
            check_all_reduce(rails, switches, memberships, plane, 4)


def test_every_port_is_set_up_for_its_own_rate() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=2, host_rate_bps=25e9)
    leaf = fabric.switch("p0l0")
    rates = [25, 100, 400, 50]
    ports = tuple(
        replace(port, link=replace(port.link, rate_bps=gbps * 10**9))
        for port, gbps in zip(leaf.ports, rates, strict=True)
    )
    uneven = replace(leaf, ports=ports)
    codes = [exact_arguments(entry.action)["port_rate_code"] for entry in int_entities(uneven, EMBEDDED)]
    assert codes == [rate_code(STANDARD_INT_RATES, gbps * 10**9) for gbps in rates]
    kmins = [exact_arguments(entry.action)["kmin"] for entry in ecn_entities(uneven, EMBEDDED)]
    assert kmins == [1250 * gbps // 25 for gbps in rates]
