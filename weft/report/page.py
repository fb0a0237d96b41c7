"""One HTML page of a run, with everything in it that it needs."""

from __future__ import annotations

import importlib.util
import json
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from topologies import FabricLink, LinkStyle, to_svg
from topologies.describe import format_rate, format_time
from weft.errors import EnvironmentLacksError
from weft.report.figures import Figure, all_figures
from weft.report.run_directory import RunDirectory
from weft.report.tables import ReportTable, all_tables
from weft.report.utilisation import colour_of, width_of

_ASSETS = Path(__file__).parent / "assets"
_FIGURES = {
    "queues": ("Queues", "Bytes waiting at ports; shaded: phases of the traffic."),
    "heat": ("Queues over all ports", "The largest queue in each slot of time."),
    "rates": ("Rates", "What ports sent."),
    "fct": (
        "Message completion times",
        "Share of messages that took at most so long, from posting to acknowledgement.",
    ),
    "slowdown": ("Slowdown", "Completion time over that of the same message alone on an idle path."),
    "timeline": ("Timeline", "When each host's schedule computed, wrote, aggregated and waited."),
    "int": ("Queues as INT saw them", "Depth at each hop, at the time when the acknowledgement came back."),
}


def write_report(directory: Path, target: Path) -> Path:
    """Write the page of a run's directory, and return where it is.

    Raises:
        BadInputError: the directory is not a run's. EnvironmentLacksError: plotly is missing.
    """
    run = RunDirectory.read(directory)
    target.write_text(report_page(run), encoding="utf-8")
    return target


def report_page(run: RunDirectory) -> str:
    """Return the page as HTML; the same run gives the same page."""
    figures = all_figures(run)
    name = str(run.results["made_by"].get("scenario", "run"))
    page = Template((_ASSETS / "page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(name),
        style=(_ASSETS / "page.css").read_text(encoding="utf-8"),
        verdict=_verdict(run),
        subtitle=escape(_subtitle(run)),
        cards=_cards(run),
        topology=_topology(run),
        figures="\n".join(_figure(key, figures[key]) for key in _FIGURES if key in figures),
        tables="\n".join(_table(table) for table in all_tables(run)),
        made_by=_made_by(run.results["made_by"]),
        data=_json({"figures": figures, "phases": _phases(run)}),
        plotly=_plotly() if figures else "",
        script=(_ASSETS / "page.js").read_text(encoding="utf-8"),
    )


def _plotly() -> str:
    if importlib.util.find_spec("plotly") is None:
        raise EnvironmentLacksError("weft report draws with plotly: pip install 'weft[report]'")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _json(data: Any) -> str:
    """JSON that may stand in a script element: nothing in it looks like markup."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _verdict(run: RunDirectory) -> str:
    results = run.results
    if not results.get("ok", False):
        return '<span class="bad">a check failed</span>'
    lateness = results.get("lateness")
    if lateness and not lateness["valid"]:
        return '<span class="bad">right results, late events: times are invalid</span>'
    return '<span class="good">all checks passed</span>'


def _subtitle(run: RunDirectory) -> str:
    made_by, fabric = run.results["made_by"], run.fabric
    hosts, switches = len(fabric.hosts), len(fabric.switches)
    rate = format_rate(fabric.hosts[0].nics[0].link.rate_bps)
    return (
        f"{hosts} host{'s' if hosts > 1 else ''}, {switches} switches in {fabric.planes} "
        f"plane{'s' if fabric.planes > 1 else ''}, {rate} hosts · {made_by['clock']} clock · seed {made_by['seed']}"
    )


def _cards(run: RunDirectory) -> str:
    results = run.results
    queues = [plane for plane in results["planes"] if plane["largest_queue_bytes"] is not None]
    deepest = max(queues, key=lambda plane: int(plane["largest_queue_bytes"]), default=None)
    busiest = max(run.utilisation.items(), key=lambda item: item[1], default=None)
    cards = [
        ("traffic ran for", format_time(run.traffic_ps), ""),
        ("busiest port", f"{100 * busiest[1]:.0f} %" if busiest else "–", busiest[0] if busiest else ""),
        (
            "largest queue",
            f"{deepest['largest_queue_bytes'] / 1e3:.1f} kB" if deepest else "–",
            deepest["largest_queue_port"] if deepest else "",
        ),
        ("ECN marks", f"{sum(plane['ecn_marked_packets'] for plane in results['planes'])}", "packets"),
        ("retransmitted", f"{results['retransmissions']}", "packets"),
        ("drops", f"{_dropped(results)}", "packets"),
    ]
    return "\n".join(
        f'<div class="card"><div class="label">{escape(label)}</div><div class="value">{escape(value)}</div>'
        f'<div class="label">{escape(detail)}</div></div>'
        for label, value, detail in cards
    )


def _dropped(results: dict[str, Any]) -> int:
    """Packets that went missing anywhere; a tail drop is counted by the port and by its switch."""
    causes = ("tail_drops", "injected_losses", "corrupted_packets")
    planes = [plane.get(key) or 0 for plane in results["planes"] for key in causes]
    others = [count for reason, count in results["drops"].items() if reason != "switch tail_drop"]
    return int(sum(planes) + sum(others))


def _topology(run: RunDirectory) -> str:
    shares = run.utilisation

    def style(link: FabricLink) -> LinkStyle:
        up, down = shares.get(str(link.a), 0.0), shares.get(str(link.b), 0.0)
        return LinkStyle(
            colour_of(max(up, down)),
            width_of(max(up, down)),
            f"· up {100 * up:.1f} %, down {100 * down:.1f} %",
        )

    return to_svg(run.fabric, style, background=None)


def _figure(key: str, figure: Figure) -> str:
    title, text = _FIGURES[key]
    note = f' <span class="note">{escape(figure["note"])}.</span>' if figure["note"] else ""
    return (
        f"<section><h2>{title}</h2><p>{escape(text)}{note}</p>"
        f'<div class="figure" id="figure-{key}" role="img" aria-label="{escape(title)}"></div></section>'
    )


def _table(table: ReportTable) -> str:
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    kinds = ["number" if isinstance(cell, int | float) else "text" for cell in table.rows[0]]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(column)}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{"number" if isinstance(cell, int | float) else "text"}">{escape(_cell(cell))}</td>'
            for cell in row
        )
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<section class="table"><h2>{escape(table.title)}</h2>{note}<div class="scroll"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div></section>"
    )


def _cell(cell: str | int | float) -> str:
    return f"{cell:,}".replace(",", "\u202f") if isinstance(cell, int) else str(cell)


def _made_by(made_by: dict[str, Any]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(key)}</th>'
        f"<td>{escape(value if isinstance(value, str) else json.dumps(value))}</td></tr>"
        for key, value in sorted(made_by.items())
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _phases(run: RunDirectory) -> list[dict[str, Any]]:
    return [
        {"name": phase["name"], "start": phase["start_ps"] / 1e6, "end": phase["end_ps"] / 1e6}
        for phase in run.phases
    ]
