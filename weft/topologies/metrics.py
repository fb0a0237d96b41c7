"""Figures of a fabric as a graph: ports, hops, bisection bandwidth, oversubscription, shortest paths."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.topologies.bisection import Network, bisection
from weft.topologies.distances import Rings, shortest_path_counts
from weft.topologies.fabric import FabricSpec, SwitchSpec

MOST_PATH_STEPS: Final = 1_000_000
"""Sources times pairs of linked switches up to which shortest paths are counted from all sources."""


@dataclass(frozen=True)
class Bisection:
    """Bandwidth between two halves of a plane's hosts, as `weft.topologies.bisection` finds them.

    Networks that no link joins, such as rails, are halved each, and add up. A network of one switch is halved within
    the switch, which passes on all that half of its hosts send.

    Attributes:
        bandwidth_bps: from one half to the other, in one direction.
        links: how many links between switches that is; none within a switch.
        hosts: NICs of the smaller half and of the larger one.
        of_hosts: `bandwidth_bps` over what all NICs of a half can send; at least 1 is full bisection bandwidth.
        exact: whether no two halves have less between them; otherwise an upper bound.
        method: how it was found.
        networks: how many are halved.

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
    """Rates of a tier's switches: to hosts and lower tiers over to higher tiers, the least and the largest ratio."""

    tier: int
    roles: tuple[str, ...]
    smallest: float
    largest: float


@dataclass(frozen=True)
class PathDiversity:
    """Number of shortest paths between hosts of different switches, each parallel link a path.

    `sources` of `switches` with hosts were counted from; all of them where `exact`.
    """

    smallest: int
    mean: float
    sources: int
    switches: int
    exact: bool


@dataclass(frozen=True)
class PlaneMetrics:
    """One plane, or several alike.

    Pairs of hosts are those of different hosts' NICs of one number, which are those that reach each other. A hop is a
    link between switches: hosts of one switch are 0 hops apart.

    Attributes:
        planes: numbers of the planes that have these figures.
        nics: of hosts in a plane.
        switches: of a plane.
        host_cables: between hosts and switches.
        switch_cables: between switches.
        ports: of all switches together; each has a cable.
        ports_per_switch: the fewest and the most.
        diameter: most hops between two hosts; None without a pair that has a path.
        mean_hops: over all pairs of hosts that have a path; None likewise.
        pairs_without_path: pairs of hosts that no links join.
        bisection: None where no network has two hosts.
        oversubscription: of every tier with links to a higher one; none where there are no tiers.
        path_diversity: None where no two switches with hosts have a path.

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
    """A whole fabric: totals over all planes, and the figures of each kind of plane."""

    hosts: int
    switches: int
    cables: int
    planes: tuple[PlaneMetrics, ...]


def fabric_metrics(fabric: FabricSpec) -> FabricMetrics:
    """Return the figures of a fabric; those of planes that are the same graph are found once."""
    alike: dict[object, list[int]] = defaultdict(list)
    for plane in range(fabric.planes):
        alike[_shape(fabric, plane)].append(plane)
    found = tuple(replace(_of_plane(fabric, same[0]), planes=tuple(same)) for same in alike.values())
    return FabricMetrics(len(fabric.hosts), len(fabric.switches), len(fabric.links), found)


def fabric_bisection(fabric: FabricSpec) -> tuple[int, bool]:
    """Return the bandwidth in b/s between two halves of the hosts in all planes together, and whether it is exact."""
    alike = Counter(_shape(fabric, plane) for plane in range(fabric.planes))
    first = {_shape(fabric, plane): plane for plane in reversed(range(fabric.planes))}
    found = [(count, _bisection(fabric, first[shape])) for shape, count in alike.items()]
    return (
        sum(count * each.bandwidth_bps for count, each in found if each is not None),
        all(each.exact for _, each in found if each is not None),
    )


def _joined_switches(fabric: FabricSpec, plane: int) -> list[list[SwitchSpec]]:
    """Return the switches of each network of a plane that links join, those with hosts first to be found."""
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
    """How many pairs of hosts two sets of switches have."""

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
        """Return the ordered pairs from a switch to others, which are bits."""
        return sum(
            on[source] * sum(hosts * (mask & targets).bit_count() for hosts, mask in masks.items())
            for on, masks in zip(self._on, self._masks, strict=True)
        )

    def between(self, source: int, target: int) -> int:
        """Return the ordered pairs from a switch to another one."""
        return sum([on[source] * on[target] for on in self._on])

    def within(self, switch: int) -> int:
        """Return the ordered pairs of different hosts on a switch."""
        return sum(on[switch] * (on[switch] - 1) for on in self._on)


def _masks(hosts_on: Mapping[int, int]) -> dict[int, int]:
    """Switches as bits, by the number of hosts that they have."""
    masks: dict[int, int] = defaultdict(int)
    for switch, hosts in hosts_on.items():
        masks[hosts] |= 1 << switch
    return masks


def _shape(fabric: FabricSpec, plane: int) -> object:
    """Return what two planes share if they have the same figures."""
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
"""Rate in b/s and number of the links between two switches, the lower number first."""


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
    """Return the ordered pairs of hosts by the hops between them."""
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
    # What the half can send that can send less, of each network.
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
    """Return that of switches that links join; None with fewer than two hosts."""
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
        Oversubscription(tier, tuple(roles[tier]), min(ratios[tier]), max(ratios[tier]))
        for tier in sorted(ratios)
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
