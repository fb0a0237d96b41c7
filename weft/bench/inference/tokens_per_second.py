"""11.1 Aggregate Tokens Per Second."""

from __future__ import annotations

from weft.bench.figures import curve
from weft.bench.measures import busiest_uplink_share, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import HEADINGS, Served, bounded_rate, served_row
from weft.bench.setup import Setup
from weft.results.report_parts import Axis, CurveFigure, ReportTable
from weft.trials import Procedure


class TokensPerSecond(BenchTest):
    """The largest request rate within the objectives."""

    section = "11.1"
    name = "tokens-per-second"
    title = "Aggregate Tokens Per Second"
    objective = "The largest rate of tokens within the objectives for latency, and how busy the fabric is then."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        bound = yield from bounded_rate(setup)
        tried = bound.tried
        busiest = {rate: 100 * busiest_uplink_share(served.run, setup.subject) for rate, served in tried.items()}
        best = bound.served
        rate = bound.demand.rate_per_s
        condition = f"{bound.serving.ratio}, {rate:.4g} requests/s"
        rates = list(tried)
        return Measured(
            tables=[
                ReportTable(
                    "Request rates that were tried",
                    ["requests/s", *HEADINGS, "KV GB/s", "busiest link (%)", "within the objectives"],
                    [
                        [
                            round(each, 3),
                            *served_row(served),
                            round(served.kv_bytes_per_s / 1e9, 3),
                            round(busiest[each], 2),
                            "yes" if served.meets(bound.serving) else "no",
                        ]
                        for each, served in tried.items()
                    ],
                    f"objectives: TTFT P99 {bound.serving.slo_ms[0]:g} ms, ITL P99 {bound.serving.slo_ms[1]:g} ms; the "
                    "busiest link is one between switches, on average over the run",
                )
            ],
            curves=[
                CurveFigure(
                    "Output by request rate",
                    Axis("requests/s"),
                    Axis("tokens/s"),
                    [curve("TPS_output", rates, [served.output_tokens_per_s for served in tried.values()])],
                ),
                CurveFigure(
                    "TTFT P99 by request rate",
                    Axis("requests/s"),
                    Axis("time (ms)", "ms"),
                    [curve("TTFT P99", rates, [served.first_token_percentile_ms() for served in tried.values()])],
                ),
            ],
            kpis=[
                KpiValue("TPS_output", best.output_tokens_per_s, condition),
                KpiValue("TPS_input", best.input_tokens_per_s, condition),
                KpiValue("Inference_Goodput", best.goodput_per_s, condition),
                KpiValue("Request_Rate", rate, bound.serving.ratio, "≥" if bound.is_upper_end else "="),
            ],
            repeatability=[repeatability(f"TTFT, {condition}", "ms", best.first_token_ms.tolist())],
            scaled=[
                bound.serving.described(bound.demand),
                "rates are searched between a quarter and twice the prefill capacity",
            ],
            anomalies=_anomalies(bound.is_upper_end, best, rate),
        )


def _anomalies(is_upper_end: bool, best: Served, rate: float) -> list[str]:
    found = []
    if is_upper_end:
        found.append(f"{rate:.4g} requests/s, the largest rate that is tried, is within the objectives")
    if best.result.retransmissions:
        found.append(f"{best.result.retransmissions} packets retransmitted")
    return found
