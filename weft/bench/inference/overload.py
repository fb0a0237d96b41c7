"""11.3 Goodput Under Preemption and Eviction."""

from __future__ import annotations

import numpy as np

from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, bounded_rate
from weft.bench.setup import Setup
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

OVERLOADS = (1.1, 1.25, 1.5, 2.0)


class Overload(BenchTest):
    """More requests than the objectives allow."""

    section = "11.3"
    name = "overload"
    title = "Goodput Under Preemption and Eviction"
    objective = "How much goodput is lost when requests exceed the rate within the objectives."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        bound = yield from bounded_rate(setup)
        overloads = setup.choose(smoke=(1.25, 2.0), standard=OVERLOADS, full=OVERLOADS)
        rate = bound.demand.rate_per_s

        def trial(overload: float) -> Trial:
            return setup.trial(
                f"{overload:.0%} of the rate within the objectives",
                [bound.serving.item(setup, bound.demand.at_rate(overload * rate))],
            )

        runs = yield [trial(overload) for overload in overloads]
        found = {1.0: bound.served} | {overload: Served(run) for overload, run in zip(overloads, runs, strict=True)}
        highest = overloads[-1]
        condition = f"{highest:.0%} of {rate:.4g} requests/s"
        return Measured(
            tables=[
                ReportTable(
                    "Goodput beyond the objectives",
                    [
                        "load (%)",
                        "Inference_Goodput (req/s)",
                        "goodput lost (%)",
                        "requests within (%)",
                        "TPS_output",
                        "goodput / TPS_output (requests by 1000 tokens)",
                        "caches sent in vain (GB/s)",
                        "evictions/s",
                        "preemptions/s",
                    ],
                    [_row(overload, served, bound.served) for overload, served in found.items()],
                    "lost: of the goodput at the rate within the objectives; sent in vain: caches of requests that "
                    "missed an objective",
                )
            ],
            curves=[
                CurveFigure(
                    "Goodput by load",
                    Axis("load (% of the rate within the objectives)", "%"),
                    Axis("requests/s"),
                    [
                        curve(
                            "Inference_Goodput",
                            [100 * each for each in found],
                            [served.goodput_per_s for served in found.values()],
                        )
                    ],
                )
            ],
            kpis=[
                KpiValue("Inference_Goodput", found[highest].goodput_per_s, condition),
                KpiValue("TPS_output", found[highest].output_tokens_per_s, condition),
            ],
            scaled=[
                bound.serving.described(bound.demand),
                "Weft's serving system neither evicts caches nor preempts requests: they queue for memory, batches and "
                "prefill, so goodput is lost to waiting alone",
            ],
        )


def _row(overload: float, served: Served, bound: Served) -> list[Cell]:
    result, columns = served.result, served.records
    within = result.within_slo or 0
    late = (columns["first_token_ps"] > (result.slo_first_token_ps or 0)) | (
        columns["per_token_ps"] > (result.slo_per_token_ps or 0)
    )
    vain_bytes = float(np.sum(columns["prompt_tokens"][late])) * result.kv_bytes_per_token
    return [
        round(100 * overload),
        round(served.goodput_per_s, 3),
        round(100 * (1 - served.goodput_per_s / bound.goodput_per_s), 2) if bound.goodput_per_s else "",
        round(100 * within / result.requests, 1),
        round(served.output_tokens_per_s, 1),
        round(1000 * served.goodput_per_s / served.output_tokens_per_s, 3),
        round(vain_bytes / (result.time_ps / 1e12) / 1e9, 4),
        "not modelled",
        "not modelled",
    ]
