"""Times of a job's operations: files next to results.json, and a timeline on pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.quantities.units import PS_PER_US
from weft.recording.operations import OPERATIONS, write_operations_trace
from weft.recording.reading import SavedTable
from weft.recording.schema import TableSchema
from weft.recording.tables import Table, integers_of, names_of
from weft.recording.unions import unions
from weft.results.record_files import RecordFile, refuse_beyond
from weft.results.report_parts import SpanFigure, Spans, shown_of

_MOST_TIMELINES = 64
_SHORTEST_SHARE = 1 / 4000
"""Share of the job's time: shorter gaps of a timeline are not shown."""


@dataclass(frozen=True)
class OperationFile(RecordFile):
    """Files with a row per operation, NAME-NUMBER-operations.csv, and NAME-NUMBER-trace.json, which Perfetto opens."""

    records = "operations"

    schema: TableSchema = OPERATIONS

    def save(self, table: Table, directory: Path, number: int) -> None:
        """Write the files of a result."""
        super().save(table, directory, number)
        write_operations_trace(table, directory / f"{self.name}-{number}-trace.json")

    def check(self, table: SavedTable, hosts: int) -> None:
        """Refuse a row of a rank that there is not."""
        refuse_beyond(table, "rank", hosts, "rank")


def timelines(name: str, table: Table) -> Iterator[SpanFigure]:
    """Return a timeline with a row for each stream of each rank, nothing without a table."""
    if not table or not len(integers_of(table, "rank")):
        return
    ranks, streams = integers_of(table, "rank"), integers_of(table, "stream")
    starts, ends = integers_of(table, "start_ps"), integers_of(table, "end_ps")
    kinds, categories = names_of(table, "kind").texts(), names_of(table, "category").texts()
    lanes = np.where(streams >= 0, "stream " + streams.astype(str).astype(object), kinds)
    rows = "rank " + ranks.astype(str).astype(object) + ", " + lanes
    found = list(dict.fromkeys(rows[np.lexsort((lanes.astype(str), ranks))]))
    shown = found[:_MOST_TIMELINES]
    shortest_ps = int(ends.max() * _SHORTEST_SHARE)
    what = np.where(categories != "", categories, kinds)
    spans: dict[str, Spans] = {}
    for each in dict.fromkeys(what.tolist()):
        spans[each] = Spans()
        for row in shown:
            mine = (rows == row) & (what == each)
            begins, stops = unions(starts[mine], ends[mine], shortest_ps)
            spans[each].add(row, begins / PS_PER_US, stops / PS_PER_US)
    yield SpanFigure(
        f"Timeline of {name}",
        shown,
        {each: own for each, own in spans.items() if own.rows},
        text="When each rank's streams computed and communicated; operations without a stream by their kind.",
        note=shown_of(len(shown), len(found), "the first ranks"),
    )
