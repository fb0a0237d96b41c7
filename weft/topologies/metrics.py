"""Graph metrics of a fabric: ports, hops, bisection bandwidth, oversubscription, shortest paths."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.topologies.bisection import Network, bisection
from weft.topologies.distances import Rings, shortest_path_counts
from weft.topologies.fabric import FabricSpec, SwitchSpec

MOST_PATH_STEPS: Final = 1_000_000
"""Up to this product of sources and pairs of linked switches, shortest paths are counted from all sources."""


@dataclass(frozen=True)
class Bisection:
    """Bandwidth between two halves of a plane's hosts, as found by `weft.topologies.bisection`.

    Separate networks, such as rails, are halved one by one and their bandwidths added. A network of one switch is
    halved within the switch, which forwards everything that half of its hosts send.

    Attributes:
        bandwidth_bps: from one half to the other, in one direction.
        links: links between switches that cross the cut; 0 within a switch.
        hosts: NICs of the smaller and the larger half.
        of_hosts: `bandwidth_bps` over the total rate of a half's NICs; at least 1 is full bisection bandwidth.
        exact: whether this is the minimum over all halves; otherwise it is an upper bound.
        method: how the halves were found.
        networks: number of separate networks.

    """

    bandwidth_bps: int
    links: int
    hosts: tuple[int, int]
    of_hosts: float
    exact: bool
    method: str
    networks: int = 1


@dataclass(frozen=True)
class Oversubscription:
    """A tier's downlink bandwidth over its uplink bandwidth: smallest and largest ratio of its switches."""

    tier: int
    roles: tuple[str, ...]
    smallest: float
    largest: float


@dataclass(frozen=True)
class PathDiversity:
    """Number of shortest paths between hosts of different switches; each parallel link makes a path.

    Paths were counted from `sources` of the `switches` with hosts; from all of them if `exact`.
    """

    smallest: int
    mean: float
    sources: int
    switches: int
    exact: bool


@dataclass(frozen=True)
class PlaneMetrics:
    """Metrics of one plane, or of several identical planes.

    A pair of hosts is a pair of NICs with the same number at different hosts; only these can reach each other. A hop is
    a link between switches: hosts of one switch are 0 hops apart.

    Attributes:
        planes: numbers of the planes with these metrics.
        nics: NICs in a plane.
        switches: switches in a plane.
        host_cables: cables between hosts and switches.
        switch_cables: cables between switches.
        ports: cabled ports of all switches together.
        ports_per_switch: fewest and most.
        diameter: most hops between two hosts; None if no pair has a path.
        mean_hops: mean over all pairs of hosts that have a path; None if no pair has one.
        pairs_without_path: pairs of hosts that cannot reach each other.
        bisection: None if no network has two hosts.
        oversubscription: for every tier with uplinks; empty without tiers.
        path_diversity: None if no two switches with hosts have a path.

    """

    planes: tuple[int, ...]
    nics: int
    switches: int
    host_cables: int
    switch_cables: int
    ports: int
    ports_per_switch: tuple[int, int]
    diameter: int | None
    mean_hops: float | None
    pairs_without_path: int
    bisection: Bisection | None
    oversubscription: tuple[Oversubscription, ...]
    path_diversity: PathDiversity | None


@dataclass(frozen=True)
class FabricMetrics:
    """Metrics of a whole fabric: totals over all planes, and the metrics of each distinct plane."""

    hosts: int
    switches: int
    cables: int
    planes: tuple[PlaneMetrics, ...]


def fabric_metrics(fabric: FabricSpec) -> FabricMetrics:
    """Return the metrics of a fabric; planes with the same graph are measured once."""
    alike: dict[object, list[int]] = defaultdict(list)
    for plane in range(fabric.planes):
        alike[plane == fabric.storage_plane, _shape(fabric, plane)].append(plane)
    found = tuple(replace(_of_plane(fabric, same[0]), planes=tuple(same)) for same in alike.values())
    return FabricMetrics(len(fabric.hosts), len(fabric.switches), len(fabric.links), found)


def fabric_bisection(fabric: FabricSpec) -> tuple[int, bool]:
    """Return the bisection bandwidth of all planes together in b/s, and whether it is exact.

    A storage network is not one of them.
    """
    alike = Counter(_shape(fabric, plane) for plane in fabric.training_planes)
    first = {_shape(fabric, plane): plane for plane in reversed(fabric.training_planes)}
    found = [(count, _bisection(fabric, first[shape])) for shape, count in alike.items()]
    return (
        sum(count * each.bandwidth_bps for count, each in found if each is not None),
        all(each.exact for _, each in found if each is not None),
    )


