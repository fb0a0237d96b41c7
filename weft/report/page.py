"""One HTML page of a run, with everything in it that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from weft.quantities.readable import format_rate, format_time
from weft.quantities.units import PS_PER_US
from weft.report.figures import FIGURES, Figure, all_figures
from weft.report.html import Section, html_page, in_force_table, made_by_table, write_page
from weft.report.run_directory import RunDirectory
from weft.report.tables import all_tables, parts_of_traffic
from weft.report.topology_section import topology_section
from weft.results.limits import sentences
from weft.results.losses import Traceable, lost_in_switches, sentence, trace_command, worst_of
from weft.results.model import Results
from weft.results.report_parts import ReportPart, ReportTable

# Figures and tables below those of the traffic's results; a figure stands with the table of the same thing.
_ORDER = (
    ("table", "link_events"), ("table", "noisy_parts"), ("table", "controller_events"), ("figure", "queues"),
    ("figure", "heat"), ("figure", "rates"), ("figure", "memory"), ("figure", "pauses"), ("figure", "timeline"),
    ("figure", "fct"), ("figure", "slowdown"), ("table", "slowest"), ("figure", "int"), ("table", "int_paths"),
    ("table", "planes"), ("table", "memory"), ("table", "pauses"), ("table", "credits"), ("table", "drops"),
    ("table", "link_faults"), ("table", "link_loads"), ("table", "busiest"), ("table", "ports"),
    ("figure", "state-counted"), ("table", "counters"), ("figure", "state-registers"), ("table", "registers"),
    ("figure", "state-entries"), ("table", "packet_conservation"),
)  # fmt: skip


def write_report(directory: Path, target: Path) -> Path:
    """Write the page of a run's directory, and return where it is.

    Raises:
        BadInputError: the directory is not a run's, or a file of it is damaged.
        EnvironmentLacksError: plotly is missing, or the page cannot be written.
    """
    return write_page(report_page(RunDirectory.read(directory)), target)


def report_page(run: RunDirectory) -> str:
    """Return the page as HTML; the same run gives the same page."""
    figures, parts = all_figures(run), parts_of_traffic(run)
    drawn = {name: part.data() for name, part in parts.items() if not isinstance(part, ReportTable)}
    return html_page(
        title=run.results.made_by.scenario,
        verdict=_verdict(run.results),
        subtitle=_subtitle(run),
        sections=[
            _invalid(run.results),
            _notices(run),
            _notice("fidelity", "Segments in place of packets", [each.sentence for each in run.results.fidelity]),
            _notice(
                "fast-forward",
                "Operations repeated without packets",
                [line for each in run.results.fast_forward for line in each.sentences],
            ),
            _notice("failures", "Failed", [each.sentence for each in run.results.failures]),
            _notice("limits", "Limits of the run", sentences(run.limits)),
            _losses(run.results),
            _warnings(run.results),
            _cards(run),
            topology_section(run),
            *_sections(parts, figures, all_tables(run)),
            in_force_table(run.results.made_by.parameters),
            made_by_table(run.results.made_by.parameters),
        ],
        data={"figures": drawn | figures, "phases": _phases(run), "events": _events(run)},
        valid=_is_valid(run.results),
    )


def _sections(
    parts: Mapping[str, ReportPart], figures: Mapping[str, Figure], tables: Mapping[str, ReportTable]
) -> Iterable[str]:
    if "phases" in tables:
        yield Section.table(tables["phases"])
    for name, part in parts.items():
        yield Section.part(name, part)
    for kind, key in _ORDER:
        if kind == "figure" and key in figures:
            title, text = FIGURES[key]
            yield Section.figure(key, title, text, figures[key]["note"])
        elif kind == "table" and key in tables:
            yield Section.table(tables[key])


def _verdict(results: Results) -> str:
    if "ok" in results.absent:
        return '<span class="bad">the results do not say whether checks passed</span>'
    lost = lost_in_switches(results.losses)
    losses = f' <span class="bad">{_counted(lost, "packet")} lost in switches</span>' if lost else ""
    if results.failures:
        return f'<span class="bad">{escape(results.failures[0].sentence)}</span>{losses}'
    if not results.ok:
        return f'<span class="bad">a check failed</span>{losses}'
    if results.lateness is not None and not results.lateness.valid:
        return f'<span class="bad">right results, late events: times are INVALID</span>{losses}'
    return checks_passed(results) + losses


def checks_passed(*runs: Results) -> str:
    """Return what passed, as HTML; what was not compared with anything has not passed a check."""
    checked, there = (sum(getattr(each, name) for each in runs) for name in ("checked_count", "result_count"))
    if not checked:
        return "<span>nothing was checked</span>"
    unchecked = f"; {there - checked} {'has' if there - checked == 1 else 'have'} nothing to check against"
    whole = "all checks passed" if checked == there else f"all {checked} checked results passed{unchecked}"
    among = "" if len(runs) == 1 else " in both runs" if len(runs) == 2 else " in all runs"
    return f'<span class="good">{whole}{among}</span>'


def _is_valid(results: Results) -> bool:
    return results.lateness is None or results.lateness.valid


def _invalid(results: Results) -> str:
    """State at the top that no time on the page is meaningful."""
    late = results.lateness
    if late is None or late.valid:
        return ""
    return (
        '<section id="invalid" class="notice"><h2>Times and rates</h2><p>The machine served events too late: the 99th '
        f"percentile is {escape(format_time(late.percentile_99_ps))}, the path's round trip "
        f"{escape(format_time(late.path_rtt_ps))}. No time, rate or queue on this page is to be trusted; results are "
        "what they were verified to be.</p></section>"
    )


def _notices(run: RunDirectory) -> str:
    """Parts missing from the page that readers may expect."""
    notices = [*run.missing, *run.results.incomplete_captures]
    if run.results.rows_lost:
        notices.append(f"{run.results.rows_lost} rows were beyond what a probe keeps: the tables are incomplete")
    if run.results.dropped_packet_ins:
        notices.append(f"the controller did not take {run.results.dropped_packet_ins} packets that switches sent to it")
    return _notice("missing", "Not on this page", notices)


def _losses(results: Results) -> str:
    """Where packets ended in switches, and how to see one: the page does not know the scenario's file."""
    traceable = Traceable("SCENARIO")
    losses = [each for each in results.losses if not each.copies]
    lines = [
        f"{sentence(each)}: {trace_command(each, traceable)}" if each.is_of_a_switch else sentence(each)
        for each in worst_of(losses)
    ]
    more = len(losses) - len(lines)
    return _notice("losses", "Lost in switches and hosts", [*lines, *([f"and {more} more places"] if more else [])])


