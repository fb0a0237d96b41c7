"""8.2 Dynamic Load Balancing (Flowlet)."""

from __future__ import annotations

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.spreading import HEADINGS, mean_of, require_paths, spread_of, transfers
from weft.bench.variants import Variant, changed
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

GAPS_US = (0.5, 1, 2, 10, 50)
QUEUE_PAIRS = 4


class Flowlets(BenchTest):
    """Flowlets by their gap, compared with ECMP."""

    section = "8.2"
    name = "flowlet"
    title = "Dynamic Load Balancing (Flowlet)"
    objective = "What flowlet switching makes of the balance and the throughput of ECMP, by the gap."
    compares_load_balancing = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_paths(setup)
        ecmp = setup.under(Variant(setup.variant.transport, "ecmp"))
        flowlet = setup.under(Variant(setup.variant.transport, "flowlet"))
        gaps_ps = [round(gap * PS_PER_US) for gap in setup.choose(smoke=GAPS_US[1:2], standard=GAPS_US, full=GAPS_US)]
        iterations = setup.choose(smoke=1, standard=3, full=20)

        def with_gap(gap_ps: int, number: int) -> Trial:
            trial = transfers(flowlet, f"flowlets, gap {format_time(gap_ps)}", QUEUE_PAIRS, number)
            return Trial(trial.label, changed(trial.tree, {"routing.flowlet_gap": f"{gap_ps}ps"}))

        runs = yield [
            *(transfers(ecmp, "ECMP", QUEUE_PAIRS, number) for number in range(iterations)),
            *(with_gap(gap, number) for gap in gaps_ps for number in range(iterations)),
        ]
        baseline = mean_of([spread_of(ecmp, run) for run in runs[:iterations]])
        spreads = [spread_of(flowlet, run) for run in runs[iterations:]]
        by_gap = {gap: spreads[place * iterations : (place + 1) * iterations] for place, gap in enumerate(gaps_ps)}
        gains = {gap: 100 * baseline.time_ps / mean_of(found).time_ps for gap, found in by_gap.items()}
        best = max(gains, key=lambda gap: gains[gap])
        return Measured(
            tables=[
                ReportTable(
                    f"Flowlets by gap, {QUEUE_PAIRS} queue pairs of each pair of hosts",
                    ["load balancing", *HEADINGS, "throughput (% of ECMP's)"],
                    [
                        ["ECMP", *baseline.row, 100.0],
                        *(
                            [f"flowlets, {format_time(gap)}", *mean_of(found).row, round(gains[gap], 1)]
                            for gap, found in by_gap.items()
                        ),
                    ],
                    "switches choose at random among equal next hops after a pause of the flow; mean of all seeds",
                )
            ],
            curves=[
                CurveFigure(
                    "Throughput by the flowlet gap",
                    Axis("gap (us)", "us", "log"),
                    Axis("% of ECMP's", "%"),
                    [curve("flowlets", [gap / PS_PER_US for gap in gains], gains.values())],
                )
            ],
            kpis=[KpiValue("DLB Efficacy", gains[best], f"gap {format_time(best)}, {QUEUE_PAIRS} queue pairs")],
            repeatability=[
                repeatability(
                    f"goodput, gap {format_time(best)}", "% of line rate", [100 * e.goodput_share for e in by_gap[best]]
                )
            ],
            scaled=[
                "DLB is flowlet switching at random; the fabric's own adaptive routing is a way of balancing in 8.4"
            ],
        )
