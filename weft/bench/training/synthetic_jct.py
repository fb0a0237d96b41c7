"""10.1 Synthetic JCT Under Controlled Conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.bench.collectives import algorithm_of, require_two_hosts, segments_for
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.readable import format_size, format_time
from weft.quantities.units import GIB, MIB, PS_PER_MS, PS_PER_S
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.results.training_steps import TrainingStepResult
from weft.trials import Procedure, Trial, TrialRun

COMPUTATION_MS = (10, 50, 100, 500)
SIZES = (256 * MIB, GIB, 4 * GIB)


@dataclass(frozen=True)
class Iteration:
    """A synthetic training iteration: computation, then an AllReduce."""

    computation_ps: int
    size_bytes: int
    count: int

    def item(self, algorithm: str) -> dict[str, Any]:
        """Return the item of traffic, with an algorithm of its AllReduce; it takes all ranks of the fabric."""
        half = self.computation_ps // 2
        return {
            "training_step": "data-parallel",
            "layers": [
                {
                    "gradients": f"{self.size_bytes}B",
                    "forward": f"{half}ps",
                    "backward": f"{self.computation_ps - half}ps",
                }
            ],
            "bucket": f"{self.size_bytes}B",
            "algorithms": [algorithm],
            "dtype": "bfloat16",
            "data": "lengths",
        }

    def roofline_ps(self, rate_bps: int) -> float:
        """Return the draft's roofline of one iteration: C + S x algo_factor / NIC line rate."""
        factor = 2 * (self.count - 1) / self.count
        return self.computation_ps + self.size_bytes * factor * 8 * PS_PER_S / rate_bps


class SyntheticJct(BenchTest):
    """JCT of synthetic iterations, over the roofline."""

    section = "10.1"
    name = "synthetic-jct"
    title = "Synthetic JCT Under Controlled Conditions"
    objective = "By how much the fabric lengthens iterations of computation and AllReduce beyond their roofline."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        count = setup.subject.ranks
        computations = setup.choose(smoke=COMPUTATION_MS[:1], standard=COMPUTATION_MS, full=COMPUTATION_MS)
        sizes = setup.choose(smoke=(4 * MIB,), standard=(64 * MIB, 256 * MIB), full=SIZES)
        iterations = setup.choose(smoke=2, standard=3, full=1000)
        points = [Iteration(each * PS_PER_MS, size, count) for size in sizes for each in computations]

        def trial(point: Iteration, number: int, computation_ps: int) -> Trial:
            item = Iteration(computation_ps, point.size_bytes, count).item(algorithm_of(setup.subject, "allreduce"))
            return setup.trial(
                f"C {format_time(computation_ps)}, S {format_size(point.size_bytes)}, iteration {number + 1}",
                [item],
                segments_for(setup, point.size_bytes),
                iteration=number,
            )

        # Computation delays an AllReduce and changes nothing in it, so one run gives the iterations of every C.
        runs = yield [
            trial(Iteration(points[0].computation_ps, size, count), number, points[0].computation_ps)
            for size in sizes
            for number in range(iterations)
        ]
        communication = {
            size: [_communication_ps(run) for run in runs[place * iterations : (place + 1) * iterations]]
            for place, size in enumerate(sizes)
        }
        ratios = {
            point: [
                (point.computation_ps + each) / point.roofline_ps(setup.subject.rank_rate_bps)
                for each in communication[point.size_bytes]
            ]
            for point in points
        }
        first = points[0]
        return Measured(
            tables=[
                ReportTable(
                    f"Synthetic JCT, {count} accelerators",
                    ["C (ms)", "S", "iterations", "JCT of an iteration (ms)", "roofline (ms)", "JCT ratio", "worst"],
                    [_row(point, setup, communication[point.size_bytes], ratios[point]) for point in points],
                    "roofline: C + S x 2(n-1)/n over the rate of an accelerator's NICs",
                )
            ],
            curves=[
                CurveFigure(
                    "JCT ratio by computation time",
                    Axis("C (ms)", "ms", "log"),
                    Axis("JCT ratio"),
                    [
                        curve(
                            format_size(size),
                            computations,
                            [
                                sum(ratios[Iteration(each * PS_PER_MS, size, count)]) / iterations
                                for each in computations
                            ],
                        )
                        for size in sizes
                    ],
                )
            ],
            kpis=[
                KpiValue(
                    "Synthetic JCT Ratio",
                    sum(ratios[point]) / iterations,
                    f"C {format_time(point.computation_ps)}, S {format_size(point.size_bytes)}, {count} accelerators",
                )
                for point in points
            ],
            repeatability=[repeatability("JCT ratio", "ratio", ratios[first])],
            scaled=[
                f"{iterations} iterations in place of 1000, each with another seed; S up to {format_size(sizes[-1])}",
                "all of the fabric's accelerators",
                "all iterations of a size share their AllReduces: C delays them and changes nothing in them",
            ],
        )


def _communication_ps(run: TrialRun) -> int:
    (step,) = run.results_of("training_steps")
    assert isinstance(step, TrainingStepResult)
    return step.exposed_ps


def _row(point: Iteration, setup: Setup, communication: list[int], ratios: list[float]) -> list[Cell]:
    mean_ps = point.computation_ps + sum(communication) / len(communication)
    return [
        point.computation_ps // PS_PER_MS,
        format_size(point.size_bytes),
        len(communication),
        round(mean_ps / PS_PER_MS, 4),
        round(point.roofline_ps(setup.subject.rank_rate_bps) / PS_PER_MS, 4),
        round(sum(ratios) / len(ratios), 4),
        round(max(ratios), 4),
    ]
