"""Drawing of a fabric: each plane is a column of cores, spines and leaves, with a block of hosts below each leaf.

The kind of topology places switches of fabrics without tiers (`weft.topologies.draw_places`). Large fabrics are drawn
in groups of switches (`weft.topologies.draw_groups`, `weft.topologies.draw_clusters`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from weft.hints import install_extra
from weft.topologies import draw_shapes as shapes
from weft.topologies.draw_clusters import clustered_svg
from weft.topologies.draw_groups import grouped_svg
from weft.topologies.draw_layout import Box, Layout, kind_of
from weft.topologies.draw_legend import OwnStyles
from weft.topologies.draw_places import placed_svg
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricLink, FabricSpec

_MOST_TITLES = 20_000
"""Beyond this many links, tooltips would make up most of the file, so links have none."""
_PNG_WIDTH = 2400
_SUFFIXES = (".svg", ".png", ".html")
MOST_LINKS = 1024
"""Up to this many links, a fabric's switches are drawn one by one. More lines would run together into patterns."""


def draw(fabric: FabricSpec, path: str | Path, link_style: shapes.LinkStyles | None = None) -> Path:
    """Write the fabric's drawing to `path`, an .svg, .png or .html file (which zooms and pans), and return the path.

    A fabric of more than `MOST_LINKS` is drawn in groups.

    Raises:
        TopologyError: another file suffix, or a PNG without cairosvg, which makes it.

    """
    target = Path(path)
    require_picture_suffix(target)
    write_picture(to_svg(fabric, link_style, most_links=MOST_LINKS), target)
    return target


def require_picture_suffix(target: Path) -> None:
    """Check that `write_picture` can write such a file. Raises TopologyError."""
    if target.suffix not in _SUFFIXES:
        raise TopologyError(
            f"cannot draw to {target.name!r}: unknown suffix {target.suffix!r}", valid=map(repr, _SUFFIXES)
        )


def write_picture(svg: str, target: Path, title: str = "Topology") -> None:
    """Write a picture as .svg, as .png, or as an .html page of this title, which zooms and pans.

    Raises:
        TopologyError: another file suffix, or a PNG without cairosvg, which makes it.

    """
    require_picture_suffix(target)
    if target.suffix == ".svg":
        target.write_text(svg, encoding="utf-8")
    elif target.suffix == ".html":
        page = (Path(__file__).parent / "drawing.html").read_text(encoding="utf-8")
        page = page.replace("<title>Topology</title>", f"<title>{shapes.escaped(title)}</title>")
        target.write_text(page.replace("<!-- drawing -->", svg), encoding="utf-8")
    else:
        _write_png(svg, target)


def _write_png(svg: str, target: Path) -> None:
    if importlib.util.find_spec("cairosvg") is None:
        raise TopologyError(
            f"cannot draw to {target.name!r}: PNG needs cairosvg: {install_extra('png')}, or take .svg or .html"
        )
    import cairosvg

    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(target), output_width=_PNG_WIDTH)


def to_svg(
    fabric: FabricSpec,
    link_style: shapes.LinkStyles | None = None,
    background: str | None = "white",
    most_links: int | None = None,
) -> str:
    """Return the drawing as SVG text.

    `link_style` overrides the colours of planes and rails; without it, a legend has them and the links' rates. A
    `background` of None is transparent. A fabric of more than `most_links` is drawn in groups of switches and hosts,
    its size bounded.
    """
    own = OwnStyles.of(fabric) if link_style is None else None
    style_of: shapes.LinkStyles = own or link_style or OwnStyles.of(fabric)
    legend = own.legend() if own is not None else []
    kind, planes = kind_of(fabric), range(fabric.planes)
    if most_links is not None and len(fabric.links) > most_links:
        if kind.clusters is None:
            return grouped_svg(fabric, style_of, background, legend)
        clusters = [kind.clusters(fabric, plane) for plane in planes]
        return clustered_svg(fabric, clusters, style_of, background, legend)
    places = [kind.places(fabric, plane) if kind.places else None for plane in planes]
    if placed := [each for each in places if each is not None]:
        return placed_svg(fabric, placed, style_of, background, legend)
    layout = Layout.of(fabric)
    titles = len(fabric.links) <= _MOST_TITLES
    # Links that stand out are drawn last, on top.
    styled = sorted(((link, style_of(link)) for link in fabric.links), key=lambda each: (each[1].failed, each[1].width))
    # The last of a block's links to a leaf, which stands out most, represents all of them.
    trunks: dict[str, list[tuple[FabricLink, shapes.LinkStyle]]] = {}
    of_host: dict[str, list[shapes.LinkStyle]] = {}
    for link, style in styled:
        if link.a.node in layout.block_of:
            trunks.setdefault(link.b.node, []).append((link, style))
            of_host.setdefault(link.a.node, []).append(style)
    own_fill = {host: styles[-1].colour for host, styles in of_host.items()} if link_style else {}
    body = [_trunk_line(links, layout) for links in trunks.values()]
    body.extend(_link(link, style, layout, titles) for link, style in styled if link.a.node not in layout.block_of)
    body.extend(_block(names, box) for names, box in layout.blocks.items())
    for switch in fabric.switches:
        title = f"{switch.name} device {switch.device_id} {switch.address}"
        body.append(shapes.node(switch.name, switch.role, layout.boxes[switch.name], title))
    for number, (ranks, box) in enumerate(layout.hosts_of_ranks.items()):
        title = f"host {number}: ranks {', '.join(ranks)}"
        body.append(shapes.node(f"host {number}", "host", box, title))
    for host in fabric.hosts if not layout.hosts_of_ranks else ():
        title = " ".join([host.name, *(str(nic.ipv4) for nic in host.nics)])
        fill, styles = own_fill.get(host.name), of_host.get(host.name, ())
        body.append(shapes.node(host.name, "host", layout.boxes[host.name], title, fill, styles))
    body.extend(
        shapes.plane_title(plane, fabric.plane_name(plane), centre) for plane, centre in enumerate(layout.plane_centres)
    )
    return shapes.document(layout.width, layout.height, body, background, legend=legend)


def _link(link: FabricLink, style: shapes.LinkStyle, layout: Layout, title: bool) -> str:
    ends = layout.ends(link)
    line = (
        f"{shapes.stroke(*ends)}{shapes.keys([style])} stroke={shapes.quoted(style.colour)} "
        f'stroke-width="{style.width * layout.line_scale:.3g}"'
    )
    if style.failed:
        line += ' stroke-dasharray="6 4"'
    if not title and not style.failed:
        return line + "/>"
    drawn = f"{line}><title>{shapes.escaped(f'{link} {style.note}'.rstrip())}</title></{shapes.element_of(line)}>"
    return drawn + (shapes.cross(*shapes.middle(*ends), style.colour) if style.failed else "")


def _trunk_line(links: Sequence[tuple[FabricLink, shapes.LinkStyle]], layout: Layout) -> str:
    """Draw a block's links to a leaf as one line in the style of the last link, which stands out most."""
    busiest, style = links[-1]
    (x1, y1), (x2, y2) = layout.ends(busiest)
    width = max(2.0, 1.6 * style.width) * max(0.5, layout.line_scale)
    title = f"all hosts of the block; {busiest} {style.note}".rstrip()
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{shapes.keys(each for _, each in links)} '
        f'stroke={shapes.quoted(style.colour)} stroke-width="{width:.3g}"><title>{shapes.escaped(title)}</title></line>'
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
        f'<text x="{box.x:.1f}" y="{upper + box.height + size:.1f}" {size_of_label} fill="#777">'
        f"{shapes.escaped(label)}</text>"
    )
