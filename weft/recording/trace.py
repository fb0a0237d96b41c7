"""A run as a Chrome trace, which Perfetto and chrome://tracing open.

Format: "Trace Event Format", Google, JSON object form: complete events (ph "X"), counters ("C"), metadata ("M"). Its
timestamps are microseconds; these have six decimals, so that no picosecond is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.recording.tables import Integers, Names, Table

HOSTS_PID, QUEUES_PID = 1, 2
_PS_PER_US = 10**6
_LANES = 1 << 16
"""A thread's id is twice its host's rank, plus 1 if it has waits, times this, plus a lane."""


def write_trace(tables: Mapping[str, Table], path: Path) -> None:
    """Write hosts as threads with the steps of their schedules, and queues as counters, event by event."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        separator = ""
        for event in _events(tables):
            file.write(separator + json.dumps(event))
            separator = ",\n"
        file.write("\n]}\n")


def _events(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    yield _named("process_name", HOSTS_PID, 0, "hosts")
    yield from _steps(tables["timeline"])
    if "queues" in tables:
        yield _named("process_name", QUEUES_PID, 0, "queues")
        yield from _queues(tables["queues"])


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _us(time_ps: int) -> float:
    return time_ps / _PS_PER_US


def _integers(table: Table, name: str) -> list[int]:
    column = table[name]
    assert not isinstance(column, Names)
    values: list[int] = column.tolist()
    return values


def _names(table: Table, name: str) -> Names:
    column = table[name]
    assert isinstance(column, Names)
    return column


def _steps(table: Table) -> Iterator[dict[str, Any]]:
    """Steps overlap, while events of a thread must nest: each host has as many lanes as it needs, apart for waits."""
    hosts, kinds = _names(table, "host"), _names(table, "kind").texts()
    starts, ends = _integers(table, "start_ps"), _integers(table, "end_ps")
    groups = hosts.codes * 2 + (kinds == "wait")
    lanes = lanes_of(groups, np.array(starts, np.int64), np.array(ends, np.int64))
    threads = (groups * _LANES + lanes).tolist()
    peers = _names(table, "peer").texts()
    runs, steps = _integers(table, "run"), _integers(table, "step")
    planes, sizes = _integers(table, "plane"), _integers(table, "size_bytes")
    for thread in sorted(set(threads)):
        group, lane = divmod(thread, _LANES)
        what = f"{hosts.names[group // 2]}{' waits' if group % 2 else ''}{f' {lane + 1}' if lane else ''}"
        yield _named("thread_name", HOSTS_PID, thread, what)
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": HOSTS_PID,
            "tid": thread,
            "args": {"sort_index": thread},
        }
    for row, thread in enumerate(threads):
        arguments: dict[str, Any] = {"run": runs[row], "step": steps[row], "size_bytes": sizes[row]}
        if peers[row]:
            arguments |= {"peer": peers[row], "plane": planes[row]}
        yield {
            "ph": "X",
            "name": f"{kinds[row]} {peers[row]}".rstrip(),
            "cat": kinds[row],
            "pid": HOSTS_PID,
            "tid": thread,
            "ts": _us(starts[row]),
            "dur": _us(ends[row] - starts[row]),
            "args": arguments,
        }


def lanes_of(groups: Integers, starts_ps: Integers, ends_ps: Integers) -> Integers:
    """Return a lane for each interval, so that those of one group and lane do not overlap; intervals come by start."""
    free_ps: dict[int, list[int]] = {}
    lanes = np.zeros(len(groups), np.int64)
    for row, (group, start_ps, end_ps) in enumerate(
        zip(groups.tolist(), starts_ps.tolist(), ends_ps.tolist(), strict=True)
    ):
        ends = free_ps.setdefault(group, [])
        lane = next((lane for lane, free in enumerate(ends) if free <= start_ps), len(ends))
        if lane == len(ends):
            ends.append(end_ps)
        ends[lane] = end_ps
        lanes[row] = lane
    return lanes


def _queues(table: Table) -> Iterator[dict[str, Any]]:
    ports = _names(table, "port").texts()
    classes = _integers(table, "priority_class")
    depths = _integers(table, "queue_bytes")
    shown: set[str] = set()
    for row, time_ps in enumerate(_integers(table, "time_ps")):
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
