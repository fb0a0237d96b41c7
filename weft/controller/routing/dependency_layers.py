"""Layers of paths without cycles of buffers: a path goes into the first layer in which it closes no cycle.

A layer's channel dependency graph stays in topological order as edges are added (D. Pearce and P. Kelly, A Dynamic
Topological Sort Algorithm for Directed Acyclic Graphs, ACM JEA 11, 2006), so that adding an edge only searches the
nodes between its ends in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise


class DependencyLayers:
    """The channel dependency graphs of all layers; channels are numbers of directed links."""

    def __init__(self, channels: int) -> None:
        self._channels = channels
        self._graphs: list[_AcyclicGraph] = []

    def copy(self) -> DependencyLayers:
        """Return an independent copy of the layers."""
        copied = DependencyLayers(self._channels)
        copied._graphs = [graph.copy() for graph in self._graphs]
        return copied

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self._graphs)

    def place(self, path: Sequence[int]) -> int:
        """Add a path to the first layer in which it closes no cycle, if necessary a new one; return its number."""
        found = self.place_in_these(path)
        if found is None:
            found = len(self._graphs)
            self._graphs.append(_AcyclicGraph(self._channels))
            if not self._graphs[-1].add_path(path):
                raise ValueError(f"a path passes a channel twice: {list(path)}")
        return found

    def place_in_these(self, path: Sequence[int]) -> int | None:
        """Add a path to the first existing layer in which it closes no cycle; return the layer's number, or None."""
        return next((number for number, graph in enumerate(self._graphs) if graph.add_path(path)), None)


class _AcyclicGraph:
    def __init__(self, nodes: int) -> None:
        self._after: dict[int, set[int]] = {}
        self._before: dict[int, set[int]] = {}
        self._position = list(range(nodes))
        # Edges that close a cycle, which more edges cannot change.
        self._refused: set[tuple[int, int]] = set()

    def copy(self) -> _AcyclicGraph:
        copied = _AcyclicGraph(0)
        copied._after = {node: set(others) for node, others in self._after.items()}
        copied._before = {node: set(others) for node, others in self._before.items()}
        copied._position = list(self._position)
        copied._refused = set(self._refused)
        return copied

    def add_path(self, path: Sequence[int]) -> bool:
        """Add the edges from each node to the next, or none and return False if they close a cycle."""
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
        """Return the nodes reachable from one over edges, between two positions."""
        found, seen = [start], {start}
        for node in found:
            for other in edges.get(node, ()):
                if other not in seen and lowest <= self._position[other] <= highest:
                    seen.add(other)
                    found.append(other)
        return found

    def _reorder(self, earlier: list[int], later: list[int]) -> None:
        """Move `earlier` before `later` within their combined positions, keeping the order within each."""
        position = self._position
        ordered = [*sorted(earlier, key=position.__getitem__), *sorted(later, key=position.__getitem__)]
        free: Iterator[int] = iter(sorted(position[node] for node in ordered))
        for node in ordered:
            position[node] = next(free)
