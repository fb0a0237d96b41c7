"""Drawing of a fabric: planes as columns of cores, spines and leaves; hosts below, a block for each leaf's."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from topologies.draw_layout import Box, Layout
from topologies.errors import TopologyError
from topologies.fabric import FabricLink, FabricSpec

_FILL = {"core": "#e6d9f0", "spine": "#cfe0f5", "leaf": "#d9ecd0", "host": "#f3e6c8"}
_PLANE_COLOURS = ("#3b6ea8", "#b0592b", "#4d8a4d", "#8a4d86", "#8a7a2b", "#3a8a8a", "#a83b52", "#666666")
_SMALLEST_LABEL = 16.0
"""Width of a box from which its name stands in it."""
_SMALLEST_UPRIGHT_LABEL = 8.0
"""... and stands upright."""
_MOST_TITLES = 20_000
"""Links beyond which they have no tooltips of their own, which would outweigh all the rest."""
_PNG_WIDTH = 2400


@dataclass(frozen=True)
class LinkStyle:
    """How a link is drawn: a CSS colour, a width in pixels, and what its tooltip says beside its name.

    One that has `failed` is dashed and crossed out.
    """

    colour: str
    width: float = 1.5
    note: str = ""
    failed: bool = False


LinkStyles = Callable[[FabricLink], LinkStyle]


def draw(fabric: FabricSpec, path: str | Path, link_style: LinkStyles | None = None) -> Path:
    """Write the fabric's drawing to `path`, an .svg, .png or .html file (which zooms and pans), and return the path.

    Raises:
        TopologyError: another file suffix, or a PNG without cairosvg, which makes it.

    """
    target = Path(path)
    if target.suffix == ".svg":
        target.write_text(to_svg(fabric, link_style), encoding="utf-8")
    elif target.suffix == ".html":
        page = (Path(__file__).parent / "drawing.html").read_text(encoding="utf-8")
        target.write_text(page.replace("<!-- drawing -->", to_svg(fabric, link_style)), encoding="utf-8")
    elif target.suffix == ".png":
        _write_png(to_svg(fabric, link_style), target)
    else:
        raise TopologyError(
            f"cannot draw to {target.name!r}: unknown suffix {target.suffix!r} (valid: '.svg', '.png', '.html')"
        )
    return target


def _write_png(svg: str, target: Path) -> None:
    if importlib.util.find_spec("cairosvg") is None:
        raise TopologyError(
            f"cannot draw to {target.name!r}: PNG needs cairosvg: pip install 'weft[png]', or take .svg or .html"
        )
    import cairosvg

    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(target), output_width=_PNG_WIDTH)


def to_svg(fabric: FabricSpec, link_style: LinkStyles | None = None, background: str | None = "white") -> str:
    """Return the drawing as SVG text.

    `link_style` overrides the planes' colours. A `background` of None is transparent.
    """
    layout = Layout.of(fabric)
    style_of = link_style or (lambda link: LinkStyle(_plane_colour(fabric, link)))
    body = [f'<rect width="100%" height="100%" fill={quoteattr(background)}/>'] if background else []
    titles = len(fabric.links) <= _MOST_TITLES
    # What stands out is drawn last.
    styled = sorted(
        ((link, style_of(link)) for link in fabric.links), key=lambda each: (each[1].failed, each[1].width)
    )
    # Of a block's links to a leaf the last one, which stands out most, stands for all.
    trunks = {link.b.node: (link, style) for link, style in styled if link.a.node in layout.block_of}
    own_fill = {
        link.a.node: style.colour for link, style in styled if link_style and link.a.node in layout.block_of
    }
    body.extend(_trunk_line(link, style, layout) for link, style in trunks.values())
    body.extend(
        _link(link, style, layout, titles) for link, style in styled if link.a.node not in layout.block_of
    )
    body.extend(_block(names, box) for names, box in layout.blocks.items())
    for switch in fabric.switches:
        title = f"{switch.name} device {switch.device_id} {switch.address}"
        body.append(_node(switch.name, switch.role, layout.boxes[switch.name], title))
    for host in fabric.hosts:
        title = " ".join([host.name, *(str(nic.ipv4) for nic in host.nics)])
        body.append(_node(host.name, "host", layout.boxes[host.name], title, own_fill.get(host.name)))
    body.extend(_plane_titles(fabric, layout))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:g}" height="{layout.height:g}" '
            f'viewBox="0 0 {layout.width:g} {layout.height:g}" font-family="sans-serif" font-size="12" '
            'text-anchor="middle" role="img" aria-label="topology">',
            *body,
            "</svg>\n",
        ]
    )


def _plane_colour(fabric: FabricSpec, link: FabricLink) -> str:
    return _PLANE_COLOURS[fabric.switch(link.b.node).plane % len(_PLANE_COLOURS)]


def _link(link: FabricLink, style: LinkStyle, layout: Layout, title: bool) -> str:
    (x1, y1), (x2, y2) = layout.ends(link)
    line = (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke={quoteattr(style.colour)} stroke-width="{style.width * layout.line_scale:.3g}"'
    )
    if style.failed:
        line += ' stroke-dasharray="6 4"'
    if not title and not style.failed:
        return line + "/>"
    drawn = f"{line}><title>{escape(f'{link} {style.note}'.rstrip())}</title></line>"
    return drawn + (_cross((x1 + x2) / 2, (y1 + y2) / 2, style.colour) if style.failed else "")


def _cross(x: float, y: float, colour: str) -> str:
    """Draw what tells a failed link from a busy one without colours."""
    arm = 6.0
    return (
        f'<path d="M{x - arm:.1f} {y - arm:.1f}L{x + arm:.1f} {y + arm:.1f}M{x - arm:.1f} {y + arm:.1f}'
        f'L{x + arm:.1f} {y - arm:.1f}" stroke={quoteattr(colour)} stroke-width="2.5"/>'
    )


def _trunk_line(busiest: FabricLink, style: LinkStyle, layout: Layout) -> str:
    """Draw the links of a block to a leaf as one line, in the style of the one that stands out most."""
    (x1, y1), (x2, y2) = layout.ends(busiest)
    width = max(2.0, 1.6 * style.width) * max(0.5, layout.line_scale)
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke={quoteattr(style.colour)} '
        f'stroke-width="{width:.3g}"><title>{escape(f"all hosts of the block; {busiest} {style.note}".rstrip())}'
        "</title></line>"
    )


def _block(names: tuple[str, ...], box: Box) -> str:
    left, upper = box.x - box.width / 2, box.y - box.height / 2
    label = f"{names[0]} – {names[-1]}"
    size = min(11.0, 1.8 * box.width / len(label))
    size_of_box = f'width="{box.width:.1f}" height="{box.height:.1f}"'
    size_of_label = f'font-size="{size:.1f}"'
    return (
        f'<rect x="{left:.1f}" y="{upper:.1f}" {size_of_box} rx="4" fill="#888" fill-opacity="0.15" stroke="#888" '
        'stroke-width="0.5"/>'
        f'<text x="{box.x:.1f}" y="{upper + box.height + size:.1f}" {size_of_label} fill="#777">{escape(label)}</text>'
    )


def _node(name: str, kind: str, box: Box, title: str, fill: str | None = None) -> str:
    corner = min(4.0, box.width / 6)
    fill = fill or _FILL[kind]
    rectangle = (
        f'<g><title>{escape(title)}</title><rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner:.1f}" fill="{fill}" stroke="#444" '
        f'stroke-width="{min(1.0, box.width / 16):.2g}"/>'
    )
    return rectangle + _label(name, box) + "</g>"


def _label(name: str, box: Box) -> str:
    if box.width >= _SMALLEST_LABEL:
        size = min(12.0, 1.6 * box.width / max(3, len(name)))
        place = f'x="{box.x:.1f}" y="{box.y + size / 3:.1f}" font-size="{size:.1f}"'
        return f'<text {place} fill="#111">{escape(name)}</text>'
    if box.width >= _SMALLEST_UPRIGHT_LABEL and box.height >= 2 * box.width:
        size = min(0.8 * box.width, 1.6 * box.height / max(3, len(name)))
        return (
            f'<text transform="translate({box.x + size / 3:.1f} {box.y:.1f}) rotate(-90)" font-size="{size:.1f}" '
            f'fill="#111">{escape(name)}</text>'
        )
    return ""


def _plane_titles(fabric: FabricSpec, layout: Layout) -> list[str]:
    titles = []
    for plane, centre in enumerate(layout.plane_centres):
        colour = _PLANE_COLOURS[plane % len(_PLANE_COLOURS)]
        titles.append(
            f'<text x="{centre:.1f}" y="28" font-size="14" font-weight="bold" fill="{colour}">plane {plane}</text>'
        )
    return titles
