"""TCP flows: when each ended, what it had to send again, and what it saw of marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_MS
from weft.results.columns import Column, ResultTable, grouped
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind
from weft.results.report_parts import MOST_ROWS, Axis, Curve, CurveFigure, ReportPart
from weft.topologies import FabricSpec

_BITS_PER_MBIT = 1e6


@dataclass(frozen=True)
class TcpFlowResult:
    """One connection."""

    source: str
    """Name of the host that sends."""
    destination: str
    """Name of the host that receives."""
    congestion_control: str
    """Congestion control of the sender."""
    start_ps: int
    """After the start of the run."""
    completion_ps: int
    """From there to the last acknowledgement, handshake and FIN included."""
    bytes: int
    """Delivered."""
    goodput_bps: int
    """Goodput: these bytes over the completion time."""
    sent_segments: int
    """With data, SYN or FIN, those sent again included."""
    retransmitted_segments: int
    """Sent again."""
    timeouts: int
    """Retransmission timeouts."""
    fast_recoveries: int
    """Losses that acknowledgements showed."""
    ecn_reductions: int
    """Reductions of the window because of marks."""
    tail_probes: int
    """Segments sent because nothing was answered (RFC 8985, section 7)."""
    spurious_segments: int
    """Segments that the receiver reported twice (RFC 2883): most retransmissions of them were in vain."""
    marked_segments: int
    """Received with data that a switch had marked (CE)."""
    out_of_order_segments: int
    """Received before others that had been sent earlier, or instead of lost ones."""
    duplicate_segments: int
    """Received with nothing new."""
    echo_share: float
    """Share of the acknowledgements that reported a mark (ECE)."""
    marked_share: float
    """Share of the segments received that a switch had marked (CE)."""
    smoothed_round_trip_ps: int
    """As the sender saw it at the end."""


@dataclass(frozen=True)
class TcpWindows:
    """Columns of senders' windows over time, if they are sampled."""

    flow: tuple[int, ...]
    """Its place in the list of flows."""
    time_ps: tuple[int, ...]
    """After the start of the run."""
    window_bytes: tuple[int, ...]
    """The congestion window."""
    in_flight_bytes: tuple[int, ...]
    """Sent and not acknowledged."""
    marked_share: tuple[float, ...]
    """DCTCP's alpha; 0 of others."""


@dataclass(frozen=True)
class TcpResult(ItemResult):
    """Concurrent TCP flows."""

    flows: tuple[TcpFlowResult, ...]
    """In the order of the scenario."""
    windows: TcpWindows
    """Windows of all senders."""
    bytes: int
    """Delivered by all flows."""
    time_ps: int
    """From the first flow's start to the last acknowledgement."""
    goodput_bps: int
    """Goodput of all flows in this time."""
    retransmitted_segments: int
    """Segments that all flows sent again."""
    timeouts: int
    """Timeouts of all flows."""
    marked_share: float
    """Share of all flows' segments with marks."""
    fairness: float
    """Jain's index of the flows' goodputs: 1 if all are equal, 1/n if one has all."""
    spoilt_segments: int
    """Segments that arrived with other bytes than were sent: 0 unless something is wrong."""

    @property
    def ok(self) -> bool:
        """Whether all bytes were those that were sent."""
        return self.spoilt_segments == 0


def _in_ms(title: str, value: str) -> Column[TcpFlowResult]:
    return Column(title, value, unit="ms", scale=PS_PER_MS, digits=3)


_GOODPUT = Column[Any]("goodput", "goodput_bps", unit="Mb/s", scale=_BITS_PER_MBIT, digits=1)
_FLOWS = ResultTable[TcpFlowResult](
    "TCP flows",
    (
        Column("flow", lambda each: f"{each.source} → {each.destination}", is_name=True),
        Column("control", "congestion_control", is_name=True),
        _in_ms("start", "start_ps"),
        _in_ms("completion", "completion_ps"),
        Column("bytes", "bytes"),
        _GOODPUT,
        Column("resent", "retransmitted_segments"),
        Column("timeouts", "timeouts"),
        Column("ECE", lambda each: 100 * each.echo_share, unit="%", digits=1),
        Column("CE", lambda each: 100 * each.marked_share, unit="%", digits=1),
        _in_ms("RTT", "smoothed_round_trip_ps"),
    ),
    layout=Layout(is_narrow=True),
    shown=grouped,
    most_printed=MOST_ROWS,
    most=MOST_ROWS,
    which="the first ones",
)


def _summary(result: TcpResult) -> str:
    return (
        f"{counted(len(result.flows), 'TCP flow')}, {result.bytes:,} B in {result.time_ps / PS_PER_MS:.3f} ms, "
        f"{result.goodput_bps / _BITS_PER_MBIT:,.1f} Mb/s, fairness {result.fairness:.3f}"
    )


def print_tcp(console: Console, results: Sequence[TcpResult]) -> None:
    """Print a row for each flow."""
    for result in results:
        _FLOWS.print(console, result.flows, f"[bold]{_summary(result)}[/bold]")


def report_tcp(results: Sequence[TcpResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return a table of flows for each, and their windows over time."""
    for result in results:
        yield _FLOWS.part(result.flows, _summary(result))
        yield CurveFigure(
            "TCP: congestion windows",
            Axis("emulated time (ms)", "ms"),
            Axis("window (kB)", "kB"),
            list(_window_curves(result)),
        )


def _window_curves(result: TcpResult) -> Iterator[Curve]:
    windows = result.windows
    points: dict[int, tuple[list[float], list[float]]] = {}
    for flow, time_ps, window_bytes in zip(windows.flow, windows.time_ps, windows.window_bytes, strict=True):
        x, y = points.setdefault(flow, ([], []))
        x.append(time_ps / PS_PER_MS)
        y.append(window_bytes / 1e3)
    for flow, (x, y) in sorted(points.items())[:MOST_ROWS]:
        each = result.flows[flow]
        yield Curve(f"{flow}: {each.source} → {each.destination} ({each.congestion_control})", x, y)


def _problems(result: TcpResult) -> Iterator[tuple[str, str]]:
    columns = vars(result.windows)
    for name, column in columns.items():
        if len(column) != len(result.windows.flow):
            yield f"windows.{name}", f"has {len(column)} values; there are {len(result.windows.flow)} samples"
    for flow in result.windows.flow:
        if not 0 <= flow < len(result.flows):
            yield "windows.flow", f"names flow {flow} (valid: 0 to {len(result.flows) - 1})"
            return


TCP = ResultKind(
    key="tcp",
    meaning="One for each item of TCP flows.",
    model=TcpResult,
    is_checked=lambda each: each.bytes > 0,
    show=print_tcp,
    order=3,
    report=report_tcp,
    problems=_problems,
    name="bytes",
    labels=("bytes",),
    columns=(
        replace(_GOODPUT, sweep={"more_is_better": True}),
        Column("fairness", "fairness", digits=3, sweep={"more_is_better": True}),
        Column("resent", "retransmitted_segments", unit="segments", sweep={}),
    ),
)
