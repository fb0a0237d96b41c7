"""The page: one document that contains its style and script; it only loads the lab's state."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

from weft.live.view import LiveView
from weft.report.html import asset, json_in_script
from weft.report.topology_section import drawing_legend
from weft.report.utilisation import FAILED_COLOUR, colour_of, width_of
from weft.topologies import FabricLink, LinkStyle, to_svg

_ASSETS = Path(__file__).parent / "assets"
_STEPS = 100
"""Steps of a link's load that have different colours."""
_MOST_LINKS = 1024
"""Most links drawn one by one; larger fabrics are drawn in groups, so that browsers can keep up."""
IDLE_COLOUR = colour_of(0.0)


def live_page(view: LiveView, title: str, nonce: str) -> str:
    """Return the page as HTML; `nonce` is the script nonce of its content security policy."""
    number_of = {link: number for number, link in enumerate(view.fabric.links)}

    def idle(link: FabricLink) -> LinkStyle:
        return LinkStyle(IDLE_COLOUR, width_of(0.0), key=number_of[link])

    facts = {
        **view.facts(),
        "colours": [colour_of(step / _STEPS) for step in range(_STEPS + 1)],
        "widths": [round(width_of(step / _STEPS) / width_of(0.0), 3) for step in range(_STEPS + 1)],
        "failed": FAILED_COLOUR,
    }
    page = Template((_ASSETS / "live.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(title),
        nonce=nonce,
        legend=drawing_legend('<span class="failed">┅ down</span>'),
        style=asset("page.css") + (_ASSETS / "live.css").read_text(encoding="utf-8"),
        drawing=to_svg(view.fabric, idle, background=None, most_links=_MOST_LINKS),
        facts=json_in_script(facts),
        script="\n".join(
            (
                asset("zoom.js"),
                *((_ASSETS / name).read_text(encoding="utf-8") for name in ("charts.js", "live.js")),
            )
        ),
    )
