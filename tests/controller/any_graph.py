"""Random graphs, with some of their links and switches failed, and what any routes of them must be."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.topologies.test_builder import LINK
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec
from weft.topologies.builder import FabricBuilder
from weft.topologies.distances import distances_from


@st.composite
def connected_fabrics(draw: st.DrawFn, largest: int = 9) -> FabricSpec:
    """A tree of switches and some more links, parallel ones too; some switches have hosts, and all one tier."""
    count = draw(st.integers(2, largest))
    builder = FabricBuilder()
    nodes = [builder.add_switch(0, "node", coordinates=(each,)) for each in range(count)]
    for each in draw(st.sets(st.integers(0, count - 1), min_size=2)):
        builder.add_host([nodes[each]], LINK)
    for each in range(1, count):
        builder.add_link(nodes[each], nodes[draw(st.integers(0, each - 1))], LINK)
    place = st.integers(0, count - 1)
    for a, b in draw(st.lists(st.tuples(place, place).filter(lambda ends: ends[0] != ends[1]), max_size=count)):
        builder.add_link(nodes[a], nodes[b], LINK)
    return builder.build({})


@st.composite
def failures_one_by_one(draw: st.DrawFn, fabric: FabricSpec, most: int = 4) -> list[Failures]:
    """A fabric's failures after each of some events: links and switches going down and up."""
    failures, sequence = NO_FAILURES, []
    switches = [switch.name for switch in fabric.switches]
    for event in draw(st.lists(st.sampled_from([*fabric.links, *switches]), min_size=1, max_size=most)):
        if isinstance(event, str):
            down = event in failures.switches
            failures = failures.without_switch(event) if down else failures.with_switch(event)
        else:
            down = event.ends in failures.links
            failures = failures.without_link(event) if down else failures.with_link(event)
        sequence.append(failures)
    return sequence


def longest_ways(
    fabric: FabricSpec, plane: ShortestPaths, failures: Failures = NO_FAILURES
) -> dict[tuple[str, str], int]:
    """Hops of the longest way between any two switches that have hosts and that live links join.

    Fails where a way ends before its destination, or comes back to where it has been.
    """
    after: dict[str, dict[str, list[str]]] = {switch.name: {} for switch in fabric.switches}
    for switch in fabric.switches:
        for hops, bits in plane.routes[switch.name].towards.items():
            for place, destination in enumerate(fabric.switches):
                if bits >> place & 1:
                    peers = [switch.port(hop.port).peer.node for hop in hops]
                    after[switch.name].setdefault(destination.name, []).extend(peers)
    longest: dict[tuple[str, str], int] = {}

    def follow(at: str, destination: str, been: tuple[str, ...]) -> int:
        if at == destination:
            return 0
        assert at not in been, f"a loop on the way to {destination}: {been}"
        if (at, destination) not in longest:
            peers = after[at].get(destination, [])
            assert peers, f"{at} has no way to {destination}"
            longest[at, destination] = 1 + max(follow(peer, destination, (*been, at)) for peer in peers)
        return longest[at, destination]

    with_hosts = {switch.name for switch in fabric.switches if switch.host_ports}
    for source in with_hosts:
        joined = distances_from(
            source,
            lambda name: (port.peer.node for port in failures.live_ports(fabric.switch(name))),
        )
        for destination in with_hosts & joined.keys() - {source}:
            follow(source, destination, ())
    return longest
