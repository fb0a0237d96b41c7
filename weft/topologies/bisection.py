"""Bisection of a network of switches: the least bandwidth between two halves of its hosts.

Hosts stay with their switch, so a half is a set of switches, and the halves are as equal in hosts as that allows.
Switches without hosts join the side that costs less. Terms follow W. Dally and B. Towles, Principles and Practices of
Interconnection Networks, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

MOST_SWITCHES_TRIED: Final = 16
"""Up to this many switches with hosts, all halves are tried."""
MOST_CUT_STEPS: Final = 400_000
"""Limit on halves tried times pairs of linked switches."""
MOST_MINIMUM_CUTS: Final = 64
"""Up to this many halves, a minimum cut places the switches without hosts."""
MOST_SWITCHES_REFINED: Final = 512
"""Up to this many switches, Kernighan and Lin's exchange improves the halves."""
_MOST_PASSES = 8


@dataclass(frozen=True)
class Network:
    """Switches 0, 1, …: hosts on each, their tiers, and rate (b/s) and number of the links between two of them."""

    hosts: Sequence[int]
    tiers: Sequence[int]
    links: Mapping[tuple[int, int], tuple[int, int]]
    orders: Sequence[Sequence[int]]
    """Orders of all switches to cut in the middle: by a coordinate, by group."""

    @cached_property
    def edges(self) -> list[int]:
        """Switches with hosts."""
        return [switch for switch, hosts in enumerate(self.hosts) if hosts]

    @cached_property
    def inner(self) -> list[int]:
        """Switches without hosts, nearest to hosts first."""
        without = (switch for switch, hosts in enumerate(self.hosts) if not hosts)
        return sorted(without, key=lambda switch: self.tiers[switch])

    @cached_property
    def inner_are_apart(self) -> bool:
        """Whether no link joins two switches without hosts, so that each can be placed by itself."""
        return all(self.hosts[a] or self.hosts[b] for a, b in self.links)

    @cached_property
    def rates(self) -> list[list[tuple[int, int]]]:
        """For every switch, its neighbours and the total rate (b/s) of the links to each."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.hosts]
        for (a, b), (rate_bps, _) in self.links.items():
            found[a].append((b, rate_bps))
            found[b].append((a, rate_bps))
        return found


@dataclass(frozen=True, order=True)
class Cut:
    """Two halves: the difference in hosts, the links between them, and the switches of the first half."""

    difference: int
    bandwidth_bps: int
    links: int
    first: tuple[int, ...]


def bisection(network: Network) -> tuple[Cut, str, bool] | None:
    """Return the best cut found, the method, and whether it is optimal; None with fewer than two edge switches.

    Every method gives an upper bound: a cut that exists.
    """
    if len(network.edges) < 2:
        return None
    halves = _all_halves(network)
    if halves is not None:
        return min(_cut(network, half) for half in halves), "all halves", True
    best = min(_cut(network, half) for half in _natural_halves(network))
    method = "halves by coordinate, group and order"
    if not network.inner and len(set(network.hosts)) == 1 and len(network.hosts) <= MOST_SWITCHES_REFINED:
        best = min(best, _exchanged(network, best))
        method += ", improved by Kernighan-Lin exchange"
    return best, method, False


def _all_halves(network: Network) -> list[list[int]] | None:
    """Return the most equal halves, each as the side with the last switch; None if there are too many to try."""
    edges = network.edges
    if len(edges) > MOST_SWITCHES_TRIED:
        return None
    hosts = [0] * (1 << len(edges) - 1)
    for chosen in range(1, len(hosts)):
        rest = chosen & (chosen - 1)
        hosts[chosen] = hosts[rest] + network.hosts[edges[(chosen ^ rest).bit_length() - 1]]
    total = sum(network.hosts)
    least = min(abs(total - 2 * each) for each in hosts)
    chosen_halves = [chosen for chosen, each in enumerate(hosts) if abs(total - 2 * each) == least]
    if len(chosen_halves) * len(network.links) > MOST_CUT_STEPS:
        return None
    if not network.inner_are_apart and len(chosen_halves) > MOST_MINIMUM_CUTS:
        return None
    return [[edge for place, edge in enumerate(edges) if chosen >> place & 1] for chosen in chosen_halves]


def _natural_halves(network: Network) -> Iterator[list[int]]:
    total = sum(network.hosts)
    for order in network.orders:
        edges = [switch for switch in order if network.hosts[switch]]
        before: list[int] = []
        behind = 0
        for edge in edges:
            after = behind + network.hosts[edge]
            if before and abs(total - 2 * after) > abs(total - 2 * behind):
                break
            before.append(edge)
            behind = after
        yield before


def _cut(network: Network, first: Iterable[int]) -> Cut:
    """Return the cut around a set of switches with hosts, after placing the switches without hosts."""
    chosen = set(first)
    sides: list[bool | None] = [switch in chosen if hosts else None for switch, hosts in enumerate(network.hosts)]
    if network.inner_are_apart or len(network.edges) > MOST_SWITCHES_TRIED:
        _place_by_majority(network, sides)
    else:
        _place_by_minimum_cut(network, sides)
    crossing = [each for (a, b), each in network.links.items() if sides[a] != sides[b]]
    return Cut(
        abs(sum(network.hosts) - 2 * sum(network.hosts[switch] for switch in chosen)),
        sum(rate_bps for rate_bps, _ in crossing),
        sum(links for _, links in crossing),
        tuple(switch for switch, side in enumerate(sides) if side),
    )


def _place_by_majority(network: Network, sides: list[bool | None]) -> None:
    """Put each switch without hosts where most of its bandwidth leads, until none moves."""
    for _ in range(1 if network.inner_are_apart else _MOST_PASSES):
        before = list(sides)
        for switch in network.inner:
            pull = 0
            for peer, rate_bps in network.rates[switch]:
                if sides[peer] is not None:
                    pull += rate_bps if sides[peer] else -rate_bps
            sides[switch] = pull > 0 if pull else bool(sides[switch])
        if sides == before:
            return


def _place_by_minimum_cut(network: Network, sides: list[bool | None]) -> None:
    import networkx  # late: hosts' and switches' processes do not need it

    graph = networkx.Graph()
    for (a, b), (rate_bps, _) in network.links.items():
        graph.add_edge(a, b, capacity=rate_bps)
    for edge in network.edges:
        graph.add_edge("first" if sides[edge] else "second", edge)  # without a capacity: unlimited
    _, (first, _) = networkx.minimum_cut(graph, "first", "second")
    for switch in network.inner:
        sides[switch] = switch in first


def _exchanged(network: Network, cut: Cut) -> Cut:
    """Improve halves by B. Kernighan and S. Lin's exchange of pairs (Bell System Technical Journal, 1970)."""
    from networkx import Graph
    from networkx.algorithms.community import kernighan_lin_bisection

    graph = Graph()
    graph.add_nodes_from(range(len(network.hosts)))
    graph.add_weighted_edges_from((a, b, rate_bps) for (a, b), (rate_bps, _) in network.links.items())
    first = set(cut.first)
    halves = kernighan_lin_bisection(graph, (first, set(graph) - first), weight="weight", seed=0)
    return _cut(network, halves[0])
