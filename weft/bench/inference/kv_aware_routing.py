"""9.1 KV-Aware Request Routing Efficacy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from weft.bench.measures import coefficient_of_variation
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure, Trial

RATES = (10, 50, 100, 200)
_SHARES = (0.2, 0.4, 0.8, 1.2)
_ROUTINGS: Mapping[str, Mapping[str, str]] = {
    "KV-aware": {"prefill_assignment": "least-loaded", "decode_assignment": "least-loaded"},
    "round-robin": {"prefill_assignment": "round-robin", "decode_assignment": "round-robin"},
}


class KvAwareRouting(BenchTest):
    """Requests routed by the load of instances, and in turn."""

    section = "9.1"
    name = "kv-aware-routing"
    title = "KV-Aware Request Routing Efficacy"
    objective = "What routing by the instances' load gains over routing in turn."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        total = min(available, setup.choose(smoke=4, standard=16, full=available))
        if total < 3:
            raise NotApplicableError(f"a choice of decode workers takes 3 hosts; the fabric has {available}")
        serving, demand = serving_of(setup, total, max(1, total // 2)), demand_of(setup)
        capacity = serving.capacity_per_s(demand)
        shares = setup.choose(smoke=_SHARES[2:3], standard=_SHARES, full=_SHARES)
        rates = setup.choose(
            smoke=[share * capacity for share in shares],
            standard=[share * capacity for share in shares],
            full=[rate / serving.scale for rate in RATES],
        )
        keys = list(product(_ROUTINGS, rates))

        def trial(routing: str, rate: float) -> Trial:
            return setup.trial(
                f"{routing} routing, {rate:.4g} requests/s",
                [serving.item(setup, demand.at_rate(rate), **_ROUTINGS[routing])],
            )

        runs = yield [trial(*key) for key in keys]
        found = {key: Served(run) for key, run in zip(keys, runs, strict=True)}
        highest = rates[-1]
        return Measured(
            tables=[
                ReportTable(
                    f"{routing} routing",
                    [
                        "requests/s",
                        "CV of decode memory",
                        "TTFT P99 (ms)",
                        "ITL P99 (ms)",
                        "evictions/s",
                        "TPS_output",
                        "Inference_Goodput (req/s)",
                    ],
                    [_row(serving, rate, found[routing, rate]) for rate in rates],
                    "CV: standard deviation over mean of the decode instances' KV cache tokens, averaged over time",
                )
                for routing in _ROUTINGS
            ],
            bars=[
                BarFigure(
                    f"TTFT P99 at {highest:.4g} requests/s",
                    Axis("time (ms)", "ms"),
                    list(_ROUTINGS),
                    {"TTFT P99": [found[routing, highest].first_token_percentile_ms() for routing in _ROUTINGS]},
                )
            ],
            scaled=[
                serving.described(demand),
                "rates are shares of the prefill capacity, in place of 10 to 200 req/s"
                if setup.choose(smoke=True, standard=True, full=False)
                else "rates are the draft's, over the scale of times",
                "KV-aware: the prefill instance with the least work left, the decode instance with the fewest prompt "
                "tokens so far; the router does not see congestion of the fabric",
                "caches are not evicted: a request waits until memory holds it",
            ],
        )


def memory_tokens(serving: Serving, served: Served) -> list[float]:
    """Return the KV cache tokens that each decode instance held, on average over the run."""
    columns = served.records
    begins = served.transfers[1]
    ends = columns["arrival_ps"] + columns["end_to_end_ps"]
    tokens = columns["prompt_tokens"] + columns["output_tokens"] / 2
    instances = len(serving.decode) * serving.instances_per_host
    held = np.bincount(columns["decode_instance"], tokens * (ends - begins), instances)
    return [float(each) for each in held / served.result.time_ps]


def _row(serving: Serving, rate: float, served: Served) -> list[Cell]:
    spread = coefficient_of_variation(memory_tokens(serving, served))
    return [
        round(rate, 2),
        "" if spread is None else round(spread, 4),
        round(served.first_token_percentile_ms(), 4),
        round(served.inter_token_ms(), 4),
        "not modelled",
        round(served.output_tokens_per_s, 1),
        round(served.goodput_per_s, 3),
    ]