def _joined_switches(fabric: FabricSpec, plane: int) -> list[list[SwitchSpec]]:
    """Return the switches of each connected network of a plane; the search starts at switches with hosts."""
    left = {switch.name: switch for switch in fabric.switches_of_plane(plane)}
    networks = []
    while left:
        name, first = next(iter(left.items()))
        reached = {name: first}
        waiting = [first]
        while waiting:
            for port in waiting.pop().fabric_ports:
                peer = port.peer.node
                if peer not in reached:
                    reached[peer] = left[peer]
                    waiting.append(left[peer])
        networks.append([left.pop(each) for each in list(left) if each in reached])
    return networks


class _Pairs:
    """Counts the pairs of hosts between sets of switches."""

    def __init__(self, fabric: FabricSpec, plane: int, numbers: Mapping[str, int]) -> None:
        on: dict[int, Counter[int]] = defaultdict(Counter)
        for host in fabric.hosts:
            for nic in host.nics:
                if nic.plane == plane:
                    on[nic.number][numbers[nic.switch]] += 1
        self._on = list(on.values())
        self._masks = [_masks(each) for each in self._on]
        self.all = sum(each.total() * (each.total() - 1) for each in self._on)

    def from_to(self, source: int, targets: int) -> int:
        """Return the number of ordered pairs from a switch to other switches, given as bits."""
        return sum(
            on[source] * sum(hosts * (mask & targets).bit_count() for hosts, mask in masks.items())
            for on, masks in zip(self._on, self._masks, strict=True)
        )

    def between(self, source: int, target: int) -> int:
        """Return the number of ordered pairs from one switch to another."""
        return sum([on[source] * on[target] for on in self._on])

    def within(self, switch: int) -> int:
        """Return the number of ordered pairs of different hosts on a switch."""
        return sum(on[switch] * (on[switch] - 1) for on in self._on)


def _masks(hosts_on: Mapping[int, int]) -> dict[int, int]:
    """Return switches as bits, by their number of hosts."""
    masks: dict[int, int] = defaultdict(int)
    for switch, hosts in hosts_on.items():
        masks[hosts] |= 1 << switch
    return masks


def _shape(fabric: FabricSpec, plane: int) -> object:
    """Return a key that is equal for planes with the same metrics."""
    first_nic = fabric.first_nics[plane]
    switches = fabric.switches_of_plane(plane)
    numbers = {switch.name: number for number, switch in enumerate(switches)}
    return tuple(
        (
            switch.role,
            switch.tier,
            switch.coordinates,
            switch.group,
            tuple(
                (numbers[port.peer.node], 0, port.link.rate_bps)
                if not port.peer_is_host and not port.is_dark
                else (
                    None if port.is_dark else port.peer.node,
                    port.peer.port - first_nic,
                    port.link.rate_bps,
                )
                for port in switch.ports
            ),
        )
        for switch in switches
    )


def _of_plane(fabric: FabricSpec, plane: int) -> PlaneMetrics:
    switches = fabric.switches_of_plane(plane)
    numbers = {switch.name: number for number, switch in enumerate(switches)}
    pairs = _Pairs(fabric, plane, numbers)
    rings = fabric.distances(plane).rings
    edges = [number for number, switch in enumerate(switches) if switch.host_ports]
    links = _links(switches, numbers)
    nics = sum(len(switch.host_ports) for switch in switches)
    hops = _pairs_by_hops(rings, edges, pairs)
    joined = hops.total()
    ports = [len(switch.ports) for switch in switches]
    return PlaneMetrics(
        planes=(plane,),
        nics=nics,
        switches=len(switches),
        host_cables=nics,
        switch_cables=sum(count for _, count in links.values()),
        ports=sum(ports),
        ports_per_switch=(min(ports), max(ports)),
        diameter=max(hops, default=None),
        mean_hops=sum(each * count for each, count in hops.items()) / joined if joined else None,
        pairs_without_path=(pairs.all - joined) // 2,
        bisection=_bisection(fabric, plane),
        oversubscription=_oversubscription(fabric, switches),
        path_diversity=_path_diversity(links, edges, len(switches), pairs),
    )


_Links = dict[tuple[int, int], tuple[int, int]]
"""Total rate (b/s) and number of the links between two switches; the lower switch number comes first."""


def _links(switches: Sequence[SwitchSpec], numbers: Mapping[str, int]) -> _Links:
    found: _Links = {}
    for number, switch in enumerate(switches):
        for port in switch.fabric_ports:
            peer = numbers[port.peer.node]
            if number < peer:
                rate_bps, count = found.get((number, peer), (0, 0))
                found[number, peer] = (rate_bps + port.link.rate_bps, count + 1)
    return found


