"""Logs of NCCL calls as CSV, one line per call, with the data that `NCCL_DEBUG_SUBSYS=COLL` prints."""

from __future__ import annotations

from pathlib import Path

from weft.cache import collector_paused
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.calls.joining import trace_of_calls
from weft.jobs.traces.calls.recorded import MAX_COUNT, RECEIVE, SEND, Place, RecordedCall, datatype_of, operation_of
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.tables.lines import Row, csv_rows, first_lines, header_of, whole
from weft.quantities.units import parse_time_ps
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import JobError

NEEDED = ("rank", "operation", "count", "datatype", "communicator")
OPTIONAL = ("root", "stream", "group", "start")


class NcclCsv(TraceFormat):
    """A CSV file of calls, in the order in which each rank makes them.

    Columns: rank, operation (AllReduce, …, Send, Recv), NCCL's count and datatype, communicator (a name shared by all
    its ranks), and optionally root (the peer for Send and Recv; numbered within the communicator), stream, group
    (ncclGroupStart: calls of a stream with the same name start together) and start (the earliest time).
    """

    name = "nccl_csv"
    title = "a CSV log of NCCL's calls"

    def recognises(self, path: Path) -> bool:
        """Return whether the first line has the columns."""
        return set(NEEDED) <= set(header_of(first_lines(path)))

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of all calls. Calls of a rank's stream follow each other."""
        rows, rank = list(csv_rows(path, NEEDED, OPTIONAL)), whole(0, MAX_RANKS - 1)
        users: dict[str, set[int]] = {}
        for row in rows:
            users.setdefault(row.read("communicator", str), set()).add(row.read("rank", rank))
        members = {name: tuple(sorted(ranks)) for name, ranks in users.items()}
        calls: dict[int, list[RecordedCall]] = {}
        for row in rows:
            calls.setdefault(row.read("rank", rank), []).append(_call(row, members))
        if not calls:
            raise TraceError("no calls", place=path)
        missing = [str(each) for each in range(max(calls)) if each not in calls]
        if missing:
            more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
            raise TraceError(f"calls of ranks {', '.join(missing[:20])}{more} are missing", place=path)
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, members)


def _call(row: Row, members: dict[str, tuple[int, ...]]) -> RecordedCall:
    operation, communicator = row.read("operation", operation_of), row.read("communicator", str)
    in_group = whole(0, len(members[communicator]) - 1)
    if operation in (SEND, RECEIVE):
        root = row.read("root", in_group)
    else:
        root = row.read("root", in_group, 0) if COLLECTIVE_KINDS[operation].has_root else 0
    return RecordedCall(
        operation,
        row.read("count", whole(0, MAX_COUNT)),
        row.read("datatype", datatype_of),
        communicator,
        Place(f"{row.path}, line", row.line),
        root,
        row.read("stream", str, ""),
        row.read("group", str, ""),
        row.read("start", parse_time_ps, 0),
    )
