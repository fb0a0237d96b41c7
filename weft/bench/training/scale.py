"""11.1 Fabric Scale Limits."""

from __future__ import annotations

from weft.bench.collectives import bandwidth_of, collective_trial, counts_of, require_two_hosts
from weft.bench.figures import curve
from weft.bench.measures import health_of, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.readable import format_size
from weft.quantities.units import GIB, MIB, PS_PER_MS, PS_PER_S
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure


class FabricScale(BenchTest):
    """AllReduce on more and more accelerators."""

    section = "11.1"
    name = "fabric-scale"
    title = "Fabric Scale Limits"
    objective = "How the JCT ratio of AllReduce develops up to all accelerators of the fabric."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        every = counts_of(setup)
        counts = setup.choose(smoke=every[-2:], standard=every, full=every)
        size = setup.choose(smoke=4 * MIB, standard=64 * MIB, full=GIB)
        repetitions = setup.choose(smoke=1, standard=3, full=10)
        runs = yield [collective_trial(setup, "allreduce", size, count, repetitions) for count in counts]
        rows: list[list[Cell]] = []
        ratios: list[float] = []
        for count, run in zip(counts, runs, strict=True):
            bandwidth, health = bandwidth_of([run]), health_of([run])
            roofline_ps = size * 2 * (count - 1) / count * 8 * PS_PER_S / setup.subject.rank_rate_bps
            ratios.append(bandwidth.mean_s * PS_PER_S / roofline_ps)
            rows.append(
                [
                    count,
                    round(bandwidth.mean_s * 1e3, 4),
                    round(roofline_ps / PS_PER_MS, 4),
                    round(ratios[-1], 3),
                    round(bandwidth.mean_gbps, 1),
                    round(100 * health.ecn_marked_packets / max(1, health.packets), 3),
                    health.pfc_pauses,
                    health.largest_queue_bytes,
                ]
            )
        last = bandwidth_of(runs[-1:])
        columns = ["accelerators", "JCT (ms)", "roofline (ms)", "JCT ratio", "BusBW (Gbps)", "ECN ratio (%)"]
        columns += ["PFC pauses", "largest queue (B)"]
        return Measured(
            tables=[ReportTable(f"AllReduce of {format_size(size)} by accelerators", columns, rows)],
            curves=[
                CurveFigure(
                    "JCT ratio by accelerators",
                    Axis("accelerators", "", "log"),
                    Axis("JCT ratio"),
                    [curve("AllReduce", counts, ratios)],
                )
            ],
            kpis=[
                KpiValue(
                    "Scale Limit", float(counts[-1]), f"AllReduce of {format_size(size)}; all that the fabric has", "≥"
                )
            ],
            repeatability=[
                repeatability(f"JCT, {counts[-1]} accelerators", "ms", [time / PS_PER_MS for time in last.times_ps])
            ],
            scaled=[
                f"AllReduce of {format_size(size)} in place of 1 GB, from {counts[0]} accelerators on",
                "routes come from a controller: there are no adjacencies to clear, and 11.2 has the time of new routes",
                "processor and memory of the emulation's switches say nothing of a switch's: 12.2 has those of Weft",
            ],
        )
