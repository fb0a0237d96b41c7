"""Drawing of a fabric as SVG: planes as columns of cores, spines and leaves; hosts in a row below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from topologies.errors import TopologyError
from topologies.fabric import FabricLink, FabricSpec

_NODE_WIDTH = 56
_NODE_HEIGHT = 24
_SPACING = 72
_PLANE_GAP = 48
_MARGIN = 24
_TOP, _ROW = 64, 120
_FILL = {"core": "#e6d9f0", "spine": "#cfe0f5", "leaf": "#d9ecd0", "host": "#f3e6c8"}
_PLANE_COLOURS = ("#3b6ea8", "#b0592b", "#4d8a4d", "#8a4d86", "#8a7a2b", "#3a8a8a", "#a83b52", "#666666")

_Positions = dict[str, tuple[float, float]]


def draw(
    fabric: FabricSpec, path: str | Path, link_colour: Callable[[FabricLink], str] | None = None
) -> Path:
    """Write the fabric's drawing to `path`, an `.svg` file, and return the path.

    Raises:
        TopologyError: another file suffix.

    """
    target = Path(path)
    if target.suffix != ".svg":
        raise TopologyError(
            f"cannot draw to {target.name!r}: unknown suffix {target.suffix!r} (valid: '.svg')"
        )
    target.write_text(to_svg(fabric, link_colour), encoding="utf-8")
    return target


def to_svg(fabric: FabricSpec, link_colour: Callable[[FabricLink], str] | None = None) -> str:
    """Return the drawing as SVG text; `link_colour` (a CSS colour per link) overrides the planes' colours."""
    positions, width = _layout(fabric)
    height = max(y for _, y in positions.values()) + _NODE_HEIGHT + _MARGIN
    body = [_link(fabric, link, positions, link_colour) for link in fabric.links]
    for switch in fabric.switches:
        body.append(
            _node(
                switch.name,
                switch.role,
                positions,
                f"{switch.name} device {switch.device_id} {switch.address}",
            )
        )
    for host in fabric.hosts:
        body.append(
            _node(host.name, "host", positions, " ".join([host.name, *(str(nic.ipv4) for nic in host.nics)]))
        )
    body.extend(_plane_titles(fabric, positions))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="12" '
            'text-anchor="middle">',
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _layout(fabric: FabricSpec) -> tuple[_Positions, float]:
    """Centres of all nodes and the drawing's width."""
    positions: _Positions = {}
    left = float(_MARGIN)
    three_tiers = any(fabric.cores(plane) for plane in range(fabric.planes))
    for plane in range(fabric.planes):
        tiers = [fabric.cores(plane)] if three_tiers else []
        tiers += [fabric.spines(plane), fabric.leaves(plane)]
        width = max(map(len, tiers)) * float(_SPACING)
        for row, switches in enumerate(tiers):
            _row([switch.name for switch in switches], left, width, _TOP + row * _ROW, positions)
        left += width + _PLANE_GAP
    host_y = _TOP + (3 if three_tiers else 2) * _ROW
    planes_width = left - _PLANE_GAP - _MARGIN
    width = max(planes_width, len(fabric.hosts) * float(_SPACING))
    shift = (width - planes_width) / 2
    positions = {name: (x + shift, y) for name, (x, y) in positions.items()}
    _row([host.name for host in fabric.hosts], _MARGIN, width, host_y, positions)
    return positions, width + 2 * _MARGIN


def _row(names: Sequence[str], left: float, width: float, y: float, positions: _Positions) -> None:
    for place, name in enumerate(names):
        positions[name] = (left + width * (2 * place + 1) / (2 * len(names)), y)


def _link(
    fabric: FabricSpec,
    link: FabricLink,
    positions: _Positions,
    link_colour: Callable[[FabricLink], str] | None,
) -> str:
    plane = fabric.switch(link.b.node).plane
    colour = link_colour(link) if link_colour else _PLANE_COLOURS[plane % len(_PLANE_COLOURS)]
    (x1, y1), (x2, y2) = positions[link.a.node], positions[link.b.node]
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
        f'stroke={quoteattr(colour)} stroke-width="1.5">'
        f"<title>{escape(str(link))}</title></line>"
    )


def _node(name: str, kind: str, positions: _Positions, title: str) -> str:
    x, y = positions[name]
    return (
        f'<g><title>{escape(title)}</title><rect x="{x - _NODE_WIDTH / 2:g}" y="{y - _NODE_HEIGHT / 2:g}" '
        f'width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="4" fill="{_FILL[kind]}" stroke="#444"/>'
        f'<text x="{x:g}" y="{y + 4:g}">{escape(name)}</text></g>'
    )


def _plane_titles(fabric: FabricSpec, positions: _Positions) -> list[str]:
    titles = []
    for plane in range(fabric.planes):
        columns = [positions[switch.name][0] for switch in fabric.switches_of_plane(plane)]
        colour = _PLANE_COLOURS[plane % len(_PLANE_COLOURS)]
        centre = (min(columns) + max(columns)) / 2
        titles.append(f'<text x="{centre:g}" y="28" font-size="14" fill="{colour}">plane {plane}</text>')
    return titles
