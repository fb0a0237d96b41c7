"""9.2 Prefix-Aware Cache Hit Rate."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, demand_of, serving_of
from weft.bench.setup import Setup
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

SHARES = (0.25, 0.5, 0.75, 0.9)
LENGTHS = (256, 512, 1024, 2048)
_LOAD = 0.6
_AWARE: Mapping[str, Any] = {
    "prefix_caching": True,
    "prefill_assignment": "prefix-aware",
    "decode_assignment": "prefix-aware",
}
_UNAWARE: Mapping[str, Any] = {"prefix_caching": False}
Key = tuple[float, int]


class PrefixCaching(BenchTest):
    """Requests with a common prefix, routed to where it is cached, and without caches of it."""

    section = "9.2"
    name = "prefix-caching"
    title = "Prefix-Aware Cache Hit Rate"
    objective = "What caches of common prefixes save the fabric and the user."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        serving, demand = serving_of(setup), demand_of(setup)
        shares = setup.choose(smoke=(0.5,), standard=SHARES, full=SHARES)
        lengths = setup.choose(smoke=(256, 2048), standard=(512, 2048), full=LENGTHS)
        rate = _LOAD * serving.capacity_per_s(demand)
        keys = list(product(shares, lengths))

        def trial(key: Key, routing: Mapping[str, Any]) -> Trial:
            share, tokens = key
            item = serving.item(setup, demand.at_rate(rate), **routing)
            item["inference"]["requests"]["prefix"] = {"share": share, "tokens": tokens}
            how = "prefix-aware" if routing is _AWARE else "not prefix-aware"
            return setup.trial(f"{share:.0%} of requests share {tokens} tokens, {how}", [item])

        runs = yield [trial(key, routing) for key in keys for routing in (_AWARE, _UNAWARE)]
        aware = {key: Served(run) for key, run in zip(keys, runs[::2], strict=True)}
        unaware = {key: Served(run) for key, run in zip(keys, runs[1::2], strict=True)}
        best = keys[-1]
        return Measured(
            tables=[
                ReportTable(
                    "Caches of a common prefix",
                    [
                        "requests with it (%)",
                        "prefix (tokens)",
                        "hit rate (%)",
                        "fabric bytes saved (%)",
                        "TTFT saved, mean (ms)",
                        "TTFT saved, P99 (ms)",
                        "TPS gained (%)",
                    ],
                    [_row(key, aware[key], unaware[key]) for key in keys],
                    "hit rate: of all requests, those whose prefix their decode instance had; compared with the same "
                    "requests, routed by load, without caches of prefixes",
                )
            ],
            curves=[
                CurveFigure(
                    "Fabric bytes saved by the length of the prefix",
                    Axis("tokens of the prefix"),
                    Axis("saved (%)", "%"),
                    [
                        curve(
                            f"{share:.0%} of the requests",
                            lengths,
                            [100 * _saved(aware[share, each], unaware[share, each]) for each in lengths],
                        )
                        for share in shares
                    ],
                )
            ],
            kpis=[
                KpiValue(
                    "Prefix Cache Hit Rate",
                    _hit_percent(aware[best]),
                    f"{best[0]:.0%} of the requests share {best[1]} tokens",
                )
            ],
            scaled=[
                f"{serving.described(demand)}; at {_LOAD:.0%} of the prefill capacity",
                "prompts that share the prefix are at least a token longer, in both cases",
                "prefixes are kept for good",
            ],
        )


def _hit_percent(served: Served) -> float:
    return 100 * served.result.decode_prefix_hits / served.result.requests


def _saved(aware: Served, unaware: Served) -> float:
    """Return the share of the KV cache bytes that are not sent."""
    return 1 - aware.result.sent_bytes / unaware.result.sent_bytes


def _row(key: Key, aware: Served, unaware: Served) -> list[Cell]:
    return [
        round(100 * key[0]),
        key[1],
        round(_hit_percent(aware), 1),
        round(100 * _saved(aware, unaware), 2),
        round(float(unaware.first_token_ms.mean() - aware.first_token_ms.mean()), 4),
        round(unaware.first_token_percentile_ms() - aware.first_token_percentile_ms(), 4),
        round(100 * (aware.output_tokens_per_s / unaware.output_tokens_per_s - 1), 2),
    ]
