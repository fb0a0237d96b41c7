"""Tables of a page on the traffic: what ran when, and its messages."""

from __future__ import annotations

import numpy as np

from weft.quantities.readable import format_time
from weft.report.run_directory import RunDirectory
from weft.results.report_parts import MOST_ROWS, Cell, ReportTable, microseconds, shown_of


def phases(run: RunDirectory) -> ReportTable:
    """Parts of the traffic, numbered as the charts have them."""
    rows: list[list[Cell]] = [
        [
            number,
            phase.name,
            microseconds(phase.start_ps),
            microseconds(phase.end_ps),
            microseconds(phase.end_ps - phase.start_ps),
        ]
        for number, phase in enumerate(run.phases[:MOST_ROWS], 1)
    ]
    columns = ["phase", "traffic", "from (µs)", "to (µs)", "took (µs)"]
    return ReportTable("Phases", columns, rows, shown_of(len(rows), len(run.phases), "the first"))


def slowest_messages(run: RunDirectory) -> ReportTable | None:
    """Messages of the largest slowdown."""
    if not run.rows("flows"):
        return None
    starts, ends = run.integers("flows", "start_ps"), run.integers("flows", "end_ps")
    took = ends - starts
    slowdown = took / np.maximum(1, run.integers("flows", "ideal_ps"))
    worst = np.argsort(-slowdown, kind="stable")[:20].tolist()
    sources, destinations, statuses = (run.texts("flows", column) for column in ("source", "destination", "status"))
    planes, sizes, repeated = (
        run.integers("flows", column) for column in ("plane", "size_bytes", "retransmitted_packets")
    )
    rows: list[list[Cell]] = [
        [
            f"{sources[row]} → {destinations[row]}",
            int(planes[row]),
            int(sizes[row]),
            format_time(int(starts[row])),
            format_time(int(took[row])),
            round(float(slowdown[row]), 2),
            int(repeated[row]),
            str(statuses[row]),
        ]
        for row in worst
    ]
    columns = [
        "message", "plane", "size (B)", "posted at", "took", "slowdown", "retransmitted packets", "status",
    ]  # fmt: skip
    note = f"the {len(rows)} of the largest slowdown, of {len(took)}"
    return ReportTable("Slowest messages", columns, rows, note)
