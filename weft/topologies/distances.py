"""Distances in hops: the one breadth-first search that paths, routes and trees share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

_Node = TypeVar("_Node", bound=Hashable)
Rings = Sequence[Sequence[int]]
"""`rings[k][i]`: the nodes exactly k hops from node i, as bits of an integer."""


def distances_from(start: _Node, neighbours: Callable[[_Node], Iterable[_Node]]) -> dict[_Node, int]:
    """Return the hops to every reachable node, nearest first, including `start` itself."""
    return distances_from_any([start], neighbours)


def distances_from_any(starts: Iterable[_Node], neighbours: Callable[[_Node], Iterable[_Node]]) -> dict[_Node, int]:
    """Return the hops from the nearest start to every reachable node, nearest first, including the starts."""
    distance = dict.fromkeys(starts, 0)
    queue = list(distance)
    for node in queue:
        for peer in neighbours(node):
            if peer not in distance:
                distance[peer] = distance[node] + 1
                queue.append(peer)
    return distance


def distance_rings(neighbours: Sequence[Sequence[int]]) -> Rings:
    """Return all distances between nodes 0, 1, …, given the neighbours of each; links lead both ways.

    All sources search at once, hop by hop: a node's next ring is the union of its neighbours' last rings, less the
    nodes it has reached. The cost is one n-bit operation for each hop of the diameter and each end of a link.
    """
    reached = [1 << node for node in range(len(neighbours))]
    rings = [list(reached)]
    while True:
        last = rings[-1]
        ring = []
        for node, peers in enumerate(neighbours):
            found = 0
            for peer in peers:
                found |= last[peer]
            ring.append(found & ~reached[node])
        if not any(ring):
            return rings
        rings.append(ring)
        reached = [before | new for before, new in zip(reached, ring, strict=True)]


def shortest_path_counts(start: int, neighbours: Sequence[Sequence[tuple[int, int]]]) -> dict[int, int]:
    """Return how many shortest paths lead to every reachable node, nearest first, including `start` itself.

    `neighbours[i]` are pairs: a neighbour of node i and the number of parallel links to it; each makes a path.
    """
    counts = {start: 1}
    last = dict(counts)
    while last:
        ring: dict[int, int] = {}
        for node, paths in last.items():
            for peer, parallel in neighbours[node]:
                if peer not in counts:
                    ring[peer] = ring.get(peer, 0) + paths * parallel
        counts |= ring
        last = ring
    return counts


class Distances(Generic[_Node]):
    """Hops between the nodes of a graph, given the neighbours of each; links lead both ways."""

    def __init__(self, neighbours: Mapping[_Node, Sequence[_Node]]) -> None:
        self._numbers = {node: number for number, node in enumerate(neighbours)}
        self._rings = distance_rings([[self._numbers[peer] for peer in peers] for peers in neighbours.values()])

    @property
    def rings(self) -> Rings:
        """All distances; nodes are numbered in the order given."""
        return self._rings

    def between(self, first: _Node, second: _Node) -> int | None:
        """Return the hops from one node to another; None if one is unreachable or unknown."""
        if first not in self._numbers or second not in self._numbers:
            return None
        start, bit = self._numbers[first], 1 << self._numbers[second]
        return next((hops for hops, ring in enumerate(self._rings) if ring[start] & bit), None)


def bits_of(nodes: int) -> Iterable[int]:
    """Return the numbers of the nodes in a ring, in ascending order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
