"""Figures of what switches held over time (table `state_series`): registers, counted packets, entries of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.quantities.units import PS_PER_US
from weft.report.run_directory import RunDirectory
from weft.report.series import MOST_CURVES, thinned

_LARGEST = 1e300
"""Most values drawn; registers may hold more."""
QUANTITIES: Mapping[str, Sequence[str]] = {
    "registers": ("value",),
    "counted": ("packets", "green_packets", "yellow_packets", "red_packets"),
    "entries": ("entries",),
}
"""Quantities of a figure, by its name."""
UNITS = {"registers": "value", "counted": "packets", "entries": "entries"}


def state_figures(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Return a figure for each kind of quantity that the table has, by name."""
    if not run.rows("state_series"):
        return {}
    series = _series(run)
    figures = {}
    for figure, quantities in QUANTITIES.items():
        curves = [curve for (_, quantity), curve in series.items() if quantity in quantities]
        if curves:
            figures[f"state-{figure}"] = _figure(curves, UNITS[figure])
    return figures


def _figure(curves: list[dict[str, Any]], unit: str) -> dict[str, Any]:
    changing = sorted(curves, key=lambda curve: min(curve["y"]) - max(curve["y"]))[:MOST_CURVES]
    left_out = len(curves) - len(changing)
    note = f"{len(changing)} of {len(curves)} series are drawn: those that change most" if left_out else ""
    return {"drawing": "steps", "unit": unit, "curves": changing, "note": note}


def _series(run: RunDirectory) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the curve of each series, by name and quantity; from 0 to the last row of all or the traffic's end."""
    columns = [run.texts("state_series", name).tolist() for name in ("switch", "object", "key", "quantity")]
    times = run.integers("state_series", "time_ps")
    values = np.array([float(text[:310]) for text in run.texts("state_series", "value").tolist()])
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, each in enumerate(zip(*columns, strict=True)):
        rows.setdefault(each, []).append(row)
    ends = 0, max(int(times.max()), *(phase.end_ps for phase in run.phases))
    found = {}
    for (switch, what, key, quantity), mine in rows.items():
        name = f"{switch} {what.rpartition('.')[2]}" + (f"[{key}]" if key else "")
        colour = f" {quantity.partition('_')[0]}" if quantity.endswith("_packets") else ""
        found[name + colour, quantity] = _curve(name + colour, times[mine], values[mine], ends)
    return found


def _curve(
    name: str, times: NDArray[np.int64], values: NDArray[np.float64], ends_ps: tuple[int, int]
) -> dict[str, Any]:
    begin_ps, end_ps = ends_ps
    # It was 0 before its first row, and stays as it is after its last.
    if times[0] > begin_ps:
        times, values = np.insert(times, 0, begin_ps), np.insert(values, 0, 0)
    times, values = np.append(times, end_ps), np.append(values, values[-1])
    times, values = thinned(times, np.clip(values, -_LARGEST, _LARGEST))
    return {"name": name, "x": (times / PS_PER_US).tolist(), "y": values.tolist()}
