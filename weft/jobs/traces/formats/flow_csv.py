"""Flow lists as CSV, one line per flow."""

from __future__ import annotations

from pathlib import Path

from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.tables.lines import csv_rows, first_lines, header_of, whole
from weft.quantities.definitions import TIME
from weft.quantities.limits import MAX_FLOW_BYTES, MAX_FLOW_QUEUE_PAIRS
from weft.quantities.readable import format_time
from weft.quantities.units import parse_size_bytes, parse_time_ps
from weft.traffic.patterns import Flow

NEEDED = ("source", "destination", "size")
OPTIONAL = ("start", "plane", "queue_pairs")
MAX_HOSTS = 1 << 20


def checked_flow(flow: Flow, place: str) -> Flow:
    """Return the flow. Raises TraceError if it goes from a host to itself, or has a size or start out of range."""
    if flow.source == flow.destination:
        raise TraceError(f"host {flow.source} sends to itself", place=place, valid="another host")
    if not 1 <= flow.size_bytes <= MAX_FLOW_BYTES:
        raise TraceError(f"a flow of {flow.size_bytes} B", place=place, valid=f"1 to {MAX_FLOW_BYTES}")
    if not TIME.holds(flow.start_ps):
        raise TraceError(f"a start at {format_time(flow.start_ps)}", place=place, valid=TIME.range_text)
    if flow.queue_pairs > flow.size_bytes:
        raise TraceError(f"{flow.queue_pairs} queue pairs", place=place, valid=f"1 to {flow.size_bytes}, its bytes")
    return flow


class FlowCsv(TraceFormat):
    """A CSV file with columns source, destination, size, and optionally start, plane and queue_pairs."""

    name = "flow_csv"
    title = "a CSV list of flows"
    holds_flows = True

    def recognises(self, path: Path) -> bool:
        """Return whether the first line has the columns."""
        return set(NEEDED) <= set(header_of(first_lines(path)))

    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the flows; hosts and planes are numbered from 0, starts are relative to the traffic's start."""
        host = whole(0, MAX_HOSTS - 1)
        flows = []
        for row in csv_rows(path, NEEDED, OPTIONAL):
            flow = Flow(
                row.read("source", host),
                row.read("destination", host),
                row.read("size", parse_size_bytes),
                row.read("plane", whole(0, 255), 0),
                row.read("start", parse_time_ps, 0),
                row.read("queue_pairs", whole(1, MAX_FLOW_QUEUE_PAIRS), 1),
            )
            flows.append(checked_flow(flow, row.place))
        return Trace(flows=tuple(flows))
