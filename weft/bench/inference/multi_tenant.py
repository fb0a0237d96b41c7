"""10.3 End-to-End Latency Under Multi-Tenant Load."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from weft.bench.decode_steps import DecodeSteps, decode_steps
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.units import PS_PER_MS
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import Procedure

_LOAD = 0.8
_NAMES = ("model A", "model B")


@dataclass(frozen=True)
class _Tenant:
    """A model's requests, and ITL P99 of its decode steps."""

    served: Served
    inter_token_ms: float

    @classmethod
    def of(cls, served: Served, steps: DecodeSteps, item: int) -> _Tenant:
        """Return a tenant, given which of the run's lists of flows its decode steps are."""
        total_ps = steps.fabric_ps(served.run, item) + steps.compute_ps
        return cls(served, float(np.percentile(total_ps, 99)) / PS_PER_MS)


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
        steps = [replace(decode_steps(setup), hosts=(*system.prefill, *system.decode)) for system in systems]
        requests = [
            system.item(setup, demand.at_rate(_LOAD * system.capacity_per_s(demand)))
            for system, demand in zip(systems, demands, strict=True)
        ]
        dispatches = [each.groups.item(setup) for each in steps]
        *lone, both = yield [
            *(
                setup.trial(f"{name} alone", [{"together": [request, dispatch]}])
                for name, request, dispatch in zip(_NAMES, requests, dispatches, strict=True)
            ),
            setup.trial("both models", [{"together": [*requests, *dispatches]}]),
        ]
        alone = [_Tenant.of(Served(run), steps[number], 0) for number, run in enumerate(lone)]
        together = [_Tenant.of(Served(both, number), steps[number], number) for number in range(len(_NAMES))]
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
                        part: [float(each.served.parts_ms[part].mean()) for each in together]
                        for part in together[0].served.parts_ms
                    },
                )
            ],
            kpis=[
                *(
                    KpiValue("TTFT", each.served.first_token_percentile_ms(), f"P99, {name}, fabric shared")
                    for name, _, each in pairs
                ),
                *(KpiValue("ITL", each.inter_token_ms, f"P99, {name}, fabric shared") for name, _, each in pairs),
            ],
            repeatability=[
                repeatability(f"TTFT, {name}, fabric shared", "ms", each.served.first_token_ms.tolist())
                for name, _, each in pairs
            ],
            scaled=[
                f"each: {systems[0].described(demands[0])}; at {_LOAD:.0%} of its prefill capacity",
                "models are on alternate hosts, so that both use the links of every leaf",
                f"over the hosts of each model: {steps[0].described}",
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


def _row(name: str, alone: _Tenant, shared: _Tenant) -> list[Cell]:
    cells: list[Cell] = [name]
    for before, after, digits in (
        (alone.served.first_token_percentile_ms(), shared.served.first_token_percentile_ms(), 4),
        (alone.inter_token_ms, shared.inter_token_ms, 4),
        (alone.served.transfer_percentile_us(), shared.served.transfer_percentile_us(), 2),
    ):
        cells += [round(before, digits), round(after, digits), round(100 * (after / before - 1), 2) if before else ""]
    return cells
