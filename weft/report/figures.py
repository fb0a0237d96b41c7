"""Figures of recorded tables as plain data; assets/page.js draws them. Times are in µs of emulated time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_US
from weft.recording.places import Places
from weft.recording.unions import unions
from weft.report.run_directory import RunDirectory
from weft.report.series import (
    MOST_CURVES,
    PortSeries,
    depths_at,
    distribution,
    heat_map,
    port_series,
    rate_slots,
    rates_bps,
    sampling_interval_ps,
    thinned,
)
from weft.report.state_figures import state_figures

Figure = dict[str, Any]
FIGURES: Mapping[str, tuple[str, str]] = {
    "queues": ("Queues", "Bytes waiting at ports; shaded: phases of the traffic, by number."),
    "heat": ("Queues over all ports", "The largest queue in each slot of time."),
    "rates": ("Rates", "Rates at which ports sent."),
    "memory": ("Switch memory", "Bytes waiting in all ports of a switch together, sampled."),
    "pauses": ("PFC pauses", "When ports were held back."),
    "timeline": ("Timeline", "When each rank's schedule computed, wrote, aggregated and waited."),
    "fct": (
        "Message completion times",
        "Share of messages that took at most so long, from posting to acknowledgement.",
    ),
    "slowdown": ("Slowdown", "Completion time divided by the same message's alone on an idle path."),
    "state-registers": ("Registers", "Values of registers' cells, sampled."),
    "state-counted": (
        "Counters",
        "Packets that counters, meters and entries of tables had counted, sampled.",
    ),
    "state-entries": ("Entries", "How many entries tables had, sampled."),
    "int": ("Queues as INT saw them", "Depth at each hop, at the time when the acknowledgement came back."),
}
"""Title and text of each figure, by name."""
# In a row of the timeline, from top to bottom; reductions and copies take no time of the emulated clock.
_LANES = ("delay", "write", "aggregate", "wait")
MOST_HOSTS = 64
MOST_PAUSED = 32
_SHORTEST_SHARE = 1 / 4000
"""Share of the run's time: shorter gaps of a timeline are not shown."""


def all_figures(run: RunDirectory) -> dict[str, Figure]:
    """Return the figures of the tables that the run has, by name."""
    figures: dict[str, Figure | None] = {}
    if run.rows("queues"):
        series = port_series(run)
        figures |= {"queues": _queues(series), "rates": _rates(run, series), "heat": _heat(series)}
        figures["memory"] = _memory(run, series) if run.results.memory else None
    if run.rows("flows"):
        figures |= {"fct": _completion_times(run), "slowdown": _slowdowns(run)}
    if run.rows("int"):
        figures["int"] = _int(run)
    if run.rows("timeline"):
        figures["timeline"] = _timeline(run)
    if run.rows("pauses"):
        figures["pauses"] = _pauses(run)
    return {name: figure for name, figure in figures.items() if figure is not None} | state_figures(run)


def _memory(run: RunDirectory, series: list[PortSeries]) -> Figure | None:
    """Queue depth of all ports of a switch together: the memory that they share."""
    edges = rate_slots(series, sampling_interval_ps(run))
    switches = {switch.name for switch in run.fabric.switches}
    held: dict[str, NDArray[np.int64]] = {}
    for each in series:
        node = each.port.rpartition(":")[0]
        if node in switches:
            held[node] = held.get(node, np.zeros(len(edges), np.int64)) + depths_at(each, edges)
    fullest = sorted((name for name in held if held[name].any()), key=lambda name: -int(held[name].max()))
    curves = [_curve(name, edges, held[name] / 1e3) for name in fullest[:MOST_CURVES]]
    return {"curves": curves, "note": _note(len(curves), len(fullest), "switches")} if curves else None


def _pauses(run: RunDirectory) -> Figure:
    """Intervals in which ports were paused, for the ports that were paused longest."""
    ports, classes = run.names("pauses", "port"), run.integers("pauses", "priority_class")
    begins, ends = run.integers("pauses", "begin_ps"), run.integers("pauses", "end_ps")
    keys = np.stack([ports.codes, classes])
    found, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.ravel()
    held_ps = np.bincount(group, weights=(ends - begins).astype(float))
    longest = np.argsort(-held_ps, kind="stable")[:MOST_PAUSED].tolist()
    shortest_ps = int((ends.max() - begins.min()) * _SHORTEST_SHARE)
    bar: dict[str, Any] = {"kind": "pause", "rows": [], "base": [], "length": []}
    names = []
    for number in longest:
        name = f"{ports.names[found[0, number]]} class {found[1, number]}"
        names.append(name)
        starts, stops = unions(begins[group == number], ends[group == number], shortest_ps)
        bar["rows"] += [name] * len(starts)
        bar["base"] += (starts / PS_PER_US).tolist()
        bar["length"] += ((stops - starts) / PS_PER_US).tolist()
    return {"rows": names, "bars": [bar], "note": _note(len(names), held_ps.size, "ports and classes")}


