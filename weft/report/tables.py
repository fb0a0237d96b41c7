"""Tables of a page: cells as they are shown."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from topologies.describe import format_rate, format_time
from weft.report.run_directory import RunDirectory

MOST_ROWS = 50

Cell = str | int | float


@dataclass
class ReportTable:
    """A heading, columns and rows; `note` says what is left out."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    note: str = ""


@dataclass
class _Pauses:
    count: int = 0
    total_ps: int = 0
    longest_ps: int = 0


def all_tables(run: RunDirectory) -> list[ReportTable]:
    """Return the tables that the run has something for."""
    makers = (
        collectives, flows_by_pattern, planes, credits, link_faults, slowest_messages, ports, drops, pauses, int_path
    )  # fmt: skip
    return [table for make in makers if (table := make(run)) is not None and table.rows]


def collectives(run: RunDirectory) -> ReportTable:
    """Figures of nccl-tests."""
    rows: list[list[Cell]] = [
        [
            f"{each['collective']}, {each['algorithm']}",
            each["size_bytes"],
            each["dtype"],
            each["operation"],
            round(each["time_ps"] / 1e6, 3),
            round(each["algbw_bytes_per_s"] / 1e9, 3),
            round(each["busbw_bytes_per_s"] / 1e9, 3),
            each["wrong"] if each.get("verified", True) else "lengths only",
            each["retransmissions"],
        ]
        for each in run.results["collectives"]
    ]
    columns = [
        "collective", "size (B)", "type", "operation", "time (µs)", "algbw (GB/s)", "busbw (GB/s)", "wrong",
        "retransmitted packets",
    ]  # fmt: skip
    return ReportTable("Collectives", columns, rows)


def flows_by_pattern(run: RunDirectory) -> ReportTable:
    """Patterns of flows as a whole."""
    rows: list[list[Cell]] = [
        [
            each["pattern"],
            each["flows"],
            each["bytes_delivered"],
            round(each["time_ps"] / 1e6, 3),
            each["retransmissions"],
        ]
        for each in run.results["flows"]
    ]
    return ReportTable(
        "Patterns", ["pattern", "flows", "delivered (B)", "time (µs)", "retransmitted packets"], rows
    )


def planes(run: RunDirectory) -> ReportTable:
    """Counters of the planes."""
    rows: list[list[Cell]] = [
        [
            each["plane"],
            each["ecn_marked_packets"],
            "" if each["largest_queue_bytes"] is None else each["largest_queue_bytes"],
            each["largest_queue_port"],
            each["packets_aggregated"],
            "" if each["tail_drops"] is None else each["tail_drops"],
            "" if each["injected_losses"] is None else each["injected_losses"],
            "" if each.get("corrupted_packets") is None else each["corrupted_packets"],
        ]
        for each in run.results["planes"]
    ]
    columns = [
        "plane", "ECN marks", "largest queue (B)", "at", "packets aggregated", "tail drops", "lost by fault",
        "corrupted",
    ]  # fmt: skip
    return ReportTable("Planes", columns, rows)


def credits(run: RunDirectory) -> ReportTable:
    """Waits for credits, by plane."""
    rows: list[list[Cell]] = [
        [
            each["plane"],
            each["updates_sent"],
            each["stalls"],
            format_time(each["stalled_ps"]),
            format_time(each["longest_stall_ps"]),
            each["longest_stall_port"],
            each["largest_buffer_bytes"],
        ]
        for each in run.results.get("credits", [])
    ]
    columns = [
        "plane",
        "updates",
        "stalls",
        "stalled in all",
        "longest of a lane",
        "at",
        "largest buffer (B)",
    ]
    return ReportTable("Credits", columns, rows)


def link_faults(run: RunDirectory) -> ReportTable:
    """Links by what faults dropped on them."""
    causes = ("lost", "corrupted", "duplicated", "delayed")
    struck = [
        [each["link"], *(each[f"{cause}_packets"] for cause in causes)]
        for each in run.results.get("link_faults", [])
    ]
    rows = sorted(struck, key=lambda row: -(row[1] + row[2]))[:MOST_ROWS]
    note = f"{len(rows)} of {len(struck)}: those that dropped most" if len(rows) < len(struck) else ""
    return ReportTable("Packets hit by faults of links", ["link", *causes], rows, note)


