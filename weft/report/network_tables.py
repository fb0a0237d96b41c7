"""Tables of a page on the network: links, memory, flow control, drops and packet conservation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.quantities.readable import format_rate, format_time
from weft.report.run_directory import RunDirectory
from weft.results.controller_events import controller_events_table
from weft.results.link_events import LinkEventResult, Lost
from weft.results.packet_conservation import Count
from weft.results.report_parts import MOST_ROWS, Cell, ReportTable, shown_of


@dataclass
class _Pauses:
    count: int = 0
    total_ps: int = 0
    longest_ps: int = 0


def link_events(run: RunDirectory) -> ReportTable:
    """Links that failed and came back: when, when that was detected, and what was lost."""
    events = run.results.link_events
    rows: list[list[Cell]] = [
        [
            each.link,
            each.state,
            "start" if each.at_ps is None else format_time(each.at_ps),
            _at(each.happened_ps),
            *(
                _since(each, when)
                for when in (
                    each.detected_ps,
                    each.reprogrammed_ps,
                    each.last_loss_ps,
                    each.first_recovery_ps,
                    each.last_recovery_ps,
                )
            ),
            *(_packets(lost) for lost in (each.in_flight, each.queued, each.refused)),
            each.switches_written,
            each.entries_written,
            len(each.rebuilt_jobs),
            len(each.lost_jobs),
            _since(each, each.resumed_ps),
            each.repeated_messages,
        ]
        for each in events[:MOST_ROWS]
    ]
    columns = [
        "link", "became", "asked for at", "happened at (µs)", "detected after", "tables after", "last loss after",
        "first sent again arrived after", "last sent again arrived after",
        "lost in flight", "lost in queues", "refused while down", "switches written", "entries written",
        "trees rebuilt", "jobs lost", "reductions went on after", "messages sent again",
    ]  # fmt: skip
    note = "losses in packets; times after the event itself. " + shown_of(len(rows), len(events), "the first")
    return ReportTable("Links that failed or came back", columns, rows, note.strip())


def controller_events(run: RunDirectory) -> ReportTable | None:
    """What the controller saw and did."""
    return controller_events_table(run.results.controller_events)


def _at(time_ps: int | None) -> Cell:
    return "not in this run" if time_ps is None else round(time_ps / 1e6, 3)


def _since(event: LinkEventResult, when_ps: int | None) -> str:
    if when_ps is None or event.happened_ps is None:
        return "–"
    return format_time(when_ps - event.happened_ps)


def _packets(lost: Lost | None) -> Cell:
    return "–" if lost is None else lost.packets


def _known(value: int | None) -> Cell:
    return "" if value is None else value


def planes(run: RunDirectory) -> ReportTable:
    """Counters of the planes."""
    rows: list[list[Cell]] = [
        [
            each.plane,
            each.ecn_marked_packets,
            _known(each.largest_queue_bytes),
            each.largest_queue_port,
            each.packets_aggregated,
            _known(each.tail_drops),
            _known(each.injected_losses),
            _known(each.corrupted_packets),
        ]
        for each in run.results.planes
    ]
    columns = [
        "plane", "ECN marks", "largest queue (B)", "at", "packets aggregated", "tail drops", "lost by fault",
        "corrupted",
    ]  # fmt: skip
    return ReportTable("Planes", columns, rows)


def memory(run: RunDirectory) -> ReportTable:
    """Switches' shared memory and what PFC did, by plane."""
    rows: list[list[Cell]] = [
        [
            each.plane,
            each.largest_buffer_bytes,
            each.largest_buffer_switch,
            each.threshold_drops,
            each.headroom_drops,
            each.largest_headroom_bytes,
            each.pauses_sent,
            each.resumes_sent,
            format_time(each.paused_ps),
            format_time(each.longest_pause_ps),
            each.longest_pause_port or "–",
        ]
        for each in run.results.memory
    ]
    columns = [
        "plane", "largest buffer (B)", "at", "threshold drops", "headroom drops", "largest headroom (B)",
        "pause frames", "resume frames", "paused in all", "longest of a class", "at",
    ]  # fmt: skip
    return ReportTable("Switch memory and PFC", columns, rows)


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


