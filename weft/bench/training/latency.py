"""5.2 Latency Characterization."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from weft.bench.latencies import HEADINGS, OBSERVED, Latency, latency_of, one_way_ps, round_trips_ps
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.streams import Stream, throughputs
from weft.bench.training.throughput import directions_of
from weft.quantities.readable import format_size
from weft.quantities.units import KIB, MIB, PS_PER_US
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

_SPACING_PS = 200 * PS_PER_US
"""Between messages of the unloaded fabric, so that each has it to itself."""
_BINS = 16


class LatencyCharacterization(BenchTest):
    """Latency of messages, on the idle fabric and at the throughput rate."""

    section = "5.2"
    name = "latency"
    title = "Latency Characterization"
    objective = "One-way and round-trip latency of RDMA WRITEs, unloaded and at the throughput rate of 5.1."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        sizes = setup.choose(
            smoke=(4 * KIB,), standard=(4 * KIB, 64 * KIB, MIB), full=(64, 256, KIB, 4 * KIB, 64 * KIB, MIB)
        )
        iterations = setup.choose(smoke=1, standard=3, full=20)
        trial_ps = setup.choose(smoke=50, standard=200, full=2000) * PS_PER_US
        resolution = setup.choose(smoke=0.1, standard=0.05, full=0.02)
        pairs = directions_of(setup)["bidirectional"]
        streams = [Stream(pairs, size) for size in sizes]
        # Each seed has other hash collisions, and so another throughput rate.
        loads: dict[tuple[int, int], float] = {}
        for number in range(iterations):
            found = yield from throughputs(setup, streams, trial_ps, resolution, iteration=number)
            loads |= {(stream.message_bytes, number): each.load for stream, each in zip(streams, found, strict=True)}
        source, destination = setup.subject.remote_pair()
        messages = setup.choose(smoke=5, standard=20, full=100)

        def unloaded(size: int, iteration: int) -> Trial:
            flows = [
                flow
                for number in range(messages)
                for flow in setup.transfer(source, destination, size, number * _SPACING_PS)[:1]
            ]
            return setup.trial(f"{size} B, unloaded", [setup.flows(flows)], iteration=iteration, observe=OBSERVED)

        def loaded(size: int, iteration: int) -> Trial:
            flows = Stream(pairs, size).flows(setup, loads[size, iteration], trial_ps)
            return setup.trial(f"{size} B, loaded", [setup.flows(flows)], iteration=iteration, observe=OBSERVED)

        wanted = [
            (size, condition, number)
            for size in sizes
            for condition in ("unloaded", "loaded")
            for number in range(iterations)
            if condition == "unloaded" or loads[size, number]
        ]
        made = {"unloaded": unloaded, "loaded": loaded}
        runs = yield [made[condition](size, number) for size, condition, number in wanted]
        by_condition: dict[tuple[int, str], list[TrialRun]] = {}
        for (size, condition, _), run in zip(wanted, runs, strict=True):
            by_condition.setdefault((size, condition), []).append(run)
        latencies = {
            (size, condition, way): latency_of([measure(run) for run in found_runs])
            for (size, condition), found_runs in by_condition.items()
            for way, measure in (("one-way", one_way_ps), ("round trip", round_trips_ps))
        }
        latencies = {key: each for key, each in latencies.items() if len(each.times_ps)}
        primary = (sizes[-1], "loaded" if (sizes[-1], "loaded") in by_condition else "unloaded")
        tails = [float(np.percentile(round_trips_ps(run), 99)) / PS_PER_US for run in by_condition[primary]]
        return Measured(
            tables=[_table(latencies), _factors(latencies, sizes)],
            curves=[*(_distribution(latencies, size) for size in sizes), _histogram(latencies, sizes[-1])],
            kpis=[
                KpiValue("Latency (P99)", each.percentile_us(99), f"{format_size(size)}, {condition}, {way}")
                for (size, condition, way), each in latencies.items()
            ],
            repeatability=[repeatability(f"P99 round trip, {format_size(primary[0])}, {primary[1]}", "us", tails)],
            scaled=[
                f"all messages of a trial of {trial_ps // PS_PER_US} us are measured, not frames tagged 60 s into "
                f"120 s; {iterations} iterations in place of 20",
                "times are exact: both ends share the emulated clock; the throughput rate is searched for each seed",
            ],
            anomalies=[
                f"{format_size(size)}: seed {setup.seed + number} sustains no load"
                for (size, number), load in loads.items()
                if not load
            ],
        )


Latencies = dict[tuple[int, str, str], Latency]


def _table(latencies: Latencies) -> ReportTable:
    rows: list[list[Cell]] = [
        [format_size(size), condition, way, len(each.times_ps), *each.row]
        for (size, condition, way), each in latencies.items()
    ]
    return ReportTable("Latency (us)", ["message", "condition", "way", "messages", *HEADINGS], rows)


def _factors(latencies: Latencies, sizes: tuple[int, ...]) -> ReportTable:
    rows: list[list[Cell]] = []
    for size in sizes:
        for way in ("one-way", "round trip"):
            loaded, unloaded = latencies.get((size, "loaded", way)), latencies.get((size, "unloaded", way))
            if loaded is not None and unloaded is not None:
                rows.append(
                    [
                        format_size(size),
                        way,
                        *(round(loaded.percentile_us(each) / unloaded.percentile_us(each), 2) for each in (50, 99)),
                    ]
                )
    return ReportTable("Latency increase factor (loaded over unloaded)", ["message", "way", "P50", "P99"], rows)


def _distribution(latencies: Latencies, size: int) -> CurveFigure:
    return CurveFigure(
        f"Latency of {format_size(size)} messages: cumulative distribution",
        Axis("latency (us)", "us", "log"),
        Axis("messages (%)", "%"),
        [
            each.distribution(f"{condition}, {way}")
            for (of_size, condition, way), each in latencies.items()
            if of_size == size
        ],
    )


def _histogram(latencies: Latencies, size: int) -> CurveFigure:
    conditions = {
        condition: each
        for (of_size, condition, way), each in latencies.items()
        if (of_size, way) == (size, "round trip")
    }
    longest = max(float(each.times_ps[-1]) for each in conditions.values()) / PS_PER_US
    edges = np.linspace(0.0, longest * 1.0001, _BINS + 1)
    bins = [f"{begin:.1f} to {end:.1f}" for begin, end in pairwise(edges)]
    return CurveFigure(
        f"Round trips of {format_size(size)} messages: histogram",
        Axis("latency (us)", "us", "category"),
        Axis("messages (%)", "%"),
        [
            Curve(
                condition,
                bins,
                (100 * np.histogram(each.times_ps / PS_PER_US, edges)[0] / len(each.times_ps)).tolist(),
            )
            for condition, each in conditions.items()
        ],
    )
