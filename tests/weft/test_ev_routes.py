"""Routing by entropy values: hosts name the path of each packet of MRC, switches hold tables that never change."""

from __future__ import annotations

from collections import Counter
from typing import Any

import finsy
import numpy as np
import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

from weft import Fabric, topologies
from weft.clocks.virtual.lab import VirtualLab
from weft.controller.elements import switch_element
from weft.controller.fabric_switches import FabricSwitches
from weft.controller.failures import Failures
from weft.controller.features import Settings
from weft.controller.plan import FabricState, Planner
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.ev_paths import EvPaths
from weft.controller.routing.srv6 import USID_BITS, address_of, usids
from weft.errors import WeftError
from weft.run.collectives import CollectiveRequest
from weft.run.spec import run_spec
from weft.scenario import RoutingSection, TransportSection, parse_scenario
from weft.topologies import FabricSpec, TopologyError

US = 10**6
LEAF_SPINE = topologies.leaf_spine(
    planes=1, leaves=2, spines=4, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
)
FAT_TREE = topologies.fat_tree(pods=2, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1)
KINDS = ["srv6", "structured_ev"]


def made(topology: FabricSpec, kind: str, **options: Any) -> Fabric:
    chosen = {
        "ip_version": 6,
        "int_telemetry": False,
        "transport": TransportSection(protocol="mrc"),
        "routing": RoutingSection(kind=kind),
    }
    return Fabric(topology, clock="virtual", **(chosen | options))


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


def inputs(ranks: int, words: int = 60_000) -> list[Any]:
    return [np.random.default_rng(rank).integers(-99, 99, words, np.int32) for rank in range(ranks)]


def uplink_bytes(fabric: Fabric, leaf: str) -> list[int]:
    ports = fabric.lab.switch_stats()["switches"][leaf]["ports"]
    numbers = [port.number for port in fabric.lab.fabric.switch(leaf).fabric_ports]
    return [ports[str(number)]["transmit"]["transmitted"]["bytes"] for number in numbers]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", [LEAF_SPINE, FAT_TREE], ids=["leaf_spine", "fat_tree"])
