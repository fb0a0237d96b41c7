"""The sweep of sizes, accelerators and ways of balancing load that each collective's test makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.bench.collectives import TITLES, Bandwidth, bandwidth_of, collective_trial, counts_of, require_two_hosts
from weft.bench.figures import curve
from weft.bench.measures import health_of, repeatability
from weft.bench.model import Health, KpiValue, Measured
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.variants import LOAD_BALANCING, Variant
from weft.quantities.readable import format_size
from weft.quantities.units import GIB, MIB, PS_PER_MS
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import InvalidTrialError, Procedure, TrialRun

SIZES = (MIB, 8 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB)
STRATEGIES = ("ecmp", "flowlet", "spray")
"""The draft's ways of balancing load."""


@dataclass(frozen=True)
class _Point:
    """A collective of a size on some accelerators under a strategy."""

    strategy: str
    size_bytes: int
    count: int


def collective_sweep(setup: Setup, collective: str, kpi: str, *, of_time: bool = False) -> Procedure[Measured]:
    """Return what the trials of a collective's test found; `kpi` is a bandwidth, or with `of_time` a time."""
    require_two_hosts(setup)
    counts = counts_of(setup)
    sizes = setup.choose(smoke=(MIB,), standard=SIZES[:3], full=SIZES)
    counts = setup.choose(smoke=counts[-1:], standard=counts, full=counts)
    repetitions = setup.choose(smoke=2, standard=4, full=20)
    seeds = setup.choose(smoke=1, standard=2, full=5)
    found: dict[_Point, Bandwidth] = {}
    health: dict[str, Health] = {}
    refused: list[str] = []
    for strategy in STRATEGIES:
        try:
            under = setup.under(Variant(setup.variant.transport, strategy))
            points = [_Point(strategy, size, count) for size in sizes for count in counts]
            runs: Sequence[TrialRun] = yield [
                collective_trial(under, collective, point.size_bytes, point.count, repetitions, seed)
                for point in points
                for seed in range(seeds)
            ]
        except (NotApplicableError, InvalidTrialError) as error:
            refused.append(f"{LOAD_BALANCING[strategy].title}: not applicable: {error}")
            continue
        health[strategy] = health_of(runs)
        for place, point in enumerate(points):
            found[point] = bandwidth_of(runs[place * seeds : (place + 1) * seeds])
    if not found:
        raise NotApplicableError("; ".join(refused))
    largest = max(found, key=lambda point: (point.count, point.size_bytes))
    title = TITLES[collective]
    condition = (
        f"{format_size(largest.size_bytes)}, {largest.count} accelerators, {LOAD_BALANCING[largest.strategy].title}"
    )
    primary = found[largest]
    values = [time / 1e12 for time in primary.times_ps] if of_time else [_gbps(primary, t) for t in primary.times_ps]
    unit = "s" if of_time else "Gbps"
    return Measured(
        tables=[_table(title, found), _health_table(health)],
        curves=[_curves(title, found, count) for count in dict.fromkeys(point.count for point in found)][-2:],
        kpis=[KpiValue(kpi, primary.mean_s if of_time else primary.mean_gbps, condition)],
        repeatability=[repeatability(f"{'time' if of_time else 'BusBW'}, {condition}", unit, values)],
        scaled=[
            f"{repetitions * seeds} iterations in place of 100, with {seeds} seeds; up to {format_size(sizes[-1])}",
            "accelerators are whole hosts, spread over all leaf switches",
        ],
        anomalies=refused,
    )


def _gbps(bandwidth: Bandwidth, time_ps: int) -> float:
    return bandwidth.mean_gbps * bandwidth.mean_s * 1e12 / time_ps


def _table(title: str, found: dict[_Point, Bandwidth]) -> ReportTable:
    rows: list[list[Cell]] = [
        [
            LOAD_BALANCING[point.strategy].title,
            format_size(point.size_bytes),
            point.count,
            round(each.mean_s * 1e3, 4),
            round(each.mean_gbps, 2),
            *(round(value, 2) for value in each.percentiles_gbps),
        ]
        for point, each in found.items()
    ]
    columns = ["load balancing", "size", "accelerators", "JCT of an iteration (ms)"]
    columns += ["BusBW, mean (Gbps)", "P50", "P95", "P99"]
    return ReportTable(f"{title}: BusBW", columns, rows, "P95: what 95 % of the iterations reach at least")


def _health_table(health: dict[str, Health]) -> ReportTable:
    rows: list[list[Cell]] = [
        [
            LOAD_BALANCING[strategy].title,
            round(100 * each.ecn_marked_packets / max(1, each.packets), 3),
            each.pfc_pauses,
            round(each.paused_ps / PS_PER_MS, 4),
            each.dropped_packets,
            each.retransmitted_packets,
            each.out_of_sequence_packets,
        ]
        for strategy, each in health.items()
    ]
    columns = ["load balancing", "ECN ratio (%)", "PFC pauses", "paused (ms)", "dropped", "sent again", "out of order"]
    return ReportTable("Fabric health", columns, rows)


def _curves(title: str, found: dict[_Point, Bandwidth], count: int) -> CurveFigure:
    strategies = dict.fromkeys(point.strategy for point in found)
    return CurveFigure(
        f"{title} on {count} accelerators",
        Axis("size (B)", "B", "log"),
        Axis("BusBW (Gbps)", "Gbps"),
        [
            curve(
                LOAD_BALANCING[strategy].title,
                *zip(
                    *(
                        (point.size_bytes, each.mean_gbps)
                        for point, each in found.items()
                        if point.strategy == strategy and point.count == count
                    ),
                    strict=True,
                ),
            )
            for strategy in strategies
        ],
    )
