"""Node-link JSON as NetworkX writes it: https://networkx.org/documentation/stable/reference/readwrite/json_graph.html."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.json_text import parsed_json
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_KEYS = ("directed", "multigraph", "graph", "nodes", "edges", "links")


def read_node_link(content: bytes) -> ListedGraph:
    """Return the graph. Raises TopologyError with the place."""
    tree = parsed_json(content)
    if not isinstance(tree, dict):
        raise TopologyError(f"{shown(tree)} is not a mapping", place="the whole", valid=_KEYS)
    for key in tree:
        if key not in _KEYS:
            raise TopologyError(f"unknown key {shown(key)}", place="the whole", valid=_KEYS)
    is_multigraph = _flag(tree, "multigraph")
    if _flag(tree, "directed"):
        raise TopologyError("directed: true is not supported", valid="false; links lead both ways")
    # NetworkX called edges "links" up to 3.3 and "edges" since.
    named = [key for key in ("edges", "links") if key in tree]
    if len(named) != 1:
        raise TopologyError(
            f"has {' and '.join(named) or 'no edges'}", place="the whole", valid="either edges or links"
        )
    listed = ListedGraph()
    for place, node in _items(tree, "nodes"):
        name = _name(node.pop("id", None), place, "id")
        listed.add_node(ListedNode(name, place, node))
    for place, edge in _items(tree, named[0]):
        a, b = (_name(edge.pop(end, None), place, end) for end in ("source", "target"))
        key = edge.pop("key", None)
        if not (key is None or isinstance(key, str | int)):
            raise TopologyError(f"{shown(key)} is not valid", place=f"{place}.key", valid="a text or a whole number")
        listed.add_edge(ListedEdge(a, b, key if is_multigraph else None, place, edge))
    return listed


def _flag(tree: dict[str, object], key: str) -> bool:
    value = tree.get(key, False)
    if not isinstance(value, bool):
        raise TopologyError(f"{shown(value)} is not valid", place=key, valid="true, false")
    return value


def _items(tree: dict[str, object], key: str) -> Iterator[tuple[str, dict[str, object]]]:
    items = tree.get(key)
    if not isinstance(items, list):
        raise TopologyError(f"must be a list, is {shown(items)}", place=key)
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise TopologyError(f"must be a mapping, is {shown(item)}", place=f"{key}[{index}]")
        yield f"{key}[{index}]", dict(item)


def _name(value: object, place: str, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TopologyError(f"{shown(value)} is not a name", place=f"{place}.{key}", valid="a text or a whole number")
    return str(value)


KIND = FileFormat(
    "node_link",
    read_node_link,
    lambda content: content.lstrip()[:1] == b"{",
    suffixes=(".json",),
    is_general=True,
)