def slowest_messages(run: RunDirectory) -> ReportTable | None:
    """Messages of the largest slowdown."""
    if "flows" not in run.tables:
        return None
    took, ideal = (
        run.integers("flows", "end_ps") - run.integers("flows", "start_ps"),
        run.integers("flows", "ideal_ps"),
    )
    slowdown = took / np.maximum(1, ideal)
    worst = np.argsort(-slowdown, kind="stable")[:20].tolist()
    names = [run.names("flows", column).texts() for column in ("source", "destination", "status")]
    numbers = [run.integers("flows", column) for column in ("plane", "size_bytes", "retransmitted_packets")]
    rows: list[list[Cell]] = [
        [
            f"{names[0][row]} → {names[1][row]}",
            int(numbers[0][row]),
            int(numbers[1][row]),
            format_time(int(run.integers("flows", "start_ps")[row])),
            format_time(int(took[row])),
            round(float(slowdown[row]), 2),
            int(numbers[2][row]),
            str(names[2][row]),
        ]
        for row in worst
    ]
    columns = [
        "message",
        "plane",
        "size (B)",
        "posted at",
        "took",
        "slowdown",
        "retransmitted packets",
        "status",
    ]
    return ReportTable(
        "Slowest messages", columns, rows, f"the {len(rows)} of the largest slowdown, of {len(took)}"
    )


def ports(run: RunDirectory) -> ReportTable:
    """The ports that have sent the most."""
    names, peers = run.names("ports", "port").texts(), run.names("ports", "peer").texts()
    sent = run.integers("ports", "transmitted_bytes")
    columns = [
        run.integers("ports", name)
        for name in (
            "transmitted_packets",
            "transmitted_bytes",
            "largest_queue_bytes",
            "tail_dropped_packets",
        )
    ]
    order = np.argsort(-sent, kind="stable")
    rows: list[list[Cell]] = [
        [
            f"{names[row]} → {peers[row]}",
            format_rate(int(run.integers("ports", "rate_bps")[row])),
            f"{100 * run.utilisation.get(str(names[row]), 0.0):.1f} %",
            *(("" if column[row] < 0 else int(column[row])) for column in columns),
        ]
        for row in order[:MOST_ROWS].tolist()
    ]
    note = f"the {len(rows)} that sent the most, of {len(order)}" if len(order) > len(rows) else ""
    return ReportTable(
        "Ports",
        [
            "port → peer",
            "rate",
            "utilisation",
            "packets sent",
            "bytes sent",
            "largest queue (B)",
            "tail drops",
        ],
        rows,
        note,
    )


def drops(run: RunDirectory) -> ReportTable:
    """Drops by place and reason, and those that only the counters know."""
    rows: list[list[Cell]] = []
    if "drops" in run.tables:
        counted: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], int] = {}
        keys = zip(
            run.names("drops", "place").texts(),
            run.names("drops", "reason").texts(),
            run.integers("drops", "time_ps").tolist(),
            strict=True,
        )
        for place, reason, time_ps in keys:
            counted[place, reason] += 1
            first.setdefault((place, reason), time_ps)
        rows += [
            [place, reason, count, format_time(first[place, reason])]
            for (place, reason), count in counted.most_common(MOST_ROWS)
        ]
    # What was recorded one by one, the counters of switches and NICs tell once more.
    recorded = ("switch ", "nic ") if "drops" in run.tables else ()
    rows += [
        ["all", reason, count, ""]
        for reason, count in run.results["drops"].items()
        if not reason.startswith(recorded)
    ]
    return ReportTable("Drops", ["place", "reason", "packets", "first at"], rows)


def pauses(run: RunDirectory) -> ReportTable | None:
    """PFC pauses by port and class."""
    if "pauses" not in run.tables:
        return None
    found: defaultdict[tuple[str, int], _Pauses] = defaultdict(_Pauses)
    names, classes = run.names("pauses", "port").texts(), run.integers("pauses", "priority_class")
    lasted = run.integers("pauses", "end_ps") - run.integers("pauses", "begin_ps")
    for port, priority_class, duration_ps in zip(names, classes.tolist(), lasted.tolist(), strict=True):
        each = found[port, priority_class]
        each.count += 1
        each.total_ps += duration_ps
        each.longest_ps = max(each.longest_ps, duration_ps)
    worst = sorted(found.items(), key=lambda item: (-item[1].total_ps, item[0]))[:MOST_ROWS]
    rows: list[list[Cell]] = [
        [port, priority_class, each.count, format_time(each.total_ps), format_time(each.longest_ps)]
        for (port, priority_class), each in worst
    ]
    return ReportTable("PFC pauses", ["port paused", "class", "pauses", "total", "longest"], rows)


def int_path(run: RunDirectory) -> ReportTable | None:
    """INT's last view of a path."""
    paths: list[dict[str, Any]] = run.results["int_paths"]
    if not paths:
        return None
    path = paths[0]
    rows: list[list[Cell]] = [
        [
            hop["hop"],
            hop["switch"],
            format_rate(hop["rate_bps"]),
            hop["queue_bytes"],
            hop["timestamp_ns"],
            hop["tx_bytes"],
        ]
        for hop in path["hops"]
    ]
    return ReportTable(
        f"INT {path['source']} → {path['destination']}, plane {path['plane']}",
        ["hop", "switch", "rate", "queue (B)", "timestamp (ns mod 2²⁴)", "sent (B mod 2²⁷)"],
        rows,
        "the newest acknowledgement's",
    )
