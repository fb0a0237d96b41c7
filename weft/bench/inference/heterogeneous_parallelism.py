"""6.3 Heterogeneous Parallelism Configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.bench.measures import repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import WHOLE_HOST, Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.jobs.formulas.kv_cache import kv_shares
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure, Trial

_DIVISORS = ((1, 1), (1, 2), (2, 4))
"""By how much the draft's configurations divide TP=8 of prefill and of decode."""
_LOAD = 0.6


@dataclass(frozen=True)
class _Degrees:
    """Tensor-parallel ranks of a prefill and of a decode instance, on hosts of so many ranks."""

    prefill: int
    decode: int
    host: int

    @property
    def title(self) -> str:
        """As the draft writes it."""
        prefill, decode = _degree(self.prefill, self.host, "DP"), _degree(self.decode, self.host, "DP_Attention")
        return f"prefill {prefill}, decode {decode}"

    def keys(self, serving: Serving) -> dict[str, Any]:
        """Return keys of `inference` that differ from the serving system's."""
        return {
            "prefill": {"tensor": self.prefill, "instances": len(serving.prefill) * self.host // self.prefill},
            "decode": {"tensor": self.decode, "instances": len(serving.decode) * self.host // self.decode},
        }


def _degree(tensor: int, host: int, parallel: str) -> str:
    return f"TP={tensor}" if tensor == host else f"TP={tensor} {parallel}={host // tensor}"


class HeterogeneousParallelism(BenchTest):
    """Prefill and decode with the same and with different degrees of parallelism."""

    section = "6.3"
    name = "heterogeneous-parallelism"
    title = "Heterogeneous Parallelism Configuration"
    objective = "What different degrees of parallelism in prefill and decode mean for the fabric and for latencies."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        serving, demand = serving_of(setup), demand_of(setup)
        host = serving.tensor
        if host < 2:
            raise NotApplicableError(
                f"hosts have {setup.subject.ranks_per_host} accelerator each: instances within a host have no other "
                "degree than TP=1"
            )
        configurations = list(
            dict.fromkeys(
                _Degrees(max(1, host // prefill), max(1, host // decode), host) for prefill, decode in _DIVISORS
            )
        )
        rate = _LOAD * serving.capacity_per_s(demand)

        def trial(each: _Degrees) -> Trial:
            return setup.trial(each.title, [serving.item(setup, demand.at_rate(rate), **each.keys(serving))])

        runs = yield [trial(each) for each in configurations]
        found = {each: Served(run) for each, run in zip(configurations, runs, strict=True)}
        return Measured(
            tables=[
                ReportTable(
                    "Configurations of parallelism",
                    [
                        "configuration",
                        "flows of a cache",
                        "most concurrent flows",
                        "aggregate GB/s",
                        "transfer P99 (us)",
                        "TTFT P50 (ms)",
                        "TTFT P99 (ms)",
                        "ITL P50 (ms)",
                        "ITL P99 (ms)",
                    ],
                    [_row(serving, each, served) for each, served in found.items()],
                    "aggregate: bytes of caches over the time from the first one's start to the last one's arrival",
                )
            ],
            bars=[
                BarFigure(
                    "Mean TTFT by configuration",
                    Axis("time (ms)", "ms"),
                    [each.title for each in configurations],
                    {
                        part: [float(np.mean(served.parts_ms[part])) for served in found.values()]
                        for part in found[configurations[0]].parts_ms
                    },
                )
            ],
            repeatability=[
                repeatability(f"TTFT, {each.title}", "ms", served.first_token_ms.tolist())
                for each, served in found.items()
            ],
            scaled=[
                serving.described(demand),
                f"degrees are those of hosts of {host}, in place of {WHOLE_HOST}; requests at {_LOAD:.0%} of the "
                "baseline's prefill capacity",
                "data-parallel attention is further decode instances on a host: each has whole requests",
            ],
        )


def _row(serving: Serving, each: _Degrees, served: Served) -> list[Cell]:
    flows = len(list(kv_shares(serving.transformer, each.prefill, each.decode)))
    return [
        each.title,
        flows,
        flows * served.most_transfers,
        round(served.kv_bytes_per_s / 1e9, 3),
        round(served.transfer_percentile_us(), 2),
        round(served.first_token_percentile_ms(50), 4),
        round(served.first_token_percentile_ms(), 4),
        round(served.inter_token_ms("50 %"), 4),
        round(served.inter_token_ms(), 4),
    ]
