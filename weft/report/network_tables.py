"""Tables of a page on the network that need the tables of a run, or several keys of its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.quantities.readable import format_rate, format_time
from weft.report.run_directory import RunDirectory
from weft.results.packet_conservation import Count
from weft.results.report_parts import MOST_ROWS, Cell, ReportTable, shown_of


@dataclass
class _Pauses:
    count: int = 0
    total_ps: int = 0
    longest_ps: int = 0


def pauses(run: RunDirectory) -> ReportTable | None:
    """PFC pauses by port and class."""
    if "pauses" not in run.tables:
        return None
    found: defaultdict[tuple[str, int], _Pauses] = defaultdict(_Pauses)
    names, classes = run.texts("pauses", "port"), run.integers("pauses", "priority_class")
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
    note = shown_of(len(rows), len(found), "those that were held longest")
    return ReportTable("Pauses by port", ["port paused", "class", "pauses", "total", "longest"], rows, note)


def ports(run: RunDirectory) -> ReportTable | None:
    """The ports that have sent the most."""
    if not run.rows("ports"):
        return None
    names, peers = run.texts("ports", "port"), run.texts("ports", "peer")
    rates, sent = run.integers("ports", "rate_bps"), run.integers("ports", "transmitted_bytes")
    columns = ("transmitted_packets", "transmitted_bytes", "largest_queue_bytes", "tail_dropped_packets")
    counters = [run.integers("ports", name) for name in columns]
    order = np.argsort(-sent, kind="stable")
    rows: list[list[Cell]] = [
        [
            f"{names[row]} → {peers[row]}",
            format_rate(int(rates[row])),
            f"{100 * run.utilisation.get(str(names[row]), 0.0):.1f} %",
            *(("" if column[row] < 0 else int(column[row])) for column in counters),
        ]
        for row in order[:MOST_ROWS].tolist()
    ]
    titles = [
        "port → peer", "rate", "utilisation", "packets sent", "bytes sent", "largest queue (B)", "tail drops",
    ]  # fmt: skip
    return ReportTable("Ports", titles, rows, shown_of(len(rows), len(order), "those that sent the most"))


def busiest(run: RunDirectory) -> ReportTable | None:
    """The ports that were sending for most of the time, and for what."""
    if not run.rows("loads"):
        return None
    sent: dict[str, Counter[str]] = {}
    columns = (
        run.texts("loads", "port"),
        run.texts("loads", "kind"),
        run.integers("loads", "transmitted_bytes"),
    )
    for port, kind, size in zip(*(column.tolist() for column in columns), strict=True):
        sent.setdefault(port, Counter())[kind] += size
    peers = dict(zip(run.texts("loads", "port").tolist(), run.texts("loads", "peer").tolist(), strict=True))
    kinds = list(dict.fromkeys(kind for of_port in sent.values() for kind in of_port))
    order = sorted(sent, key=lambda port: -run.utilisation.get(port, 0.0))
    rows: list[list[Cell]] = [
        [
            f"{port} → {peers[port]}",
            _share(run.utilisation.get(port, 0.0)),
            *(sent[port][kind] or "" for kind in kinds),
        ]
        for port in order[:MOST_ROWS]
    ]
    titles = ["port → peer", "utilisation", *(f"{kind} (B)" for kind in kinds)]
    note = shown_of(len(rows), len(order), "those that were busiest")
    return ReportTable("Busiest links by kind of traffic", titles, rows, note)


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def drops(run: RunDirectory) -> ReportTable:
    """Drops by place and reason, and those that only the counters know."""
    rows: list[list[Cell]] = []
    if "drops" in run.tables:
        counted: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], int] = {}
        times = run.integers("drops", "time_ps").tolist()
        keys = zip(run.texts("drops", "place"), run.texts("drops", "reason"), times, strict=True)
        for place, reason, time_ps in keys:
            counted[place, reason] += 1
            first.setdefault((place, reason), time_ps)
        rows += [
            [place, reason, count, format_time(first[place, reason])]
            for (place, reason), count in counted.most_common(MOST_ROWS)
        ]
    # Drops that were recorded one by one are in the counters of queues, links, switches and NICs, too.
    recorded = ("queue ", "link ", "switch ", "nic ") if "drops" in run.tables else ()
    losses = [each for each in run.results.losses if not each.reason.startswith(recorded)]
    placed = {each.reason for each in losses}
    rows += [
        ["all", reason, count, ""]
        for reason, count in run.results.drops.items()
        if not reason.startswith(recorded) and reason not in placed
    ]
    rows += [
        [each.place, each.reason, each.packets, ""]
        for each in sorted(losses, key=lambda each: -each.packets)[:MOST_ROWS]
    ]
    return ReportTable("Drops", ["place", "reason", "packets", "first at"], rows)


def conservation(run: RunDirectory) -> ReportTable | None:
    """Packet conservation: all that entered has left, was absorbed or dropped, or is in flight."""
    account = run.results.packet_conservation
    if account is None:
        return None
    held = {"in queues": account.queued, "on links": account.in_flight, "in switches": account.in_switches}
    rows = [*_counted("entered", account.entered), *_counted("left", account.left)]
    rows += [["absorbed", name.replace("_", " "), count, ""] for name, count in run.results.absorbed.items()]
    rows += [
        ["dropped", cause, count, account.dropped[cause].bytes if cause in account.dropped else ""]
        for cause, count in run.results.drops.items()
    ]
    ended = _sum(list(account.dropped.values()))
    rows.append(["absorbed and dropped", "in all", ended.packets, ended.bytes])
    rows += _counted("under way", held)
    if account.resized_bytes:
        rows.append(["resized", "by switches", "", account.resized_bytes])
    rows.append(["missing", "", account.missing.packets, account.missing.bytes])
    note = "entered + resized = left + absorbed and dropped + under way + missing; what switches add up is absorbed"
    return ReportTable("Packet conservation", ["", "what", "packets", "bytes"], rows, note)


def _counted(group: str, counts: Mapping[str, Count]) -> list[list[Cell]]:
    rows: list[list[Cell]] = [
        [group, name.replace("_", " "), each.packets, each.bytes]
        for name, each in counts.items()
        if each.packets or each.bytes
    ]
    whole = _sum(list(counts.values()))
    return [*rows, [group, "in all", whole.packets, whole.bytes]]


def _sum(counts: list[Count]) -> Count:
    return Count(sum(each.packets for each in counts), sum(each.bytes for each in counts))
