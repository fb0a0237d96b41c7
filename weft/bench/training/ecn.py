"""7.1 ECN Marking Accuracy and Threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.variants import Changes
from weft.quantities.readable import format_size
from weft.quantities.units import PS_PER_S
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial, TrialRun

THRESHOLDS = {"low": 100_000, "medium": 1_000_000, "high": 5_000_000}
"""The draft's thresholds in bytes."""
_KMAX_OVER_KMIN = 2
PMAX = 0.5
"""Probability just below the upper threshold, which is twice the lower one."""
_SENDERS = 2
_STEADY = (0.25, 0.75)
"""Part of a trial in which the depth is sampled: before it the queue fills, behind it it empties."""
_DEPTHS = (0.5, 0.8, 0.95, 1.05, 1.25, 1.5, 1.75, 1.95, 2.1, 2.5)
"""Depths that are aimed at, as multiples of the lower threshold."""
_LEAST_QUEUES = 40.0
"""Length of a trial: the bytes of each sender, in depths of the queue."""


@dataclass(frozen=True)
class Point:
    """A trial: the depth of the queue while packets were counted, and the share of them that was marked."""

    depth_bytes: float
    marked: float
    packets: int


class EcnAccuracy(BenchTest):
    """Marks by the depth of a queue, held by fixed windows."""

    section = "7.1"
    name = "ecn-accuracy"
    title = "ECN Marking Accuracy and Threshold"
    objective = "Whether switches mark from the threshold on, with the probability that is configured."
    compares_transports = True
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        receiver = 0
        senders = setup.subject.senders_to(receiver, _SENDERS)
        if senders is None:
            raise NotApplicableError(f"it takes 3 endpoints; the fabric has {setup.subject.ranks}")
        memory_bytes = min(
            port.link.queue_capacity_bytes for switch in setup.subject.fabric.switches for port in switch.ports
        )
        possible = {name: each for name, each in THRESHOLDS.items() if _DEPTHS[-1] * each < memory_bytes}
        if not possible:
            raise NotApplicableError(
                f"a port's memory of {format_size(memory_bytes)} is below all of the draft's thresholds"
            )
        thresholds = setup.choose(smoke=dict(list(possible.items())[:1]), standard=possible, full=possible)
        depths = setup.choose(smoke=(0.8, 1.2, 1.6, 2.1), standard=_DEPTHS, full=_DEPTHS)
        port = _port_to(setup, receiver)
        keys = [(name, depth) for name in thresholds for depth in depths]
        runs = yield [_trial(setup, senders, receiver, thresholds[name], depth, port) for name, depth in keys]
        points = {key: _point(run, setup, port) for key, run in zip(keys, runs, strict=True)}
        found = {
            name: threshold_of([points[name, depth] for depth in depths if depth < _KMAX_OVER_KMIN])
            for name in thresholds
        }
        deviations = {
            name: 100 * abs(value - thresholds[name]) / thresholds[name]
            for name, value in found.items()
            if value is not None
        }
        return Measured(
            tables=[_table(points, thresholds), _threshold_table(points, thresholds, found)],
            curves=[_figure(name, threshold, points, depths) for name, threshold in thresholds.items()],
            kpis=[
                KpiValue("ECN Accuracy", deviation, f"threshold of {format_size(thresholds[name])}")
                for name, deviation in deviations.items()
            ],
            repeatability=[
                repeatability("deviation from the threshold", "%", list(deviations.values())),
            ]
            if deviations
            else [],
            scaled=[
                f"K_max is twice the threshold, P_max {PMAX}; two senders with fixed windows hold the queue at one of "
                f"{len(depths)} depths for each threshold",
                "the depth is the one that a packet leaves behind, sampled; a mark begins between two of these depths",
            ],
            anomalies=[
                *(
                    f"threshold {name} ({format_size(each)}): a port has {format_size(memory_bytes)}, too little for it"
                    for name, each in THRESHOLDS.items()
                    if name not in possible
                ),
                *_violations(points, thresholds),
            ],
        )


Key = tuple[str, float]


def _port_to(setup: Setup, receiver: int) -> str:
    """Return the name of the port that leads to a rank's first NIC."""
    fabric = setup.subject.fabric
    host = fabric.hosts[receiver]
    link = next(link for link in fabric.links if (link.a.node, link.a.port) == (host.name, host.nics[0].number))
    return str(link.b)


def _trial(setup: Setup, senders: list[int], receiver: int, threshold: int, depth: float, port: str) -> Trial:
    """Return a trial in which windows hold the queue before the receiver at a multiple of the threshold."""
    fabric, rate_bps = setup.subject.fabric, setup.subject.nic_rate_bps
    target_bytes = depth * threshold
    hops = (fabric.hops_between(setup.subject.edges[senders[0]], setup.subject.edges[receiver]) or 0) + 2
    delay_ps = max(link.link.delay_ps for link in fabric.links)
    mtu_bytes = setup.subject.spec.options.mtu_bytes
    # Without a queue this much is on the way and back; the rest of the windows waits before the receiver.
    serialised_ps = 8 * mtu_bytes * PS_PER_S // rate_bps
    idle_bytes = rate_bps * (2 * hops * delay_ps + hops * serialised_ps) // (8 * PS_PER_S)
    window_bytes = max(mtu_bytes, round((target_bytes + idle_bytes) / _SENDERS))
    size = math.ceil(_LEAST_QUEUES * max(target_bytes, idle_bytes))
    duration_ps = _SENDERS * size * 8 * PS_PER_S // rate_bps
    changes: Changes = {
        "int": False,
        "ecn": {"kmin": f"{threshold}B", "kmax": f"{_KMAX_OVER_KMIN * threshold}B", "pmax": PMAX},
        "transport": {
            "congestion_control": "fixed-window",
            "parameters": {"window": f"{window_bytes}B"},
            "ack_interval": 1,
        },
        "trimming": None,
    }
    # Windows that come one behind the other never fill the queue beyond what they hold it at.
    apart_ps = 8 * window_bytes * PS_PER_S // rate_bps
    return setup.trial(
        f"K_min {format_size(threshold)}, depth {format_size(target_bytes)}",
        [
            setup.flows(
                Flow(sender, receiver, size, start_ps=number * apart_ps) for number, sender in enumerate(senders)
            )
        ],
        changes,
        observe={"queues": [port], "interval": f"{max(1, duration_ps // 2000)}ps"},
    )


