"""Links inside hosts: what crossed them, and for how much of the traffic's time they were busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_rate, format_size, format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS, ReportPart
from weft.topologies import FabricSpec
from weft.traffic.host_stats import HostStats

_MOST_SHOWN = 8
BUSY = 0.9
"""From this share of the traffic's time on, a link inside a host bounds the run."""


@dataclass(frozen=True)
class HostLinkResult(PlainData):
    """One direction of a link inside hosts, or a memory, over all hosts and the whole run."""

    link: str
    """From where to where in a host, or the memory."""
    rate_bps: int
    """Its rate."""
    hosts: int
    """Hosts in which payload crossed it."""
    crossed_bytes: int
    """Payload that crossed it, in all hosts."""
    busiest_host: str
    """The host in which it was busy for longest, by its first rank's endpoint."""
    busy_share: float
    """Share of the traffic's time for which it was busy there."""
    mean_busy_share: float
    """The same, on average over these hosts."""
    mean_wait_ps: float
    """Mean time for which a packet waited until others had crossed it."""
    most_waiting_bytes: int
    """Most received payload that waited at once in a NIC of the busiest host for its links."""


def host_link_results(endpoints: Sequence[HostStats], traffic_ps: int) -> list[HostLinkResult]:
    """Return every link that payload crossed, in the order of the host's description."""
    used: dict[str, list[tuple[HostStats, Mapping[str, Any]]]] = {}
    for each in endpoints:
        for link in each["links"]:
            if link["packets"]:
                used.setdefault(link["name"], []).append((each, link))
    waiting = _waiting_by_host(endpoints)
    return [_result(name, found, traffic_ps, waiting) for name, found in used.items()]


def _waiting_by_host(endpoints: Sequence[HostStats]) -> dict[str, int]:
    """Return the most payload that waited in any NIC of a host, by its first rank: ranks are in its order."""
    found: dict[str, int] = {}
    for each in endpoints:
        if each["most_waiting_bytes"]:
            found[each["host"]] = max(found.get(each["host"], 0), *each["most_waiting_bytes"])
    return found


def _result(
    name: str, found: Sequence[tuple[HostStats, Mapping[str, Any]]], traffic_ps: int, waiting: Mapping[str, int]
) -> HostLinkResult:
    host, busiest = max(found, key=lambda each: each[1]["busy_ps"])
    packets = sum(link["packets"] for _, link in found)
    time_ps = max(1, traffic_ps)
    return HostLinkResult(
        link=name,
        rate_bps=busiest["rate_bps"],
        hosts=len(found),
        crossed_bytes=sum(link["bytes"] for _, link in found),
        busiest_host=host["name"],
        busy_share=busiest["busy_ps"] / time_ps,
        mean_busy_share=sum(link["busy_ps"] for _, link in found) / len(found) / time_ps,
        mean_wait_ps=sum(link["waited_ps"] for _, link in found) / packets,
        most_waiting_bytes=waiting.get(host["name"], 0),
    )


def host_link_warnings(results: Sequence[HostLinkResult]) -> list[str]:
    """Return a sentence on the busiest link if it bounds the run."""
    busy = _busiest_first([each for each in results if each.busy_share >= BUSY])
    if not busy:
        return []
    first = busy[0]
    more = f", one of {len(busy)} such links" if len(busy) > 1 else ""
    return [
        f"{first.link} ({format_rate(first.rate_bps)}) inside {first.busiest_host} was busy for "
        f"{100 * first.busy_share:.0f} % of the traffic's time{more}: hosts bound the run, not the network"
    ]


def _busiest_first(results: Sequence[HostLinkResult]) -> list[HostLinkResult]:
    return sorted(results, key=lambda each: -each.busy_share)


_TABLE = ResultTable[HostLinkResult](
    "Links inside hosts",
    (
        Column("link", "link", is_name=True),
        Column("rate", "rate_bps", form=format_rate),
        Column("payload", "crossed_bytes", form=format_size),
        Column("busiest\nhost", "busiest_host"),
        Column("busy\nthere", lambda each: 100 * each.busy_share, form="{:.1f} %".format),
        Column("busy\n(mean)", lambda each: 100 * each.mean_busy_share, form="{:.1f} %".format),
        Column("wait\n(mean)", "mean_wait_ps", form=format_time),
        Column("most waiting\nin a NIC", "most_waiting_bytes", form=format_size),
    ),
    most=MOST_ROWS,
    which="the busiest",
)


def _show(console: Console, results: Sequence[HostLinkResult]) -> None:
    busiest = _busiest_first(results)[:_MOST_SHOWN]
    more = f" ({len(busiest)} of {len(results)})" if len(busiest) < len(results) else ""
    _TABLE.print(console, busiest, f"[bold]links inside hosts{more}[/bold]")


def _report(results: Sequence[HostLinkResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield _TABLE.part(_busiest_first(results))


HOST_LINKS = ResultKind(key="host_links", model=HostLinkResult, tables=(_TABLE,), show=_show, report=_report)