def credits(run: RunDirectory) -> ReportTable:
    """Waits for credits, by plane."""
    rows: list[list[Cell]] = [
        [
            each.plane,
            each.updates_sent,
            each.stalls,
            format_time(each.stalled_ps),
            format_time(each.longest_stall_ps),
            each.longest_stall_port,
            each.largest_buffer_bytes,
        ]
        for each in run.results.credits
    ]
    columns = [
        "plane", "updates", "stalls", "stalled in all", "longest of a lane", "at", "largest buffer (B)",
    ]  # fmt: skip
    return ReportTable("Credits", columns, rows)


def link_faults(run: RunDirectory) -> ReportTable:
    """Links by what faults dropped on them."""
    struck = run.results.link_faults
    worst = sorted(struck, key=lambda each: -each.dropped_packets)[:MOST_ROWS]
    rows: list[list[Cell]] = [
        [each.link, each.lost_packets, each.corrupted_packets, each.duplicated_packets, each.delayed_packets]
        for each in worst
    ]
    note = shown_of(len(rows), len(struck), "those that dropped most")
    columns = ["link", "lost", "corrupted", "duplicated", "delayed"]
    return ReportTable("Packets hit by faults of links", columns, rows, note)


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


def loads(run: RunDirectory) -> ReportTable:
    """What links between tiers carried of each kind of traffic, as shares of what they could have carried."""
    found = run.results.link_loads
    kinds = list(dict.fromkeys(each.kind for each in found))
    rows: list[list[Cell]] = []
    for links in dict.fromkeys(each.links for each in found):
        of_kind = {each.kind: each for each in found if each.links == links}
        shares = [of_kind[kind].share if kind in of_kind else 0.0 for kind in kinds]
        rows.append([links, *(_share(each) if each else "" for each in shares), _share(sum(shares))])
    note = "of what links could have carried while traffic ran, headers included"
    return ReportTable("Load of links by kind of traffic", ["links", *kinds, "all"], rows, note)


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


def program_counters(run: RunDirectory) -> ReportTable:
    """Counters of the P4 program that the run kept."""
    cells = run.results.counters
    rows: list[list[Cell]] = [
        [each.switch, each.counter, each.entry or each.index, each.packets, each.bytes]
        for each in cells[:MOST_ROWS]
    ]
    note = shown_of(len(rows), len(cells), "the first; counters.csv has all")
    return ReportTable(
        "Counters of the program", ["switch", "counter", "index or entry", "packets", "bytes"], rows, note
    )


def program_registers(run: RunDirectory) -> ReportTable:
    """Registers of the P4 program that the run kept; values as texts, for they may be wide."""
    cells = run.results.registers
    rows: list[list[Cell]] = [
        [each.switch, each.register, each.index, str(each.value)] for each in cells[:MOST_ROWS]
    ]
    note = shown_of(len(rows), len(cells), "the first; registers.csv has all")
    return ReportTable("Registers of the program", ["switch", "register", "index", "value"], rows, note)


def _sum(counts: list[Count]) -> Count:
    return Count(sum(each.packets for each in counts), sum(each.bytes for each in counts))


def int_path(run: RunDirectory) -> ReportTable | None:
    """INT's last view of a path."""
    if not run.results.int_paths:
        return None
    path = run.results.int_paths[0]
    rows: list[list[Cell]] = [
        [hop.hop, hop.switch, format_rate(hop.rate_bps), hop.queue_bytes, hop.timestamp_ns, hop.tx_bytes]
        for hop in path.hops
    ]
    return ReportTable(
        f"INT {path.source} → {path.destination}, plane {path.plane}",
        ["hop", "switch", "rate", "queue (B)", "timestamp (ns mod 2²⁴)", "sent (B mod 2²⁷)"],
        rows,
        "the newest acknowledgement's" + (f"; {path.why_unknown}" if path.why_unknown else ""),
    )
