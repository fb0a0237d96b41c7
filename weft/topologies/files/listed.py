"""A graph as listed in a file: nodes and edges with their attributes and their place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError

NODE_ATTRIBUTES = ("type", "role", "tier", "group", "coordinates", "plane", "letter")
EDGE_ATTRIBUTES = ("rate", "delay", "queue_capacity")


@dataclass(frozen=True)
class ListedNode:
    """A node; `place` is its position in the file, for errors."""

    name: str
    place: str
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class ListedEdge:
    """An edge; `key` distinguishes parallel edges, None if the file gives none."""

    a: str
    b: str
    key: object
    place: str
    attributes: Mapping[str, object]


class ListedGraph:
    """Nodes and edges in file order; rejects duplicates. `notes` are sentences on what a reader left out or assumed."""

    def __init__(self) -> None:
        self.nodes: dict[str, ListedNode] = {}
        self.edges: list[ListedEdge] = []
        self.notes: list[str] = []
        self._seen: dict[tuple[frozenset[str], object], str] = {}

    def add_node(self, node: ListedNode) -> None:
        """Add a node. Raises TopologyError: its name is taken, or an attribute is unknown."""
        if node.name in self.nodes:
            raise TopologyError(
                f"node {shown(node.name)} is at {self.nodes[node.name].place} already",
                place=node.place,
                valid="each name once",
            )
        _require_known(node.attributes, NODE_ATTRIBUTES, f"{node.place}: node {shown(node.name)}")
        self.nodes[node.name] = node

    def add_edge(self, edge: ListedEdge) -> None:
        """Add an edge. Raises TopologyError: it is a duplicate or a loop, or an attribute is unknown."""
        what = f"{edge.place}: edge {shown(edge.a)} to {shown(edge.b)}"
        if edge.a == edge.b:
            raise TopologyError("joins a node to itself", place=what, valid="two different nodes")
        _require_known(edge.attributes, EDGE_ATTRIBUTES, what)
        identity = (frozenset((edge.a, edge.b)), edge.key)
        if identity in self._seen:
            raise TopologyError(
                f"is at {self._seen[identity]} already",
                place=what,
                valid="once; parallel links have different keys",
            )
        self._seen[identity] = edge.place
        self.edges.append(edge)

    def require_ends(self) -> None:
        """Raise TopologyError if an edge names an unknown node."""
        for edge in self.edges:
            for name in (edge.a, edge.b):
                if name not in self.nodes:
                    choices = ", ".join(list(self.nodes)[:8]) or "none is listed"
                    more = ", …" if len(self.nodes) > 8 else ""
                    raise TopologyError(f"no node is named {shown(name)}", place=edge.place, valid=f"{choices}{more}")


def _require_known(attributes: Mapping[str, object], valid: tuple[str, ...], what: str) -> None:
    for name in attributes:
        if name not in valid:
            raise TopologyError(f"unknown attribute {shown(name)}", place=what, valid=valid)
