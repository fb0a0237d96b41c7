"""EVs that name paths over several planes: one queue pair of MRC, each of its EVs a path of one plane."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tests.weft.test_ev_routes import KINDS, US, frame_of, inputs, made, totals, way_of
from weft import Fabric, topologies
from weft.clocks.virtual.lab import VirtualLab
from weft.controller.elements import Element, plane_element, switch_element
from weft.run.collectives import CollectiveRequest
from weft.scenario import TransportSection
from weft.topologies import FabricSpec

TWO_TIERS = topologies.leaf_spine(
    planes=2, leaves=2, spines=4, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
)
THREE_TIERS = topologies.fat_tree(
    planes=2, pods=2, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1
)
TOPOLOGIES = pytest.mark.parametrize("topology", [TWO_TIERS, THREE_TIERS], ids=["two_tiers", "three_tiers"])
KIND = pytest.mark.parametrize("kind", KINDS)
KEPT = TransportSection(protocol="mrc", connections="kept")
Hops = Counter[tuple[str, str]]


_MOST_HOPS = 4
"""Between the switches of a path over three tiers."""


def all_reduce(fabric: Fabric, words: int = 60_000) -> None:
    given = inputs(len(fabric.topology.hosts), words)
    run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
    assert run.result.ok
    assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)


def seen(fabric: Fabric) -> Hops:
    """Return how many packets switches have sent to each other."""
    stats = fabric.lab.switch_stats()["switches"]
    found: Hops = Counter()
    for switch in fabric.topology.switches:
        ports = stats[switch.name]["ports"]
        for port in switch.fabric_ports:
            found[switch.name, port.peer.node] = ports[str(port.number)]["transmit"]["transmitted"]["packets"]
    return found


def named(fabric: Fabric) -> Hops:
    """Return how many should have gone from switch to switch, by the paths and turns of all EVs."""
    found: Hops = Counter()
    for host in fabric.topology.hosts:
        for each in fabric.evs(host.name):
            switches = each["nodes"][1:-1]
            for hop in pairwise(switches):
                found[hop] += each["turns"]
    return found


def plane_of(name: str) -> int:
    return int(name[1])


def top_of_plane_1(topology: FabricSpec) -> str:
    """Return a switch of the highest tier: a spine, or a core."""
    return topology.switches_of_plane(1)[-1].name


@KIND
@TOPOLOGIES
def test_packets_are_seen_on_the_paths_that_evs_name(topology: FabricSpec, kind: str) -> None:
    """Each hop between switches has as many packets as the EVs over it have had turns, and maybe EV probes."""
    with made(topology, kind, transport=KEPT) as fabric:
        all_reduce(fabric)
        more, probes = seen(fabric) - named(fabric), totals(fabric)["ev_probes_sent"]
        assert not named(fabric) - seen(fabric)
        assert more.total() <= _MOST_HOPS * 2 * probes
        assert probes < 10
        by_plane = Counter[int]()
        for (source, _), packets in seen(fabric).items():
            by_plane[plane_of(source)] += packets
        assert totals(fabric)["retransmitted_packets"] == 0
    assert set(by_plane) == {0, 1}
    assert min(by_plane.values()) > 0.9 * max(by_plane.values())


@KIND
@TOPOLOGIES
def test_the_program_takes_each_ev_of_each_plane_along_its_path(topology: FabricSpec, kind: str) -> None:
    with made(topology, kind) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        assert lab.ev_paths is not None
        source, *others = [host.name for host in topology.hosts]
        for destination in others:
            values = set()
            for nic in range(2):
                paths = lab.ev_paths.paths(source, destination, nic)
                routes = lab.ev_paths.routes(source, destination, nic)
                assert {each.plane for each in paths} == {nic}
                values |= {value for value, _ in routes}
                for path, route in zip(paths, routes, strict=True):
                    frame = frame_of(topology, source, destination, route, nic)
                    nodes, _ = way_of(lab, source, frame, nic)
                    assert nodes == path.nodes
            # One queue pair has the EVs of both planes.
            assert len(values) == 2 * len(paths)


@KIND
@TOPOLOGIES
def test_a_dead_switch_of_one_plane_is_left_and_the_other_plane_does_not_notice(
    topology: FabricSpec, kind: str
) -> None:
    dead = top_of_plane_1(topology)
    with made(topology, kind, transport=KEPT) as fabric:
        for port in topology.switch(dead).fabric_ports:
            fabric.schedule_link(port.peer.node, dead, "down", 20 * US)
        all_reduce(fabric, words=400_000)
        found = totals(fabric)
        states = {host.name: fabric.evs(host.name) for host in topology.hosts}
    assert found["timeouts"] == 0
    assert found["retransmitted_packets"] > 0
    evs = [each for of_host in states.values() for each in of_host]
    over_dead = {each["state"] for each in evs if dead in each["nodes"]}
    assert "assumed_bad" in over_dead
    assert over_dead <= {"assumed_bad", "good"}  # good: of a queue pair that had sent nothing over it since
    assert {each["state"] for each in evs if plane_of(each["nodes"][1]) == 0} <= {"good", "skip"}


def used_since(fabric: Fabric, before: Hops) -> set[str]:
    """Return the switches that have sent or been sent a packet since."""
    return {name for hop, packets in seen(fabric).items() if packets > before[hop] for name in hop}


@pytest.mark.parametrize("element", ["switch", "plane"])
@KIND
@TOPOLOGIES
def test_hosts_leave_what_is_drained_in_one_plane(topology: FabricSpec, kind: str, element: str) -> None:
    """With connections and flows alike; nothing is lost, and all comes back."""
    spine = top_of_plane_1(topology)
    drained: Element = switch_element(topology, spine) if element == "switch" else plane_element(topology, 1)
    left = {spine} if element == "switch" else {each.name for each in topology.switches_of_plane(1)}
    with made(topology, kind, transport=KEPT) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        all_reduce(fabric)
        all_switches = used_since(fabric, Counter())
        assert lab.controller.call(lab.operations.drain(drained)).is_quiet
        before = seen(fabric)
        all_reduce(fabric)
        fabric.permutation(200_000)
        assert used_since(fabric, before) == all_switches - left
        if element == "switch":
            for host in topology.hosts:
                assert all((each["state"] == "denied") == (spine in each["nodes"]) for each in fabric.evs(host.name))
        assert totals(fabric)["retransmitted_packets"] == totals(fabric)["timeouts"] == 0
        lab.controller.call(lab.operations.restore(drained))
        before = seen(fabric)
        all_reduce(fabric)
        assert used_since(fabric, before) == all_switches
        assert all(each["state"] != "denied" for host in topology.hosts for each in fabric.evs(host.name))
