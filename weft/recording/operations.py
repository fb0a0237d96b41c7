"""The operations of a job that has run, as a table, and as a trace for Perfetto.

In the trace a rank is a process and each of its streams a thread. Operations without a stream overlap, so
each kind is spread over as many threads as it had operations at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_US
from weft.recording.schema import ColumnSchema, Holds, TableSchema
from weft.recording.tables import Names, Table, integers_of, names_of
from weft.recording.trace import FIRST_RANK_PID, process_events, thread_events, write_events
from weft.traffic.jobs import NO_STREAM, Job, Kind
from weft.traffic.jobs.breakdown import Times

MOST_ROWS = 200_000
"""Most rows of a table. Of a larger job it has the first ranks' operations."""
OPERATIONS = TableSchema(
    (
        ColumnSchema("rank", smallest=0),
        ColumnSchema("operation", smallest=0),
        ColumnSchema("kind", Holds.TEXT),
        ColumnSchema("stream"),
        ColumnSchema("category", Holds.TEXT, may_be_empty=True),
        ColumnSchema("name", Holds.TEXT, may_be_empty=True),
        ColumnSchema("start_ps", smallest=0),
        ColumnSchema("end_ps", smallest=0),
    ),
    spans=("start_ps", "end_ps"),
)
"""Times are since the job's start; a stream of -1 stands for none."""
_KINDS = [kind.name.lower() for kind in Kind]


def operations_table(job: Job, times: Sequence[Times]) -> Table:
    """Return a row for each operation of the first ranks: of as many as make at most MOST_ROWS rows, at least one."""
    ranks, rows = 0, 0
    while ranks < len(job.parts) and (not ranks or rows + len(job.parts[ranks].operations) <= MOST_ROWS):
        rows += len(job.parts[ranks].operations)
        ranks += 1
    parts = [job.parts[rank].operations for rank in range(ranks)]
    return {
        "rank": _joined([np.full(len(part), rank, np.int64) for rank, part in enumerate(parts)]),
        "operation": _joined([np.arange(len(part)) for part in parts]),
        "kind": Names(_joined([part.kind.astype(np.int64) for part in parts]), _KINDS),
        "stream": _joined([part.stream.astype(np.int64) for part in parts]),
        "category": _texts([(part.category, part.categories) for part in parts]),
        "name": _texts([(part.name, part.names) for part in parts]),
        "start_ps": _joined([times[rank].started_ps for rank in range(ranks)]),
        "end_ps": _joined([times[rank].finished_ps for rank in range(ranks)]),
    }


def _joined(columns: Sequence[Any]) -> Integers:
    return np.concatenate([np.asarray(each, np.int64) for each in columns]) if columns else np.zeros(0, np.int64)


def _texts(columns: Sequence[tuple[Any, Sequence[str]]]) -> Names:
    """Return columns of codes, each of names of its own, as one; "" stands for none."""
    numbers: dict[str, int] = {}
    codes = []
    for own, names in columns:
        known = [numbers.setdefault(name, len(numbers)) if name else -1 for name in names]
        codes.append(np.array(known, np.int64)[own])
    return Names(_joined(codes), list(numbers))


def write_operations_trace(table: Table, path: Path) -> None:
    """Write a table of operations as a trace."""
    write_events(_events(table), path)


def _events(table: Table) -> Iterator[dict[str, Any]]:
    ranks, streams = integers_of(table, "rank"), integers_of(table, "stream")
    starts, ends = integers_of(table, "start_ps"), integers_of(table, "end_ps")
    kinds, categories = names_of(table, "kind").texts(), names_of(table, "category").texts()
    names, operations = names_of(table, "name").texts(), integers_of(table, "operation")
    for rank in np.unique(ranks).tolist():
        rows = np.flatnonzero(ranks == rank)
        pid = FIRST_RANK_PID + rank
        yield from process_events(pid, f"rank {rank}")
        threads = _threads(streams[rows], kinds[rows], starts[rows], ends[rows])
        numbers = {name: number for number, name in enumerate(sorted(set(threads), key=_thread_order))}
        for name, number in numbers.items():
            yield from thread_events(pid, number, name)
        for row, thread in zip(rows.tolist(), threads, strict=True):
            yield {
                "ph": "X",
                "name": names[row] or categories[row] or kinds[row],
                "cat": categories[row] or kinds[row],
                "pid": pid,
                "tid": numbers[thread],
                "ts": int(starts[row]) / PS_PER_US,
                "dur": int(ends[row] - starts[row]) / PS_PER_US,
                "args": {"operation": int(operations[row]), "kind": kinds[row], "category": categories[row]},
            }


def _thread_order(name: str) -> tuple[bool, str, int]:
    what, _, number = name.rpartition(" ")
    return what != "stream", what, int(number)


def _threads(streams: Integers, kinds: Any, starts: Integers, ends: Integers) -> list[str]:
    """Return the name of each operation's thread: its stream's, or one of its kind that is free as it starts."""
    threads = [f"stream {stream}" for stream in streams.tolist()]
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[int, int]]] = {}
    for row in np.lexsort((ends, starts)).tolist():
        if streams[row] != NO_STREAM:
            continue
        kind = str(kinds[row])
        available, under_way = free.setdefault(kind, []), busy.setdefault(kind, [])
        while under_way and under_way[0][0] <= starts[row]:
            heapq.heappush(available, heapq.heappop(under_way)[1])
        number = heapq.heappop(available) if available else len(under_way) + 1
        heapq.heappush(under_way, (int(ends[row]), number))
        threads[row] = f"{kind} {number}"
    return threads