def _pairs_by_hops(rings: Rings, edges: Iterable[int], pairs: _Pairs) -> Counter[int]:
    """Return the number of ordered pairs of hosts for each number of hops."""
    found: Counter[int] = Counter()
    for edge in edges:
        found[0] += pairs.within(edge)
        for hops, ring in enumerate(rings[1:], start=1):
            if ring[edge]:
                found[hops] += pairs.from_to(edge, ring[edge])
    return +found


def _bisection(fabric: FabricSpec, plane: int) -> Bisection | None:
    networks = [_network_bisection(switches) for switches in _joined_switches(fabric, plane)]
    found = [each for each in networks if each is not None]
    if not found:
        return None
    bandwidth_bps = sum(each.bandwidth_bps for each in found)
    # In each network, the total rate of the half with the lower rate.
    sent_bps = sum(each.bandwidth_bps / each.of_hosts if each.of_hosts else 0.0 for each in found)
    return Bisection(
        bandwidth_bps=bandwidth_bps,
        links=sum(each.links for each in found),
        hosts=(sum(each.hosts[0] for each in found), sum(each.hosts[1] for each in found)),
        of_hosts=bandwidth_bps / sent_bps if sent_bps else 0.0,
        exact=all(each.exact for each in found),
        method=", ".join(dict.fromkeys(each.method for each in found)),
        networks=len(found),
    )


def _network_bisection(switches: Sequence[SwitchSpec]) -> Bisection | None:
    """Return the bisection of one connected network; None with fewer than two hosts."""
    hosts = [len(switch.host_ports) for switch in switches]
    if sum(hosts) < 2:
        return None
    links = _links(switches, {switch.name: number for number, switch in enumerate(switches)})
    rates = [sum(port.link.rate_bps for port in switch.host_ports) for switch in switches]
    found = bisection(Network(hosts, [switch.tier for switch in switches], links, _orders(switches)))
    if found is None:
        within = sorted(port.link.rate_bps for switch in switches for port in switch.host_ports)
        half = len(within) // 2
        return Bisection(sum(within[:half]), 0, (half, len(within) - half), 1.0, True, "within the switch")
    cut, method, exact = found
    first = sum(rates[switch] for switch in cut.first)
    smaller = (sum(hosts) - cut.difference) // 2
    return Bisection(
        bandwidth_bps=cut.bandwidth_bps,
        links=cut.links,
        hosts=(smaller, sum(hosts) - smaller),
        of_hosts=cut.bandwidth_bps / min(first, sum(rates) - first),
        exact=exact,
        method=method,
    )


def _orders(switches: Sequence[SwitchSpec]) -> list[list[int]]:
    numbers = range(len(switches))
    axes = range(min(len(switch.coordinates) for switch in switches if switch.host_ports))
    at_hosts = [number for number in numbers if switches[number].host_ports]
    by_axis = [sorted(at_hosts, key=lambda each: switches[each].coordinates[axis]) for axis in axes]
    by_group = sorted(at_hosts, key=lambda each: switches[each].group or 0)
    return [at_hosts, by_group, *by_axis]


def _oversubscription(fabric: FabricSpec, switches: Sequence[SwitchSpec]) -> tuple[Oversubscription, ...]:
    ratios: dict[int, list[float]] = defaultdict(list)
    roles: dict[int, dict[str, None]] = defaultdict(dict)
    for switch in switches:
        down = sum(port.link.rate_bps for port in switch.host_ports)
        up = 0
        for port in switch.fabric_ports:
            peer = fabric.switch(port.peer.node).tier
            down += port.link.rate_bps if peer < switch.tier else 0
            up += port.link.rate_bps if peer > switch.tier else 0
        if up:
            ratios[switch.tier].append(down / up)
            roles[switch.tier][switch.role] = None
    return tuple(
        Oversubscription(tier, tuple(roles[tier]), min(ratios[tier]), max(ratios[tier])) for tier in sorted(ratios)
    )


def _path_diversity(links: _Links, edges: Sequence[int], count: int, pairs: _Pairs) -> PathDiversity | None:
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for (a, b), (_, parallel) in links.items():
        neighbours[a].append((b, parallel))
        neighbours[b].append((a, parallel))
    most = min(len(edges), max(1, MOST_PATH_STEPS // max(1, len(links))))
    sources = [edges[place * len(edges) // most] for place in range(most)]
    smallest, total, weight = None, 0, 0
    for source in sources:
        for target, found in shortest_path_counts(source, neighbours).items():
            joined = pairs.between(source, target) if target != source else 0
            if joined:
                smallest = found if smallest is None else min(smallest, found)
                total += joined * found
                weight += joined
    if smallest is None:
        return None
    return PathDiversity(smallest, total / weight, most, len(edges), most == len(edges))
