"""The topology text of the simulators around HPCC (github.com/alibaba-edu/High-Precision-Congestion-Control).

The first line counts nodes, switches and links; the second lists the switches' numbers; then a line for each link:
`src dst rate delay error_rate`. Nodes count from 0; nodes that are not switches are hosts. The simulator reads only as
many links as the first line says; its own topology.txt has further lines.
"""

from __future__ import annotations

from collections import Counter

from weft.quantities.units import shown
from weft.topologies.builder import MOST_LINKS
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_LINK = "src dst rate delay error_rate"
_MOST_DIGITS = 9


def read_hpcc(content: bytes) -> ListedGraph:
    """Return the graph. Raises TopologyError with the line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TopologyError(f"is not UTF-8 text: {error}", place="the whole") from None
    lines = [(f"line {number}", line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    place, counts = lines[0] if lines else ("line 1", [])
    if len(counts) != 3:
        raise TopologyError(
            f"{shown(' '.join(counts))} is not the beginning of a topology",
            place=place,
            valid="the numbers of nodes, switches and links",
        )
    node_count, switch_count, link_count = (_whole(text, MOST_LINKS, place) for text in counts)
    # Every node needs a link, so a file cannot ask for more nodes than it has text.
    if node_count > 2 * link_count:
        raise TopologyError(f"{node_count} nodes are too many for {link_count} links", place=place)
    links = (lines[2:] if switch_count else lines[1:])[:link_count]
    if len(links) < link_count:
        raise TopologyError(
            f"{link_count} links, but {len(links)} lines of links follow",
            place=place,
            valid="as many or more",
        )
    switches = _switches(*lines[1], node_count, switch_count) if switch_count else set()
    listed = ListedGraph()
    for number in range(node_count):
        kind = "switch" if number in switches else "host"
        listed.add_node(ListedNode(str(number), lines[1][0] if number in switches else place, {"type": kind}))
    parallel: Counter[frozenset[str]] = Counter()
    for place, fields in links:
        edge = _edge(place, fields, node_count, parallel)
        listed.add_edge(edge)
    return listed


def _switches(place: str, fields: list[str], node_count: int, switch_count: int) -> set[int]:
    numbers = [_whole(field, node_count - 1, place) for field in fields]
    if len(set(numbers)) != switch_count or len(numbers) != switch_count:
        raise TopologyError(
            f"lists {len(numbers)} switches, {len(set(numbers))} different ones",
            place=place,
            valid=f"{switch_count}",
        )
    return set(numbers)


def _edge(place: str, fields: list[str], node_count: int, parallel: Counter[frozenset[str]]) -> ListedEdge:
    if len(fields) != 5:
        raise TopologyError(f"{shown(' '.join(fields))} is not a link", place=place, valid=_LINK)
    a, b = (str(_whole(field, node_count - 1, place)) for field in fields[:2])
    try:
        error_rate = float(fields[4])
    except ValueError:
        error_rate = float("nan")
    if error_rate != 0:
        raise TopologyError(
            f"error_rate {shown(fields[4])} of a single link is not supported",
            place=place,
            valid="0; `faults` of a scenario are of all links",
        )
    # The format has no keys: a repeated pair of nodes is a parallel link.
    key = parallel[frozenset((a, b))]
    parallel[frozenset((a, b))] += 1
    return ListedEdge(a, b, key, place, {"rate": fields[2], "delay": fields[3]})


def _whole(text: str, highest: int, place: str) -> int:
    value = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not 0 <= value <= highest:
        raise TopologyError(f"{shown(text)} is out of range", place=place, valid=f"0 to {highest}")
    return value


KIND = FileFormat("hpcc", read_hpcc, lambda content: content.lstrip()[:1] not in (b"{", b"<"), is_general=True)
