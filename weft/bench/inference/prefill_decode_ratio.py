"""6.2 xPyD Ratio Optimization."""

from __future__ import annotations

from itertools import product

from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import HEADINGS, Served, Serving, demand_of, served_row, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportTable
from weft.trials import Procedure, Trial

SHARES = tuple(count / 12 for count in (1, 2, 3, 4, 6, 8, 10, 11))
"""Shares of hosts that the draft's ratios of 12 nodes give to prefill."""
_TOTAL = 12
Key = tuple[int, float]


class PrefillDecodeRatio(BenchTest):
    """The same hosts divided between prefill and decode in several ways."""

    section = "6.2"
    name = "prefill-decode-ratio"
    title = "xPyD Ratio Optimization"
    objective = "Which division of hosts into prefill and decode serves most tokens within the objectives."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        available = len(setup.subject.servers)
        total = min(available, setup.choose(smoke=4, standard=_TOTAL, full=_TOTAL))
        if total < 3:
            raise NotApplicableError(f"several ratios take 3 hosts; the fabric has {available}")
        ratios = sorted({min(total - 1, max(1, round(share * total))) for share in SHARES})
        systems = {ratio: serving_of(setup, total, ratio) for ratio in ratios}
        demand = demand_of(setup)
        half = systems[min(ratios, key=lambda ratio: abs(ratio - total / 2))]
        loads = setup.choose(smoke=(0.8,), standard=(0.4, 0.8), full=(0.2, 0.4, 0.6, 0.8))
        rates = {load: load * half.capacity_per_s(demand) for load in loads}
        keys = list(product(ratios, loads))

        def trial(ratio: int, load: float) -> Trial:
            return setup.trial(
                f"{systems[ratio].ratio} at {rates[load]:.4g} requests/s",
                [systems[ratio].item(setup, demand.at_rate(rates[load]))],
            )

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        found = {key: Served(run) for key, run in runs.items()}
        optimal = {load: _optimal(systems, found, load) for load in loads}
        highest = loads[-1]
        best = optimal[highest]
        chosen = best[0] if best else max(ratios, key=lambda ratio: found[ratio, highest].output_tokens_per_s)
        condition = f"{systems[chosen].ratio}, {rates[highest]:.4g} requests/s"
        labels = [systems[ratio].ratio for ratio in ratios]
        return Measured(
            tables=[
                ReportTable(
                    f"Ratios at {rates[load]:.4g} requests/s",
                    ["ratio", *HEADINGS, "Pareto-optimal"],
                    [
                        [
                            systems[ratio].ratio,
                            *served_row(found[ratio, load]),
                            "yes" if ratio in optimal[load] else "no",
                        ]
                        for ratio in ratios
                    ],
                    "Pareto-optimal: the most output tokens/s of the ratios within both objectives",
                )
                for load in loads
            ],
            curves=[
                figure
                for load in loads
                for figure in (
                    CurveFigure(
                        f"Latencies by ratio, {rates[load]:.4g} requests/s",
                        Axis("ratio", scale="category"),
                        Axis("time (ms)", "ms"),
                        [
                            curve_of(
                                "TTFT P99", labels, [found[each, load].first_token_percentile_ms() for each in ratios]
                            ),
                            curve_of("ITL P99", labels, [found[each, load].inter_token_ms() for each in ratios]),
                        ],
                    ),
                    CurveFigure(
                        f"Output by ratio, {rates[load]:.4g} requests/s",
                        Axis("ratio", scale="category"),
                        Axis("tokens/s"),
                        [curve_of("TPS_output", labels, [found[each, load].output_tokens_per_s for each in ratios])],
                    ),
                )
            ],
            kpis=[
                KpiValue("TTFT", found[chosen, highest].first_token_percentile_ms(), f"P99, {condition}"),
                KpiValue("TPS_output", found[chosen, highest].output_tokens_per_s, condition),
            ],
            scaled=[
                half.described(demand),
                f"{total} hosts; rates are shares of the prefill capacity of {half.ratio}",
                "TPS_output counts the time to the last token, in which the last batch runs empty",
            ],
            anomalies=[
                f"no ratio is within the objectives at {rates[load]:.4g} requests/s"
                for load in loads
                if not optimal[load]
            ],
        )


def curve_of(name: str, labels: list[str], values: list[float]) -> Curve:
    """Return bars over categories."""
    return Curve(name, labels, [float(value) for value in values])


def _optimal(systems: dict[int, Serving], found: dict[Key, Served], load: float) -> list[int]:
    """Return the ratios with the most output of those within the objectives."""
    within = {
        ratio: found[ratio, load].output_tokens_per_s
        for ratio, system in systems.items()
        if found[ratio, load].meets(system)
    }
    return [ratio for ratio, rate in within.items() if rate == max(within.values())]
