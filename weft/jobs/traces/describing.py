"""Describes the contents of a trace, as data and as text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from weft.jobs.traces.definition import Trace
from weft.quantities.readable import counted, format_size, format_time
from weft.traffic.jobs import Job, Kind
from weft.traffic.jobs.operations import exact_sum

MOST_LISTED = 20


def as_dict(trace: Trace) -> dict[str, Any]:
    """Return the contents of a trace: counts, bytes, times in picoseconds."""
    held = _job(trace.job) if trace.job is not None else _flows(trace)
    return {**held, "notes": list(trace.notes)}


def describe(trace: Trace) -> str:
    """Return the contents of a trace as lines of text."""
    held = as_dict(trace)
    lines = _job_lines(held) if trace.job is not None else _flow_lines(held)
    return "\n".join([*lines, *(f"note: {note}" for note in trace.notes)])


def _flows(trace: Trace) -> dict[str, Any]:
    hosts = {host for flow in trace.flows for host in (flow.source, flow.destination)}
    return {
        "flows": len(trace.flows),
        "bytes": sum(flow.size_bytes for flow in trace.flows),
        "hosts": len(hosts),
        "highest_host": max(hosts, default=None),
        "last_start_ps": max((flow.start_ps for flow in trace.flows), default=None),
    }


def _flow_lines(held: dict[str, Any]) -> list[str]:
    if not held["flows"]:
        return ["no flows"]
    return [
        f"{counted(held['flows'], 'flow')} of {format_size(held['bytes'])} in all, between {held['hosts']} hosts "
        f"(up to {held['highest_host']}); the last starts at {format_time(held['last_start_ps'])}"
    ]


def _job(job: Job) -> dict[str, Any]:
    counts, sent_bytes, computed_ps = Counter[str](), 0, []
    calls: Counter[tuple[str, int, int]] = Counter()
    for rank, part in enumerate(job.parts):
        operations = part.operations
        for kind, count in zip(*np.unique(operations.kind, return_counts=True), strict=True):
            counts[Kind(kind).name.lower()] += int(count)
        sent_bytes += exact_sum(operations.size_bytes[operations.of_kind(Kind.SEND)])
        busy_ps = exact_sum(operations.duration_ps[operations.of_kind(Kind.COMPUTE)])
        computed_ps.append(busy_ps if part.compute_scale == 1.0 else round(busy_ps * part.compute_scale))
        for row in operations.of_kind(Kind.COLLECTIVE).tolist():
            slot, number = operations.calls[operations.target[row]]
            ranks = job.groups[part.groups[slot]].ranks
            # A group's call is counted once, for its first rank.
            if ranks[0] == rank:
                call = job.calls[number]
                calls[call.name, call.size_bytes, len(ranks)] += 1
    return {
        "name": job.name,
        "ranks": len(job.parts),
        "operations": dict(counts),
        "programs": len({id(part.operations) for part in job.parts}),
        "groups": len(job.groups),
        "sent_bytes": sent_bytes,
        "most_computed_ps": max(computed_ps, default=0),
        "collectives": [
            {"collective": name, "size_bytes": size, "ranks": ranks, "calls": count}
            for (name, size, ranks), count in sorted(calls.items())
        ],
    }


def _job_lines(held: dict[str, Any]) -> list[str]:
    kinds = ", ".join(f"{count:,} {name}" for name, count in held["operations"].items()) or "none"
    lines = [
        f"{counted(held['ranks'], 'rank')}, {counted(held['programs'], 'distinct program')}, "
        f"{counted(held['groups'], 'group')}",
        f"operations: {kinds}",
        f"messages: {format_size(held['sent_bytes'])}; a rank computes for up to "
        f"{format_time(held['most_computed_ps'])}",
    ]
    for call in held["collectives"][:MOST_LISTED]:
        lines.append(
            f"{call['calls']:,} × {call['collective']} of {format_size(call['size_bytes'])} in "
            f"{counted(call['ranks'], 'rank')}"
        )
    if len(held["collectives"]) > MOST_LISTED:
        lines.append(f"and {len(held['collectives']) - MOST_LISTED} more collectives")
    return lines
