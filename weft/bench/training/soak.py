"""12.1 24-Hour Sustained Load."""

from __future__ import annotations

import numpy as np

from weft.bench.collectives import TITLES
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.soak_trials import COLLECTIVES, SIZE_BYTES, soak_of, times_of
from weft.quantities.readable import format_size
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure

_FACTORS = {"allreduce": 2.0, "alltoall": 1.0}
"""Bytes that an accelerator sends, of a collective's size, before the factor (n-1)/n."""


class SustainedLoad(BenchTest):
    """Alternating collectives on a lab of the real clock."""

    section = "12.1"
    name = "soak"
    title = "24-Hour Sustained Load"
    objective = "Whether collectives take as long at the end of a long run as at its beginning."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        soak = yield from soak_of(setup)
        ranks = setup.subject.ranks
        ratios: dict[str, list[float]] = {}
        rows: list[list[Cell]] = []
        curves = []
        for item, name in enumerate(COLLECTIVES):
            runs = times_of(soak, item)
            roofline_ps = SIZE_BYTES * _FACTORS[name] * (ranks - 1) / ranks * 8 * PS_PER_S / setup.subject.rank_rate_bps
            ratios[name] = [time_ps / roofline_ps for _, time_ps in runs]
            halves = np.array_split(np.array(ratios[name]), 2)
            rows.append(
                [
                    TITLES[name],
                    len(runs),
                    round(float(np.mean(ratios[name])) * roofline_ps / PS_PER_US, 2),
                    round(float(np.mean(ratios[name])), 3),
                    round(float(np.std(ratios[name], ddof=1)), 4) if len(runs) > 1 else "none",
                    round(float(halves[1].mean() / halves[0].mean()), 4) if len(runs) > 1 else "none",
                ]
            )
            curves.append(curve(TITLES[name], [begin for begin, _ in runs], ratios[name]))
        first = COLLECTIVES[0]
        columns = ["collective", "runs", "JCT (us)", "JCT ratio", "std deviation", "second half over first"]
        return Measured(
            tables=[
                ReportTable(f"Sustained load, collectives of {format_size(SIZE_BYTES)}", columns, rows),
                ReportTable(
                    "Fabric health over the whole run",
                    ["dropped packets", "sent again", "ECN marks"],
                    [[soak.dropped_packets, soak.retransmitted_packets, soak.ecn_marked_packets]],
                ),
            ],
            curves=[CurveFigure("JCT ratio over time", Axis("time (s)", "s"), Axis("JCT ratio"), curves)],
            kpis=[
                KpiValue("24h Stability", float(np.std(ratios[first], ddof=1)), f"{TITLES[first]}, {soak.seconds:g} s")
            ]
            if len(ratios[first]) > 1
            else [],
            repeatability=[repeatability(f"JCT ratio, {TITLES[name]}", "ratio", each) for name, each in ratios.items()],
            scaled=[
                f"{soak.seconds:g} s of the real clock in place of 24 hours, at a dilation of 1000; times are emulated",
                "under the real clock the machine's own jitter is part of every time",
            ],
        )
