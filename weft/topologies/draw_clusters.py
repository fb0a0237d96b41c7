"""Drawing of a large fabric without tiers: blocks or groups as boxes, the cables between two of them as one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from weft.topologies.descriptions import plural_of
from weft.topologies.draw_curves import Curve, bend_of, extent
from weft.topologies.draw_places import host_box, on_a_page, placed_boxes
from weft.topologies.draw_shapes import LegendEntry, LinkStyle, LinkStyles, caption, node
from weft.topologies.fabric import FabricLink, FabricSpec
from weft.topologies.places import Cluster

_MOST_LABELLED = 40
"""Up to this many lines, each is labelled with its number of cables."""
_MANY = 200
"""Beyond this many lines, they are thin."""
_Bundles = dict[tuple[str, str], list[tuple[FabricLink, LinkStyle]]]


def clustered_svg(
    fabric: FabricSpec,
    planes: Sequence[Sequence[Cluster]],
    style_of: LinkStyles,
    background: str | None,
    legend: Sequence[LegendEntry] = (),
) -> str:
    """Return the drawing as SVG text; a line has the style of its most prominent link."""
    clusters = {_key(plane, each): each for plane, listed in enumerate(planes) for each in listed}
    boxes, unit, middles = placed_boxes(
        [{_key(plane, each): each.place for each in listed} for plane, listed in enumerate(planes)]
    )
    key_of = {switch: key for key, each in clusters.items() for switch in each.switches}
    between, inside, to_hosts = _bundles(fabric, style_of, key_of)
    curves = {
        (a, b): Curve.between(boxes[a], boxes[b], bend_of(boxes[a], boxes[b], list(boxes.values()), unit))
        for a, b in between
    }
    hosts = {key: host_box(boxes[key], list(boxes.values()), list(curves.values())) for key in to_hosts}
    scale = unit if len(between) <= _MANY else unit / 3
    body = [
        curves[ends].svg(links[-1][1], _title(links, clusters, ends), scale, [each for _, each in links])
        for ends, links in between.items()
    ]
    body += [
        Curve.between(hosts[key], boxes[key]).svg(
            links[-1][1], f"{len(links)} links to hosts", unit, [each for _, each in links]
        )
        for key, links in to_hosts.items()
    ]
    body += [
        node(f"{len(links)} hosts", "host", hosts[key], f"{len(links)} hosts of {clusters[key].label}")
        for key, links in to_hosts.items()
    ]
    for key, each in clusters.items():
        roles = list(dict.fromkeys(fabric.switch(name).role for name in each.switches))
        role = roles[0] if len(roles) == 1 else "switch"
        count = f"{len(each.switches)} {plural_of(role) if len(each.switches) > 1 else role}"
        title = f"{count}, {each.switches[0]} to {each.switches[-1]}; {inside[key]} cables between them"
        body.append(node(f"{each.label}\n{count}", roles[0], boxes[key], title))
    if len(between) <= _MOST_LABELLED:
        body += [caption(str(len(between[ends])), *_beside(curve)) for ends, curve in curves.items()]
    drawn = [*boxes.values(), *hosts.values()]
    lines = _captions(between, inside, fabric.planes)
    left, right, top, _ = extent(drawn, list(curves.values()))
    body += [
        caption(line, (left + right) / 2, top - 8 - 16 * (len(lines) - 1 - number)) for number, line in enumerate(lines)
    ]
    return on_a_page(fabric, body, drawn, list(curves.values()), middles, background, len(lines), legend)


def _key(plane: int, cluster: Cluster) -> str:
    return f"{plane}:{cluster.label}"


def _bundles(
    fabric: FabricSpec, style_of: LinkStyles, key_of: Mapping[str, str]
) -> tuple[_Bundles, Counter[str], dict[str, list[tuple[FabricLink, LinkStyle]]]]:
    """Return the links between two clusters, the number within each, and the links from each to its hosts."""
    order = {key: number for number, key in enumerate(dict.fromkeys(key_of.values()))}
    between: _Bundles = {}
    inside: Counter[str] = Counter()
    to_hosts: dict[str, list[tuple[FabricLink, LinkStyle]]] = {}
    for link in fabric.links:
        a, b = key_of.get(link.a.node), key_of[link.b.node]
        if a is None:
            to_hosts.setdefault(b, []).append((link, style_of(link)))
        elif a == b:
            inside[a] += 1
        else:
            ends = (a, b) if order[a] < order[b] else (b, a)
            between.setdefault(ends, []).append((link, style_of(link)))
    for links in (*between.values(), *to_hosts.values()):
        links.sort(key=lambda each: (each[1].failed, each[1].width))
    return between, inside, to_hosts


def _title(
    links: Sequence[tuple[FabricLink, LinkStyle]], clusters: Mapping[str, Cluster], ends: tuple[str, str]
) -> str:
    first, style = links[-1]
    a, b = (clusters[each].label for each in ends)
    text = f"{len(links)} cables, {a} to {b}; most: {first} {style.note}".rstrip()
    failed = sum(each.failed for _, each in links)
    return f"{text}; {failed} failed" if failed else text


def _beside(curve: Curve) -> tuple[float, float]:
    x, y = curve.at(0.5)
    return x, y - 4


def _captions(between: _Bundles, inside: Counter[str], planes: int) -> list[str]:
    """Return text that describes all lines and boxes."""
    lines = []
    for counts, what in (
        ([len(links) for links in between.values()], "a line is {} of the {} cables between boxes"),
        (list(inside.values()), "a box has {} of the {} cables inside boxes"),
    ):
        if counts:
            text = what.format(range_of(counts), f"{sum(counts):,}")
            lines.append(text + (" of all planes" if planes > 1 else ""))
    return lines


def range_of(counts: Sequence[int]) -> str:
    """Return the smallest and largest number as text, or one number if all are equal."""
    least, most = min(counts), max(counts)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"
