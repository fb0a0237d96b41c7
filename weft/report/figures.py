"""Figures of a page as plain data; assets/page.js draws them. Times are in µs of emulated time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topologies.describe import format_time
from weft.recording.tables import Integers
from weft.report.run_directory import RunDirectory
from weft.report.series import (
    MOST_CURVES,
    PortSeries,
    distribution,
    heat_map,
    port_series,
    rate_slots,
    rates_bps,
    sampling_interval_ps,
    thinned,
    unions,
)

Figure = dict[str, Any]
_PS_PER_US = 1e6
# In a row of the timeline, from top to bottom; reductions and copies take no time of the emulated clock.
_LANES = ("delay", "write", "aggregate", "wait")
MOST_HOSTS = 64
_SHORTEST_SHARE = 1 / 4000
"""Of the run's time: gaps of a timeline below this are not shown."""


def all_figures(run: RunDirectory) -> dict[str, Figure]:
    """Return the figures that the run has data for, by name."""
    figures: dict[str, Figure | None] = {}
    if "queues" in run.tables:
        series = port_series(run)
        rates = _rates(series, sampling_interval_ps(run))
        figures |= {"queues": _queues(series), "rates": rates, "heat": _heat(series)}
    if "flows" in run.tables:
        figures |= {"fct": _completion_times(run), "slowdown": _slowdowns(run)}
    if "int" in run.tables:
        figures["int"] = _int(run)
    if "timeline" in run.tables:
        figures["timeline"] = _timeline(run)
    return {name: figure for name, figure in figures.items() if figure is not None}


def _curve(name: str, times: Integers, values: NDArray[Any]) -> dict[str, Any]:
    times, values = thinned(times, values)
    return {"name": name, "x": (times / _PS_PER_US).tolist(), "y": np.round(values, 6).tolist()}


def _note(shown: int, of: int, what: str) -> str:
    return f"{shown} of {of} {what} are drawn: the largest" if of > shown else ""


def _queues(series: list[PortSeries]) -> Figure | None:
    waiting = sorted(
        (each for each in series if each.queue_bytes.any()), key=lambda each: -int(each.queue_bytes.max())
    )
    curves = [_curve(each.name, each.time_ps, each.queue_bytes / 1e3) for each in waiting[:MOST_CURVES]]
    return {"curves": curves, "note": _note(len(curves), len(waiting), "queues")} if curves else None


def _rates(series: list[PortSeries], interval_ps: int) -> Figure | None:
    if not series:
        return None
    edges = rate_slots(series, interval_ps)
    busiest = sorted(series, key=lambda each: -int(each.transmitted_bytes[-1]))[:MOST_CURVES]
    curves = [_curve(each.name, edges[1:], rates_bps(each, edges) / 1e9) for each in busiest]
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
    good = np.array([status == "success" for status in run.names("flows", "status").texts()], bool)
    curves = []
    for number in np.unique(runs).tolist():
        mine = values[(runs == number) & good]
        if not len(mine):
            continue
        x, y = distribution(mine)
        name = run.phases[number - 1]["name"] if 0 < number <= len(run.phases) else f"run {number}"
        curves.append({"name": f"{name} ({len(mine)})", "x": x.tolist(), "y": y.tolist()})
    return {"curves": curves, "note": ""} if curves else None


def _completion_times(run: RunDirectory) -> Figure | None:
    return _by_run(run, (run.integers("flows", "end_ps") - run.integers("flows", "start_ps")) / _PS_PER_US)


def _slowdowns(run: RunDirectory) -> Figure | None:
    took = run.integers("flows", "end_ps") - run.integers("flows", "start_ps")
    return _by_run(run, took / np.maximum(1, run.integers("flows", "ideal_ps")))


def _int(run: RunDirectory) -> Figure | None:
    columns = [run.names("int", name).texts() for name in ("source", "destination")]
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
    curves = [
        _curve(name, times[names == name], depths[names == name] / 1e3)
        for name in sorted(found[:MOST_CURVES])
    ]
    return {"curves": curves, "note": _note(len(curves), len(found), "hops")} if curves else None


def _timeline(run: RunDirectory) -> Figure | None:
    hosts, kinds = run.names("timeline", "host"), run.names("timeline", "kind").texts()
    starts, ends = run.integers("timeline", "start_ps"), run.integers("timeline", "end_ps")
    if not len(starts):
        return None
    shown = np.unique(hosts.codes)[:MOST_HOSTS].tolist()
    shortest_ps = int((ends.max() - starts.min()) * _SHORTEST_SHARE)
    bars = []
    for kind in _LANES:
        bar: dict[str, Any] = {"kind": kind, "rows": [], "base": [], "length": []}
        for code in shown:
            mine = (hosts.codes == code) & (kinds == kind)
            begins, stops = unions(starts[mine], ends[mine], shortest_ps)
            bar["rows"] += [hosts.names[code]] * len(begins)
            bar["base"] += (begins / _PS_PER_US).tolist()
            bar["length"] += ((stops - begins) / _PS_PER_US).tolist()
        if bar["rows"]:
            bars.append(bar)
    total = len(np.unique(hosts.codes))
    note = f"the first {len(shown)} of {total} hosts; trace.json has all" if total > len(shown) else ""
    return {"hosts": [hosts.names[code] for code in shown], "bars": bars, "note": note}