def _warnings(results: Results) -> str:
    return _notice("warnings", "Warnings", results.all_warnings)


def _notice(key: str, title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(each)}</li>" for each in lines)
    return f'<section id="{key}" class="notice"><h2>{title}</h2><ul>{items}</ul></section>'


def _subtitle(run: RunDirectory) -> str:
    made_by, fabric = run.results.made_by, run.fabric
    endpoints, switches = len(fabric.hosts), len(fabric.switches)
    rate = format_rate(fabric.hosts[0].nics[0].link.rate_bps)
    hosts = _counted(endpoints, "host")
    if fabric.scale_up is not None:
        size = fabric.scale_up.ranks_per_host
        hosts = f"{endpoints // size} hosts of {size} ranks"
    return (
        f"{hosts}, {switches} switch{'es' if switches > 1 else ''} in {_counted(len(fabric.training_planes), 'plane')}"
        f"{' and a storage network' if fabric.storage_plane is not None else ''}, "
        f"{rate} NICs · {made_by.clock} clock · seed {made_by.seed}"
    )


def _cards(run: RunDirectory) -> str:
    results = run.results
    queues = [(plane.largest_queue_bytes, plane) for plane in results.planes if plane.largest_queue_bytes is not None]
    deepest = max(queues, key=lambda each: each[0], default=None)
    busiest = max(run.utilisation.items(), key=lambda item: item[1], default=None)
    cards = [
        (
            "traffic ran for",
            format_time(run.traffic_ps),
            _counted(len(run.phases), "phase"),
        ),
        ("busiest port", f"{100 * busiest[1]:.0f} %" if busiest else "–", busiest[0] if busiest else ""),
        (
            "largest queue",
            f"{deepest[0] / 1e3:.1f} kB" if deepest else "–",
            deepest[1].largest_queue_port if deepest else "",
        ),
        ("ECN marks", f"{sum(plane.ecn_marked_packets for plane in results.planes)}", "packets"),
        ("retransmitted", f"{results.retransmissions}", "packets"),
        ("drops", f"{sum(results.drops.values())}", "packets"),
    ]
    if results.memory:
        cards.append(("PFC pauses", f"{sum(each.pauses_sent for each in results.memory)}", "frames"))
    if results.link_events:
        failures = sum(each.state == "down" for each in results.link_events)
        repairs = sum(each.state == "up" for each in results.link_events)
        cards.append(("link failures", f"{failures}", f"{repairs} repairs"))
    body = "\n".join(
        f'<div class="card"><div class="label">{escape(label)}</div><div class="value">{escape(value)}</div>'
        f'<div class="label">{escape(detail)}</div></div>'
        for label, value, detail in cards
    )
    return f'<section id="cards">\n{body}\n</section>'


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _phases(run: RunDirectory) -> list[dict[str, Any]]:
    return [
        {"name": phase.name, "start": phase.start_ps / PS_PER_US, "end": phase.end_ps / PS_PER_US}
        for phase in run.phases
    ]


def _events(run: RunDirectory) -> list[dict[str, Any]]:
    """Links' failures and repairs as marks on charts; simultaneous ones share a mark."""
    found: dict[tuple[int, str], list[str]] = {}
    for event in run.results.link_events:
        if event.happened_ps is not None:
            found.setdefault((event.happened_ps, event.state), []).append(event.link)
    return [
        {
            "x": time_ps / PS_PER_US,
            "state": state,
            "text": f"{links[0] if len(links) == 1 else f'{len(links)} links'} {state}",
        }
        for (time_ps, state), links in sorted(found.items())
    ]
