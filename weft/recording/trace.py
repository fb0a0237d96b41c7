"""A run as a Chrome trace, which Perfetto and chrome://tracing open.

Format: "Trace Event Format", Google, JSON object form: complete events (ph "X"), instants ("i"), counters ("C"),
metadata ("M"). Its timestamps are microseconds; these have six decimals, so that no picosecond is lost.

A rank is a process, a stream of its schedule a thread: what it computes, what it writes in each plane and over scale-up
links, what switches aggregate, what it waits for. Steps of a stream overlap (writes are posted before the ones ahead of
them are done), while events of a thread must nest: a step is drawn from when it became the first of its stream, so a
stream is busy when any of its steps is. Its arguments say when it was posted and how long it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_US
from weft.recording.tables import Table, integers_of, names_of
from weft.system.writing import written_whole

PHASES_PID, QUEUES_PID, FIRST_RANK_PID = 1, 2, 3
_COMPUTE, _FIRST_PLANE, _SCALE_UP, _IN_NETWORK, _WAITS = 0, 1, 100, 101, 102
_NAMES = {_COMPUTE: "compute", _SCALE_UP: "scale-up writes", _IN_NETWORK: "in the network", _WAITS: "waits"}


@dataclass(frozen=True)
class Moments:
    """Rows above all ranks of a trace: phases with begin and end, and instant events."""

    phases: Sequence[tuple[str, int, int]] = ()
    instants: Sequence[tuple[str, int]] = ()


def write_trace(tables: Mapping[str, Table], path: Path, moments: Moments | None = None) -> None:
    """Write phases, ranks with the steps of their schedules, and queues as counters, event by event."""
    write_events(_events(tables, moments or Moments()), path)


def write_events(events: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write a trace of these events, one at a time."""
    with written_whole(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        separator = ""
        for event in events:
            file.write(separator + json.dumps(event, separators=(",", ":")))
            separator = ",\n"
        file.write("\n]}\n")


def _events(tables: Mapping[str, Table], moments: Moments) -> Iterator[dict[str, Any]]:
    yield from _moments(moments)
    yield from _steps(tables["timeline"])
    if "queues" in tables:
        yield from process_events(QUEUES_PID, "queues")
        yield from _queues(tables["queues"])


def process_events(pid: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield what names a process, in the order of their numbers."""
    yield _metadata("process_name", pid, 0, {"name": name})
    yield _metadata("process_sort_index", pid, 0, {"sort_index": pid})


def thread_events(pid: int, tid: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield what names a thread, in the order of their numbers."""
    yield _metadata("thread_name", pid, tid, {"name": name})
    yield _metadata("thread_sort_index", pid, tid, {"sort_index": tid})


def _metadata(what: str, pid: int, tid: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": arguments}


def _us(time_ps: int) -> float:
    return time_ps / PS_PER_US


def _moments(moments: Moments) -> Iterator[dict[str, Any]]:
    if not moments.phases and not moments.instants:
        return
    yield from process_events(PHASES_PID, "run")
    yield from thread_events(PHASES_PID, 0, "phases")
    where = {"pid": PHASES_PID, "tid": 0}
    for name, start_ps, end_ps in moments.phases:
        times = {"ts": _us(start_ps), "dur": _us(end_ps - start_ps)}
        yield {"ph": "X", "name": name, "cat": "phase", **where, **times, "args": {}}
    for name, time_ps in moments.instants:
        yield {"ph": "i", "name": name, "cat": "link", **where, "ts": _us(time_ps), "s": "g", "args": {}}


def _steps(table: Table) -> Iterator[dict[str, Any]]:
    hosts, kinds, peers = (
        names_of(table, "host"),
        names_of(table, "kind").texts(),
        names_of(table, "peer").texts(),
    )
    starts, ends, planes = (integers_of(table, name) for name in ("start_ps", "end_ps", "plane"))
    streams = _streams(kinds, planes)
    order = np.lexsort([starts, ends, streams, hosts.codes])
    drawn_from = _when_first(hosts.codes, streams, starts, ends, order)
    runs, steps, sizes = (integers_of(table, name).tolist() for name in ("run", "step", "size_bytes"))
    for code in np.unique(hosts.codes).tolist():
        yield from process_events(FIRST_RANK_PID + code, hosts.names[code])
        for stream in np.unique(streams[hosts.codes == code]).tolist():
            name = _NAMES.get(stream) or f"plane {stream - _FIRST_PLANE} writes"
            yield from thread_events(FIRST_RANK_PID + code, stream, name)
    for row in order.tolist():
        start_ps, end_ps = int(starts[row]), int(ends[row])
        arguments = {
            "run": runs[row], "step": steps[row], "size_bytes": sizes[row],
            "posted_us": _us(start_ps), "took_us": _us(end_ps - start_ps),
        }  # fmt: skip
        if peers[row]:
            arguments |= {"peer": peers[row], "plane": int(planes[row])}
        yield {
            "ph": "X",
            "name": f"{kinds[row]} {peers[row]}".rstrip(),
            "cat": kinds[row],
            "pid": FIRST_RANK_PID + int(hosts.codes[row]),
            "tid": int(streams[row]),
            "ts": _us(int(drawn_from[row])),
            "dur": _us(end_ps - int(drawn_from[row])),
            "args": arguments,
        }


def _streams(kinds: np.ndarray[Any, Any], planes: Integers) -> Integers:
    """Return the number of each step's stream."""
    streams = np.full(len(kinds), _COMPUTE, np.int64)
    writes = np.isin(kinds, ("write", "read"))
    streams[writes] = np.where(planes[writes] < 0, _SCALE_UP, _FIRST_PLANE + planes[writes])
    streams[kinds == "aggregate"] = _IN_NETWORK
    streams[kinds == "wait"] = _WAITS
    return streams


def _when_first(hosts: Integers, streams: Integers, starts: Integers, ends: Integers, order: Integers) -> Integers:
    """Return when each step is first of its stream: when it was posted, or when the one that ended before it did."""
    first = starts.copy()
    same = (hosts[order][1:] == hosts[order][:-1]) & (streams[order][1:] == streams[order][:-1])
    before = np.where(same, ends[order][:-1], 0)
    first[order[1:]] = np.maximum(starts[order[1:]], before)
    return first


def _queues(table: Table) -> Iterator[dict[str, Any]]:
    ports = names_of(table, "port").texts()
    classes = integers_of(table, "priority_class").tolist()
    depths = integers_of(table, "queue_bytes").tolist()
    shown: set[str] = set()
    for row, time_ps in enumerate(integers_of(table, "time_ps").tolist()):
        name = f"{ports[row]} class {classes[row]}"
        # A series that never had anything waiting would be a track of zeros.
        if depths[row] == 0 and name not in shown:
            continue
        shown.add(name)
        yield {
            "ph": "C",
            "name": name,
            "pid": QUEUES_PID,
            "tid": 0,
            "ts": _us(time_ps),
            "args": {"bytes": depths[row]},
        }
