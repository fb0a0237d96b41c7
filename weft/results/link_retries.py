"""Frames that links with retry have sent again, from the counters of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.link_faults import counters_of_directions
from weft.results.report_parts import MOST_ROWS, ReportPart
from weft.switch.daemon.stats import SwitchesStats
from weft.topologies import FabricSpec

_MOST_SHOWN = 16


@dataclass(frozen=True)
class LinkRetryResult(PlainData):
    """One direction of a link with retry on which something was sent again or waited, over the whole run."""

    link: str
    """`SENDER->RECEIVER`."""
    lost_packets: int
    """Frames that did not arrive, or with a wrong bit, and were kept to be sent again; each time that they did not."""
    nacks: int
    """NACKs of the far end."""
    lost_messages: int
    """NACKs that did not arrive whole."""
    timeouts: int
    """How often the replay timer ran out."""
    replays: int
    """How often the port began to send again."""
    replayed_packets: int
    """Frames sent again, from the lost one on; each time that they were."""
    replayed_bytes: int
    """Their bytes."""
    replaying_ps: int
    """For how long the port sent frames again."""
    waiting_ps: int
    """For how long the port waited because the buffer was full."""
    largest_buffer_bytes: int
    """Most that waited for an acknowledgement."""
    given_up_packets: int
    """Frames that the link has given up; `link_faults` and `drops` count them as lost."""


def link_retry_results(fabric: FabricSpec, switch_stats: SwitchesStats | None) -> list[LinkRetryResult]:
    """Return every direction with retry on which something was sent again or waited, in the fabric's order."""
    if switch_stats is None:
        return []
    results = (
        LinkRetryResult(
            link=name,
            lost_packets=stats["lost_packets"],
            nacks=stats["nacks"],
            lost_messages=stats["lost_messages"],
            timeouts=stats["timeouts"],
            replays=stats["replays"],
            replayed_packets=stats["replayed"]["packets"],
            replayed_bytes=stats["replayed"]["bytes"],
            replaying_ps=stats["replaying_ps"],
            waiting_ps=stats["waiting_ps"],
            largest_buffer_bytes=stats["largest_buffer_bytes"],
            given_up_packets=stats["given_up"]["packets"],
        )
        for name, stats in counters_of_directions(fabric, switch_stats, "retry", "uplink_retry")
    )
    return [each for each in results if each.lost_packets or each.replays or each.waiting_ps]


_TABLE = ResultTable[LinkRetryResult](
    "Link-level retry",
    (
        Column("link", "link", is_name=True),
        Column("lost", "lost_packets"),
        Column("NACKs", "nacks"),
        Column("timeouts", "timeouts"),
        Column("replays", "replays"),
        Column("sent\nagain", "replayed_packets"),
        Column("for", "replaying_ps", form=format_time),
        Column("waited", "waiting_ps", form=format_time),
        Column("largest\nbuffer", "largest_buffer_bytes", unit="B"),
        Column("given up", "given_up_packets"),
    ),
    most=MOST_ROWS,
    which="those that lost most",
)


def _worst_first(results: Sequence[LinkRetryResult]) -> list[LinkRetryResult]:
    return sorted(results, key=lambda each: -each.lost_packets)


def _show(console: Console, results: Sequence[LinkRetryResult]) -> None:
    worst = _worst_first(results)[:_MOST_SHOWN]
    more = f" ({len(worst)} of {len(results)} links)" if len(worst) < len(results) else ""
    _TABLE.print(console, worst, f"[bold]link-level retry{more}[/bold] (frames)")


def _report(results: Sequence[LinkRetryResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield _TABLE.part(_worst_first(results))


LINK_RETRIES = ResultKind(key="link_retries", model=LinkRetryResult, tables=(_TABLE,), show=_show, report=_report)
