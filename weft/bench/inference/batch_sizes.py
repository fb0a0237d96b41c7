"""11.2 Batch Size Scaling and Continuous Batching Impact."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, demand_of, serving_of
from weft.bench.setup import Setup
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

BATCHES = (1, 4, 8, 16, 32, 64, 128)
_BATCHING = ("static", "continuous")
_LOAD = 0.8


class BatchSizes(BenchTest):
    """Decode instances with batches of several sizes, which requests join at any time or only when one is done."""

    section = "11.2"
    name = "batch-sizes"
    title = "Batch Size Scaling and Continuous Batching Impact"
    objective = "What the batch size and continuous batching mean for throughput, latency and transfers."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        total = min(available, setup.choose(smoke=4, standard=16, full=available))
        # Most hosts compute prompts, so that decode has full batches.
        serving = serving_of(setup, total, max(1, total - max(1, total // 4)))
        demand = demand_of(setup)
        demand = replace(demand, outputs=(4 * demand.outputs[0], 4 * demand.outputs[1]))
        batches = setup.choose(smoke=(1, 32), standard=(1, 8, 32, 128), full=BATCHES)
        rate = _LOAD * serving.capacity_per_s(demand)
        keys = list(product(_BATCHING, batches))

        def trial(batching: str, batch: int) -> Trial:
            item = replace(serving, batch=batch).item(setup, demand.at_rate(rate), decode={"batching": batching})
            return setup.trial(f"{batching} batches of up to {batch}", [item])

        runs = yield [trial(*key) for key in keys]
        found = {key: Served(run) for key, run in zip(keys, runs, strict=True)}
        largest = batches[-1]
        return Measured(
            tables=[
                ReportTable(
                    f"{batching.capitalize()} batching",
                    [
                        "largest batch",
                        "requests per iteration",
                        "TPS_output",
                        "TTFT P99 (ms)",
                        "ITL P99 (ms)",
                        "KV GB/s",
                        "most concurrent transfers",
                    ],
                    [
                        [
                            batch,
                            round(max(found[batching, batch].result.decode_batch), 2),
                            round(found[batching, batch].output_tokens_per_s, 1),
                            round(found[batching, batch].first_token_percentile_ms(), 4),
                            round(found[batching, batch].inter_token_ms(), 4),
                            round(found[batching, batch].kv_bytes_per_s / 1e9, 3),
                            found[batching, batch].most_transfers,
                        ]
                        for batch in batches
                    ],
                    "requests per iteration: of the decode instance with most, on average",
                )
                for batching in _BATCHING
            ],
            curves=[
                CurveFigure(
                    "Output by batch size",
                    Axis("largest batch", "", "log"),
                    Axis("TPS_output (tokens/s)"),
                    [
                        curve(batching, batches, [found[batching, batch].output_tokens_per_s for batch in batches])
                        for batching in _BATCHING
                    ],
                )
            ],
            kpis=[
                KpiValue("TPS_output", found[batching, largest].output_tokens_per_s, f"{batching}, batch {largest}")
                for batching in _BATCHING
            ],
            scaled=[
                f"{serving.described(demand)}; at {_LOAD:.0%} of the prefill capacity",
                "a cache is sent when its prompt has been computed, whatever decode does, so transfers do not depend "
                "on the batch",
            ],
        )