def test_an_all_reduce_over_named_paths_is_right(topology: FabricSpec, kind: str) -> None:
    with made(topology, kind) as fabric:
        given = inputs(len(topology.hosts))
        run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
        found = totals(fabric)
    assert run.result.ok
    assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
    assert found["retransmitted_packets"] == found["timeouts"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_named_paths_share_the_load_evenly(kind: str) -> None:
    with made(LEAF_SPINE, kind) as fabric:
        fabric.permutation(2_000_000)  # SACKs of one round trip take one path
        loads = uplink_bytes(fabric, "p0l0")
    assert max(loads) < 1.2 * min(loads)


def frame_of(fabric: FabricSpec, source: str, destination: str, route: tuple[int, str], nic: int = 0) -> bytes:
    """Return a frame with an EV, from a host's NIC to another's of the same number."""
    first, last = fabric.host(source).nic(nic), fabric.host(destination).nic(nic)
    value, outer = route
    addresses = {"src": str(first.ipv6.ip), "dst": str(last.ipv6.ip)}
    packet = IPv6(**addresses) / UDP(sport=value >> 16, dport=4791) / Raw(bytes(40))
    if outer:
        packet = IPv6(src=addresses["src"], dst=outer, nh=41) / packet
    return raw(Ether(src=first.mac, dst=first.gateway_mac) / packet)


def way_of(lab: VirtualLab, source: str, frame: bytes, nic: int = 0) -> tuple[tuple[str, ...], bytes]:
    """Return the nodes that a frame passes, as the switches' program decides, and the frame that arrives."""
    leaves_by = lab.fabric.host(source).nic(nic)
    nodes, at, port = [source], leaves_by.switch, leaves_by.switch_port
    for _ in range(8):
        nodes.append(at)
        native = lab.switches.switches[lab.fabric.switch(at).device_id].switch.native
        (((out, frame),),) = native.would_send([(port, frame)])
        peer = lab.fabric.switch(at).port(out).peer
        if lab.fabric.switch(at).port(out).peer_is_host:
            return (*nodes, peer.node), frame
        at, port = peer.node, peer.port
    raise AssertionError(f"a loop: {nodes}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", [LEAF_SPINE, FAT_TREE], ids=["leaf_spine", "fat_tree"])
def test_each_ev_takes_exactly_its_path(topology: FabricSpec, kind: str) -> None:
    with made(topology, kind) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        assert lab.ev_paths is not None
        source, *others = [host.name for host in topology.hosts]
        for destination in others:
            paths = lab.ev_paths.paths(source, destination, 0)
            routes = lab.ev_paths.routes(source, destination, 0)
            assert len({value for value, _ in routes}) == len(paths)
            for path, route in zip(paths, routes, strict=True):
                nodes, arrived = way_of(lab, source, frame_of(topology, source, destination, route))
                assert nodes == path.nodes
                assert Ether(arrived)[IPv6].dst == str(topology.host(destination).nic(0).ipv6.ip)
                assert Ether(arrived)[IPv6].nh == 17


@pytest.mark.parametrize("kind", KINDS)
def test_two_dead_spines_change_no_table(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The all-reduce goes on without a timeout, and is right."""
    written: Counter[str] = Counter()
    apply = FabricSwitches.apply

    async def counted(self: FabricSwitches, name: str, plan: Any) -> int:
        count = await apply(self, name, plan)
        written[name] += count
        return count

    monkeypatch.setattr(FabricSwitches, "apply", counted)
    with made(LEAF_SPINE, kind) as fabric:
        assert sum(written.values()) > 0
        written.clear()
        for spine, at in (("p0s0", 20 * US), ("p0s2", 40 * US)):
            for leaf in ("p0l0", "p0l1"):
                fabric.schedule_link(leaf, spine, "down", at)
        given = inputs(4, words=1_000_000)
        run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
        found = totals(fabric)
    assert run.result.ok
    assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
    assert sum(written.values()) == 0
    assert found["timeouts"] == 0
    assert found["evs_to_assumed_bad"] > 0
    assert found["retransmitted_packets"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_switch_has_an_ecmp_group(kind: str) -> None:
    planner = Planner(LEAF_SPINE)
    settings = Settings(routing=kind)
    before = planner.plan(settings, FabricState())
    assert all(isinstance(entity, finsy.P4TableEntry) for plan in before.values() for entity in plan)
    dead = next(link for link in LEAF_SPINE.links_between_switches)
    after = planner.plan(settings, FabricState(Failures().with_link(dead)))
    assert all(after[name].is_same_as(plan) for name, plan in before.items())


def test_an_address_lists_the_switches_and_the_port() -> None:
    paths = EvPaths(FAT_TREE, ROUTING_KINDS["srv6"].ev_routes).paths("h0", "h3", 0)
    listed = usids(FAT_TREE, paths[0])
    assert len(listed) == 6
    text = address_of(listed).exploded.replace(":", "")
    assert text[:8] == "fcbbbb00"
    assert [int(text[place : place + USID_BITS // 4], 16) for place in range(8, 32, 4)] == listed


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_pair_has_one_ev_for_each_path(kind: str) -> None:
    with made(LEAF_SPINE, kind, transport=TransportSection(protocol="mrc", ev_count=3, ev_backups=1)) as fabric:
        fabric.permutation(100_000)
        assert fabric.permutation(100_000).retransmissions == 0
        spines = uplink_bytes(fabric, "p0l0")
    # Each queue pair takes three of the four paths and keeps the fourth.
    assert all(spines)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"transport": {}}, "packets of transport.protocol: rc do not have"),
        ({"clock": "real"}, "hosts of the real clock know no paths"),
        ({"ip_version": 4}, "puts IPv6 packets into IPv6 packets"),
        ({"routing": {"kind": "srv6", "load_balancing": "random"}}, "do not choose, so random has no meaning"),
        ({"trimming": {"classes": [3], "size": "128B"}}, "128 B cut into the headers"),
        ({"fabric": {"kind": "torus", "shape": [9, 3]}}, "a path goes over 6 switches"),
        ({"fabric": {"kind": "torus", "shape": [2, 2]}, "routing": {"kind": "structured_ev"}}, "has no tiers"),
    ],
)
def test_what_does_not_go_with_named_paths_is_refused(tree: dict[str, Any], words: str) -> None:
    common = {
        "clock": "virtual",
        "int": False,
        "ip_version": 6,
        "routing": {"kind": "srv6"},
        "transport": {"protocol": "mrc"},
        "traffic": [{"permutation": "64KiB"}],
    }
    with pytest.raises(WeftError, match=words):
        run_spec(parse_scenario(common | tree, "s.yaml"))


@pytest.mark.parametrize("kind", KINDS)
def test_hosts_leave_what_an_operator_drains(kind: str) -> None:
    """By denial of EVs, with connections and flows alike: nothing is lost, no table changes, and all come back."""
    spine = switch_element(LEAF_SPINE, "p0s0")
    with made(LEAF_SPINE, kind, transport=TransportSection(protocol="mrc", connections="kept")) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        request = CollectiveRequest("allreduce", inputs(4), "ring")
        fabric.run(request)
        drained = lab.controller.call(lab.operations.drain(spine))
        assert drained.is_quiet
        before = uplink_bytes(fabric, "p0l0")
        fabric.run(request)
        result = fabric.permutation(200_000)
        used = [now > then for now, then in zip(uplink_bytes(fabric, "p0l0"), before, strict=True)]
        assert used == [False, True, True, True]
        assert result.retransmissions == totals(fabric)["retransmitted_packets"] == 0
        evs = fabric.evs("h0")
        assert {each["state"] for each in evs if "p0s0" in each["nodes"]} == {"denied"}
        assert {each["state"] for each in evs if "p0s0" not in each["nodes"]} == {"good"}
        lab.controller.call(lab.operations.restore(spine))
        fabric.run(request)
        assert all(now > then for now, then in zip(uplink_bytes(fabric, "p0l0"), before, strict=True))
        assert all(each["state"] != "denied" for each in fabric.evs("h0"))


def test_a_queue_pair_keeps_its_last_paths() -> None:
    with made(LEAF_SPINE, "srv6", transport=TransportSection(protocol="mrc", ev_count=1, ev_backups=0)) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        for spine in ("p0s0", "p0s1", "p0s2"):
            lab.controller.call(lab.operations.cordon(switch_element(LEAF_SPINE, spine)))
        assert fabric.permutation(200_000).retransmissions == 0
        assert fabric.run(CollectiveRequest("allreduce", inputs(4), "ring")).result.ok


def test_more_paths_than_evs_can_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.controller.routing.ev_paths.MOST_PATHS", 3)
    with pytest.raises(TopologyError, match="more than 3 paths lead from h0 to h2"):
        EvPaths(LEAF_SPINE, ROUTING_KINDS["srv6"].ev_routes).routes("h0", "h2", 0)