def _curve(name: str, times: Integers, values: NDArray[Any]) -> dict[str, Any]:
    times, values = thinned(times, values)
    return {"name": name, "x": (times / PS_PER_US).tolist(), "y": np.round(values, 6).tolist()}


def _note(shown: int, of: int, what: str) -> str:
    return f"{shown} of {of} {what} are drawn: the largest" if of > shown else ""


def _queues(series: list[PortSeries]) -> Figure | None:
    waiting = sorted((each for each in series if each.queue_bytes.any()), key=lambda each: -int(each.queue_bytes.max()))
    curves = [_curve(each.name, each.time_ps, each.queue_bytes / 1e3) for each in waiting[:MOST_CURVES]]
    return {"curves": curves, "note": _note(len(curves), len(waiting), "queues")} if curves else None


def _rates(run: RunDirectory, series: list[PortSeries]) -> Figure | None:
    if not series:
        return None
    edges = rate_slots(series, sampling_interval_ps(run))
    places = Places(run.fabric)
    lines_bps = {each.port: places.link(each.port).rate_bps for each in series}
    busiest = sorted(series, key=lambda each: -int(each.transmitted_bytes[-1]))[:MOST_CURVES]
    curves = [_curve(each.name, edges[1:], rates_bps(each, edges, lines_bps[each.port]) / 1e9) for each in busiest]
    averaged = f"averages over {format_time(int(edges[1] - edges[0]))}"
    few = _note(len(curves), len(series), "ports and classes")
    return {"curves": curves, "note": f"{averaged}; {few}" if few else averaged}


def _heat(series: list[PortSeries]) -> Figure | None:
    names, times, depths = heat_map(series)
    if not names:
        return None
    return {
        "rows": names,
        "x": times.tolist(),
        "z": (depths / 1e3).tolist(),
        "note": f"the {len(names)} largest queues" if len(names) < len(series) else "",
    }


def _by_run(run: RunDirectory, values: NDArray[Any]) -> Figure | None:
    """Distributions, phase by phase: a schedule's runs are numbered in the order of the phases."""
    runs = run.integers("flows", "run")
    good = np.array([status == "success" for status in run.texts("flows", "status")], bool)
    names = {phase.run or place: f"{place} {phase.name}" for place, phase in enumerate(run.phases, 1)}
    curves = []
    for number in np.unique(runs).tolist():
        mine = values[(runs == number) & good]
        if not len(mine):
            continue
        x, y = distribution(mine)
        name = names.get(number, f"run {number}")
        curves.append({"name": f"{name} ({len(mine)})", "x": x.tolist(), "y": y.tolist()})
    return {"curves": curves, "note": ""} if curves else None


def _completion_times(run: RunDirectory) -> Figure | None:
    return _by_run(run, (run.integers("flows", "end_ps") - run.integers("flows", "start_ps")) / PS_PER_US)


def _slowdowns(run: RunDirectory) -> Figure | None:
    took = run.integers("flows", "end_ps") - run.integers("flows", "start_ps")
    return _by_run(run, took / np.maximum(1, run.integers("flows", "ideal_ps")))


def _int(run: RunDirectory) -> Figure | None:
    columns = [run.texts("int", name) for name in ("source", "destination")]
    planes, hops = run.integers("int", "plane"), run.integers("int", "hop")
    times, depths = run.integers("int", "time_ps"), run.integers("int", "queue_bytes")
    names = np.array(
        [
            f"{source} → {destination}, plane {plane}, hop {hop}"
            for source, destination, plane, hop in zip(*columns, planes.tolist(), hops.tolist(), strict=True)
        ],
        dtype=object,
    )
    found = sorted(set(names.tolist()), key=lambda name: -int(depths[names == name].max()))
    curves = [_curve(name, times[names == name], depths[names == name] / 1e3) for name in sorted(found[:MOST_CURVES])]
    return {"curves": curves, "note": _note(len(curves), len(found), "hops")} if curves else None


def _timeline(run: RunDirectory) -> Figure:
    hosts, kinds = run.names("timeline", "host"), run.texts("timeline", "kind")
    starts, ends = run.integers("timeline", "start_ps"), run.integers("timeline", "end_ps")
    shown = np.unique(hosts.codes)[:MOST_HOSTS].tolist()
    shortest_ps = int((ends.max() - starts.min()) * _SHORTEST_SHARE)
    bars = []
    for kind in _LANES:
        bar: dict[str, Any] = {"kind": kind, "rows": [], "base": [], "length": []}
        for code in shown:
            mine = (hosts.codes == code) & (kinds == kind)
            begins, stops = unions(starts[mine], ends[mine], shortest_ps)
            bar["rows"] += [hosts.names[code]] * len(begins)
            bar["base"] += (begins / PS_PER_US).tolist()
            bar["length"] += ((stops - begins) / PS_PER_US).tolist()
        if bar["rows"]:
            bars.append(bar)
    total = len(np.unique(hosts.codes))
    note = f"the first {len(shown)} of {total} hosts; trace.json has all" if total > len(shown) else ""
    return {"rows": [hosts.names[code] for code in shown], "bars": bars, "note": note}
