"""13.1 24-Hour Sustained Inference Load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.bench import congestion
from weft.bench.figures import curve
from weft.bench.measures import busiest_uplink_share, coefficient_of_variation, repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, bounded_rate
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure

LOAD = 0.8
"""Share of the rate within the objectives at which the draft's soak tests run."""


class SustainedLoad(BenchTest):
    """A long stream of requests, in windows."""

    section = "13.1"
    name = "sustained-load"
    title = "24-Hour Sustained Inference Load"
    objective = "Whether latencies and throughput keep constant under a constant load."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        bound = yield from bounded_rate(setup)
        windows = setup.choose(smoke=4, standard=8, full=96)
        each = setup.choose(smoke=25, standard=100, full=10_000)
        demand = replace(bound.demand, count=windows * each).at_rate(LOAD * bound.demand.rate_per_s)
        (run,) = yield [
            setup.trial(f"{counted(demand.count, 'request')} at a constant rate", [bound.serving.item(setup, demand)])
        ]
        served = Served(run)
        rows = np.array_split(np.arange(demand.count), windows)
        cells = [_row(served, number, chosen) for number, chosen in enumerate(rows)]
        tails = [_tail_ms(served, chosen) for chosen in rows]
        variation = coefficient_of_variation(tails)
        return Measured(
            tables=[
                ReportTable(
                    "Windows of equally many requests",
                    [
                        "window",
                        "from (ms)",
                        "TTFT P50 (ms)",
                        "TTFT P99 (ms)",
                        "time per token P99 (ms)",
                        "TPS_output",
                        "KV transfer P99 (us)",
                    ],
                    cells,
                    f"coefficient of variation of TTFT P99: {variation:.2%}" if variation is not None else "",
                ),
                ReportTable(
                    "The whole stream",
                    ["busiest link (%)", "buffer (%)", *congestion.HEADINGS],
                    [
                        [
                            round(100 * busiest_uplink_share(run, setup.subject), 2),
                            round(congestion.buffer_percent(run, setup.subject), 3),
                            *congestion.congestion_row(run, setup.subject, served.result.sent_bytes),
                        ]
                    ],
                ),
            ],
            curves=[
                CurveFigure(
                    "TTFT P99 by window",
                    Axis("window"),
                    Axis("time (ms)", "ms"),
                    [curve("TTFT P99", range(windows), tails)],
                )
            ],
            repeatability=[repeatability("TTFT P99 of a window", "ms", tails)],
            scaled=[
                f"{bound.serving.described(demand)}; at {LOAD:.0%} of the rate within the objectives",
                f"{format_time(served.result.time_ps)} of emulated time in place of 24 hours; a window is "
                f"{counted(each, 'request')}, drawn anew, in place of 15 minutes: TTFT P99 differs by the draw",
                "switches of Weft have no processor or memory of their own to observe; queue pairs that fail end a run",
            ],
        )


def _tail_ms(served: Served, rows: Integers) -> float:
    return float(np.percentile(served.first_token_ms[rows], 99))


def _row(served: Served, number: int, rows: Integers) -> list[Cell]:
    columns = {name: values[rows] for name, values in served.records.items()}
    begin_ps = int(columns["arrival_ps"][0])
    ends_ps = columns["arrival_ps"] + columns["end_to_end_ps"]
    per_token = columns["per_token_ps"][columns["per_token_ps"] >= 0]
    return [
        number,
        round(begin_ps / PS_PER_MS, 2),
        round(float(np.median(served.first_token_ms[rows])), 4),
        round(_tail_ms(served, rows), 4),
        round(float(np.percentile(per_token, 99)) / PS_PER_MS, 4) if len(per_token) else "",
        round(float(columns["output_tokens"].sum()) * PS_PER_S / float(ends_ps.max() - begin_ps), 1),
        round(float(np.percentile(served.transfer_ps[rows], 99)) / PS_PER_US, 2),
    ]
