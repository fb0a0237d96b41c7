"""Tables of a page on the network that need the tables of a run, or several keys of its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from weft.quantities.readable import format_rate, format_time
from weft.report.run_directory import RunDirectory
from weft.results.drops import DropResult
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


def recorded_drops(run: RunDirectory) -> list[DropResult] | None:
    """Return the table `drops` by place and reason, in order of their first packets; None if it was not recorded."""
    if "drops" not in run.tables:
        return None
    counted: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    times = run.integers("drops", "time_ps").tolist()
    keys = zip(run.texts("drops", "place"), run.texts("drops", "reason"), times, strict=True)
    for place, reason, time_ps in keys:
        counted[place, reason] += 1
        first.setdefault((place, reason), time_ps)
    return [DropResult(*key, count, first[key]) for key, count in counted.items()]
