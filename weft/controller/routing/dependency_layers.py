"""Layers of paths, each without a cycle of buffers: a path goes into the first in which its dependencies close none.

A layer's channel dependency graph stays in topological order as edges are added (D. Pearce and P. Kelly, A Dynamic
Topological Sort Algorithm for Directed Acyclic Graphs, ACM JEA 11, 2006), so that an edge costs a search only of what
lies between its ends in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise


class DependencyLayers:
    """The channel dependency graphs of all layers; channels are the numbers of links, one for each direction."""

    def __init__(self, channels: int) -> None:
        self._channels = channels
        self._graphs: list[_AcyclicGraph] = []

    def copy(self) -> DependencyLayers:
        """Return the same layers, to which others may be added."""
        copied = DependencyLayers(self._channels)
        copied._graphs = [graph.copy() for graph in self._graphs]
        return copied

    @property
    def count(self) -> int:
        """Layers so far."""
        return len(self._graphs)

    def place(self, path: Sequence[int]) -> int:
        """Add a path to the first layer that it closes no cycle in, a new one if need be; return its number."""
        found = self.place_in_these(path)
        if found is None:
            found = len(self._graphs)
            self._graphs.append(_AcyclicGraph(self._channels))
            if not self._graphs[-1].add_path(path):
                raise ValueError(f"a path passes a channel twice: {list(path)}")
        return found

    def place_in_these(self, path: Sequence[int]) -> int | None:
        """Add a path to the first of the layers so far that it closes no cycle in, and return its number, if any."""
        return next((number for number, graph in enumerate(self._graphs) if graph.add_path(path)), None)


class _AcyclicGraph:
    def __init__(self, nodes: int) -> None:
        self._after: dict[int, set[int]] = {}
        self._before: dict[int, set[int]] = {}
        self._position = list(range(nodes))
        # Edges that close a cycle whatever is added.
        self._refused: set[tuple[int, int]] = set()

    def copy(self) -> _AcyclicGraph:
        copied = _AcyclicGraph(0)
        copied._after = {node: set(others) for node, others in self._after.items()}
        copied._before = {node: set(others) for node, others in self._before.items()}
        copied._position = list(self._position)
        copied._refused = set(self._refused)
        return copied

    def add_path(self, path: Sequence[int]) -> bool:
        """Add the edges from each node to the next, or none if they close a cycle."""
        edges = list(pairwise(path))
        if any(edge in self._refused for edge in edges):
            return False
        added: list[tuple[int, int]] = []
        for edge in edges:
            if edge[1] in self._after.get(edge[0], ()):
                continue
            if not self._add(*edge):
                if not added:
                    self._refused.add(edge)
                for before, after in added:
                    self._after[before].remove(after)
                    self._before[after].remove(before)
                return False
            added.append(edge)
        return True

    def _add(self, before: int, after: int) -> bool:
        lowest, highest = self._position[after], self._position[before]
        if lowest <= highest:
            later = self._reached(after, self._after, lowest, highest)
            if before in later:
                return False
            self._reorder(self._reached(before, self._before, lowest, highest), later)
        self._after.setdefault(before, set()).add(after)
        self._before.setdefault(after, set()).add(before)
        return True

    def _reached(self, start: int, edges: dict[int, set[int]], lowest: int, highest: int) -> list[int]:
        """Return the nodes that edges lead to from one, between two positions."""
        found, seen = [start], {start}
        for node in found:
            for other in edges.get(node, ()):
                if other not in seen and lowest <= self._position[other] <= highest:
                    seen.add(other)
                    found.append(other)
        return found

    def _reorder(self, earlier: list[int], later: list[int]) -> None:
        """Give the first nodes the lower of the positions that both have, each in the order that it has."""
        position = self._position
        ordered = [*sorted(earlier, key=position.__getitem__), *sorted(later, key=position.__getitem__)]
        free: Iterator[int] = iter(sorted(position[node] for node in ordered))
        for node in ordered:
            position[node] = next(free)
