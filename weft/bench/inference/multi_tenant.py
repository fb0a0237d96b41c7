"""10.3 End-to-End Latency Under Multi-Tenant Load."""

from __future__ import annotations

from dataclasses import replace

from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure

_LOAD = 0.8
_NAMES = ("model A", "model B")


class MultiTenant(BenchTest):
    """Two serving systems on separate hosts, each alone and both together."""

    section = "10.3"
    name = "multi-tenant"
    title = "End-to-End Latency Under Multi-Tenant Load"
    objective = "How much two models that share a fabric slow each other's requests down."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        systems = _systems(setup)
        demands = [replace(demand_of(setup), seed=setup.seed + number) for number in range(len(_NAMES))]
        items = [
            system.item(setup, demand.at_rate(_LOAD * system.capacity_per_s(demand)))
            for system, demand in zip(systems, demands, strict=True)
        ]
        *lone, both = yield [
            *(setup.trial(f"{name} alone", [item]) for name, item in zip(_NAMES, items, strict=True)),
            setup.trial("both models", [{"together": items}]),
        ]
        alone = [Served(run) for run in lone]
        together = [Served(both, number) for number in range(len(_NAMES))]
        pairs = list(zip(_NAMES, alone, together, strict=True))
        return Measured(
            tables=[
                ReportTable(
                    "Interference",
                    [
                        "instance",
                        "TTFT P99, alone (ms)",
                        "TTFT P99, shared (ms)",
                        "penalty (%)",
                        "ITL P99, alone (ms)",
                        "ITL P99, shared (ms)",
                        "ITL penalty (%)",
                        "transfer P99, alone (us)",
                        "transfer P99, shared (us)",
                        "transfer penalty (%)",
                    ],
                    [_row(*pair) for pair in pairs],
                    "penalty: (shared - alone) / alone",
                )
            ],
            bars=[
                BarFigure(
                    "Mean TTFT, both models on the fabric",
                    Axis("time (ms)", "ms"),
                    list(_NAMES),
                    {
                        part: [float(served.parts_ms[part].mean()) for served in together]
                        for part in together[0].parts_ms
                    },
                )
            ],
            kpis=[
                *(
                    KpiValue("TTFT", served.first_token_percentile_ms(), f"P99, {name}, fabric shared")
                    for name, _, served in pairs
                ),
                *(KpiValue("ITL", served.inter_token_ms(), f"P99, {name}, fabric shared") for name, _, served in pairs),
            ],
            repeatability=[
                repeatability(f"TTFT, {name}, fabric shared", "ms", served.first_token_ms.tolist())
                for name, _, served in pairs
            ],
            scaled=[
                f"each: {systems[0].described(demands[0])}; at {_LOAD:.0%} of its prefill capacity",
                "models are on alternate hosts, so that both use the links of every leaf",
                "instances lie within hosts and models are dense: only the times at which caches arrive, by which "
                "requests join batches, connect ITL with the fabric",
            ],
        )


def _systems(setup: Setup) -> list[Serving]:
    """Return a system on the even and one on the odd hosts."""
    available = len(setup.subject.servers)
    if available < 4:
        raise NotApplicableError(f"two systems of prefill and decode take 4 hosts; the fabric has {available}")
    found = []
    for number in range(len(_NAMES)):
        own = tuple(range(number, available, 2))
        own = own[: setup.choose(smoke=4, standard=8, full=available)]
        prefill = max(1, len(own) // 4)
        found.append(replace(serving_of(setup), prefill=own[:prefill], decode=own[prefill:]))
    return found


def _row(name: str, alone: Served, shared: Served) -> list[Cell]:
    cells: list[Cell] = [name]
    for before, after, digits in (
        (alone.first_token_percentile_ms(), shared.first_token_percentile_ms(), 4),
        (alone.inter_token_ms(), shared.inter_token_ms(), 4),
        (alone.transfer_percentile_us(), shared.transfer_percentile_us(), 2),
    ):
        cells += [round(before, digits), round(after, digits), round(100 * (after / before - 1), 2) if before else ""]
    return cells
