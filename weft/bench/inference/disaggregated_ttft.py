"""6.1 End-to-End Disaggregated TTFT."""

from __future__ import annotations

import numpy as np

from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Demand, Served, demand_of, serving_of
from weft.bench.setup import Setup
from weft.quantities.readable import counted
from weft.results.report_parts import Axis, BarFigure, ReportTable
from weft.trials import Procedure, Trial

PROMPTS = (128, 512, 1024, 2048, 4096, 8192, 16384)
_LOAD = 0.5
_PERCENTILES = (50, 95, 99)
_SHOWN = ("T_prefill", "T_transfer", "T_decode_init")


class DisaggregatedTtft(BenchTest):
    """A stream of requests with prompts of one length, by that length."""

    section = "6.1"
    name = "disaggregated-ttft"
    title = "End-to-End Disaggregated TTFT"
    objective = "The time to the first token by prompt length under load, and the fabric's part of it."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        serving = serving_of(setup)
        lengths = setup.choose(smoke=(512, 4096), standard=PROMPTS, full=PROMPTS)
        most_tokens = setup.choose(smoke=40_000, standard=200_000, full=1 << 40)
        most = demand_of(setup).count

        def demand(length: int) -> Demand:
            count = max(10, min(most, most_tokens // length))
            found = Demand(1.0, count, (length, length), demand_of(setup).outputs, setup.seed)
            return found.at_rate(_LOAD * serving.capacity_per_s(found))

        def trial(length: int) -> Trial:
            return setup.trial(f"prompts of {length} tokens", [serving.item(setup, demand(length))])

        runs = yield [trial(length) for length in lengths]
        found = {length: Served(run) for length, run in zip(lengths, runs, strict=True)}
        fractions = {
            length: float((each.parts_ms["T_transfer"] / each.first_token_ms).mean()) for length, each in found.items()
        }
        longest = lengths[-1]
        condition = f"P99, prompts of {longest} tokens"
        return Measured(
            tables=[
                ReportTable(
                    f"TTFT of {serving.ratio} (ms)",
                    [
                        "prompt",
                        "requests",
                        *(f"TTFT P{each}" for each in _PERCENTILES),
                        *(f"{part} P{each}" for part in _SHOWN for each in _PERCENTILES),
                        "T_transfer / TTFT (%)",
                    ],
                    [
                        [
                            length,
                            len(each.first_token_ms),
                            *(round(float(np.percentile(each.first_token_ms, which)), 4) for which in _PERCENTILES),
                            *(
                                round(float(np.percentile(each.parts_ms[part], which)), 4)
                                for part in _SHOWN
                                for which in _PERCENTILES
                            ),
                            round(100 * fractions[length], 2),
                        ]
                        for length, each in found.items()
                    ],
                    "queues at prefill and decode are the rest of TTFT; percentiles are each part's own",
                )
            ],
            bars=[
                BarFigure(
                    "Mean TTFT by prompt length",
                    Axis("time (ms)", "ms"),
                    [f"{length} tokens" for length in lengths],
                    {
                        part: [float(each.parts_ms[part].mean()) for each in found.values()]
                        for part in found[longest].parts_ms
                    },
                )
            ],
            kpis=[
                KpiValue("TTFT", found[longest].first_token_percentile_ms(), condition),
                KpiValue("KV_xfer_latency", found[longest].transfer_percentile_us(), condition),
            ],
            repeatability=[
                repeatability(f"TTFT, prompts of {longest} tokens", "ms", found[longest].first_token_ms.tolist())
            ],
            scaled=[
                serving.described(),
                f"requests at {_LOAD:.0%} of the prefill capacity: {counted(most, 'request')}, fewer of long prompts, "
                "in place of 20 trials",
                "T_transfer is that of the fabric alone: transfers within a host take no time",
            ],
        )