def _point(run: TrialRun, setup: Setup, port: str) -> Point:
    """Return the median depth after the queue has filled, and the share of all packets that was marked."""
    times, depths = run.run.integers("queues", "time_ps"), run.run.integers("queues", "queue_bytes")
    data = run.run.integers("queues", "priority_class") == 3
    times, depths = times[data], depths[data]
    end = int(times.max())
    # A series has a row where it changes; between rows it holds.
    grid = np.linspace(_STEADY[0] * end, _STEADY[1] * end, 400)
    held = depths[np.clip(np.searchsorted(times, grid, side="right") - 1, 0, None)]
    packets = sum(math.ceil(size / setup.subject.spec.options.mtu_bytes) for size in run.flows["size_bytes"].tolist())
    marked = sum(each.ecn_marked_packets for each in run.results.planes)
    return Point(float(np.median(held)), marked / packets, packets)


def expected_share(depth_bytes: float, threshold: int) -> float:
    """Return the configured probability of a mark at a depth."""
    if depth_bytes < threshold:
        return 0.0
    return 1.0 if depth_bytes > _KMAX_OVER_KMIN * threshold else PMAX * (depth_bytes - threshold) / threshold


def _table(points: dict[Key, Point], thresholds: dict[str, int]) -> ReportTable:
    rows: list[list[Cell]] = [
        [
            name,
            format_size(thresholds[name]),
            round(point.depth_bytes),
            point.packets,
            round(100 * point.marked, 2),
            round(100 * expected_share(point.depth_bytes, thresholds[name]), 2),
        ]
        for (name, _), point in points.items()
    ]
    columns = ["threshold", "K_min", "queue depth, median (B)", "packets", "marked (%)", "configured (%)"]
    return ReportTable("Marks by queue depth", columns, rows, "counted over whole trials, the filling queue included")


def threshold_of(points: Sequence[Point]) -> float | None:
    """Return the depth in bytes at which marks begin; None if fewer than two of the points have marks.

    It is where a line through the points with marks, all below K_max, meets 0: the packets that are counted while the
    queue fills and empties lower all shares alike, and so do not move it.
    """
    marked = [point for point in points if point.marked]
    if len(marked) < 2:
        return None
    slope, offset = np.polyfit([point.depth_bytes for point in marked], [point.marked for point in marked], 1)
    return float(-offset / slope)


def _threshold_table(
    points: dict[Key, Point], thresholds: dict[str, int], found: dict[str, float | None]
) -> ReportTable:
    rows: list[list[Cell]] = []
    for name, threshold in thresholds.items():
        free = [point.depth_bytes for (of, _), point in points.items() if of == name and not point.marked]
        measured = found[name]
        own: list[Cell] = (
            ["none", "none"]
            if measured is None
            else [round(measured), round(100 * (measured - threshold) / threshold, 1)]
        )
        rows.append([name, threshold, round(max(free, default=0.0)), *own])
    columns = ["threshold", "configured (B)", "no marks up to (B)", "measured (B)", "deviation (%)"]
    return ReportTable("Threshold accuracy", columns, rows, "measured: where a line through the shares meets 0")


def _figure(name: str, threshold: int, points: dict[Key, Point], depths: tuple[float, ...]) -> CurveFigure:
    measured = sorted((points[name, depth] for depth in depths), key=lambda point: point.depth_bytes)
    configured = [0.0, threshold, 2 * threshold, 2 * threshold, 2.6 * threshold]
    return CurveFigure(
        f"Marking probability by queue depth, threshold {name} ({format_size(threshold)})",
        Axis("queue depth (B)", "B"),
        Axis("marked (%)", "%"),
        [
            curve("measured", [each.depth_bytes for each in measured], [100 * each.marked for each in measured]),
            curve("configured", configured, [0.0, 0.0, 100 * PMAX, 100.0, 100.0]),
        ],
    )


def _violations(points: dict[Key, Point], thresholds: dict[str, int]) -> list[str]:
    found = []
    for (name, _), point in points.items():
        threshold = thresholds[name]
        if point.depth_bytes < 0.9 * threshold and point.marked:
            found.append(f"{name}: {point.marked:.2%} marked at {format_size(point.depth_bytes)}, below the threshold")
        if point.depth_bytes > 2.05 * threshold and point.marked < 0.8:
            found.append(f"{name}: only {point.marked:.2%} marked at {format_size(point.depth_bytes)}, above K_max")
    return found
