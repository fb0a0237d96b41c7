"""A drawing of a run's fabric; its links show how busy they were."""

from __future__ import annotations

from html import escape

from weft.quantities.readable import format_time
from weft.report.run_directory import RunDirectory
from weft.report.utilisation import FAILED_COLOUR, colour_of, width_of
from weft.topologies import FabricLink, LinkStyle, to_svg

_MOST_LINKS = 4096
"""Most nodes of a drawing; larger fabrics are drawn in groups, so that pages stay small."""


def topology_section(run: RunDirectory, title: str = "Topology and utilisation") -> str:
    """Return the section as HTML; `title` is plain text."""
    shares, failures = run.utilisation, run.failures

    def style(link: FabricLink) -> LinkStyle:
        up, down = shares.get(str(link.a), 0.0), shares.get(str(link.b), 0.0)
        note = f"· up {100 * up:.1f} %, down {100 * down:.1f} %"
        width = width_of(max(up, down))
        if link in failures:
            history = ", ".join(
                f"{each.state} at {format_time(each.happened_ps)}"
                for each in failures[link]
                if each.happened_ps is not None
            )
            return LinkStyle(FAILED_COLOUR, max(2.0, width), f"{note} · {history}", failed=bool(history))
        return LinkStyle(colour_of(max(up, down)), width, note)

    failed = '<span class="failed">✕ failed during the run</span>' if failures else ""
    return f"""<section class="topology">
  <h2>{escape(title)}</h2>
  <p>A link has the colour of its busier direction, averaged over the time in which traffic ran; point at it for both.
  The buttons zoom, as the wheel does with Ctrl held; dragging moves.</p>
  {drawing_legend(failed)}
  <div class="drawing">{to_svg(run.fabric, style, background=None, most_links=_MOST_LINKS)}</div>
</section>"""


def drawing_legend(failed: str) -> str:
    """Return what a drawing's colours mean, and its buttons, as HTML; `failed` is HTML on links that failed."""
    return f"""<div class="legend">
    <span aria-hidden="true">0 %</span><span class="ramp"></span><span aria-hidden="true">100 %</span>{failed}
    <span class="zoom">
      <button type="button" data-zoom="0.7" aria-label="zoom in">+</button>
      <button type="button" data-zoom="1.4" aria-label="zoom out">−</button>
      <button type="button" data-zoom="0" aria-label="show all">⤢</button>
    </span>
  </div>"""
