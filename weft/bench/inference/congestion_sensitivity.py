"""10.4 Latency Sensitivity to Fabric Congestion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.bench.background import background
from weft.bench.decode_steps import DecodeSteps, decode_steps
from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.serving import Served, serving_of
from weft.bench.setup import Setup
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial

LOADS = tuple(percent / 100 for percent in range(0, 100, 5))
_REPORTED = (0.5, 0.75, 0.9)
_LEAD_PS = 50 * PS_PER_US
_INFLECTION = 1.1
"""Times the idle transfer from which latency has begun to degrade."""


class CongestionSensitivity(BenchTest):
    """Requests and decode steps under more and more background traffic."""

    section = "10.4"
    name = "congestion-sensitivity"
    title = "Latency Sensitivity to Fabric Congestion"
    objective = "From which load of the fabric on TTFT and ITL suffer, and how much."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        loads = setup.choose(smoke=(0.0, 0.5, 0.9), standard=(0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 0.95), full=LOADS)
        serving = serving_of(setup, 4, 2) if len(setup.subject.servers) >= 4 else serving_of(setup)
        tokens = setup.choose(smoke=512, standard=2048, full=8192)
        waves = setup.choose(smoke=2, standard=4, full=20)
        prefill_ps, period_ps = serving.times.prefill_ps(tokens), 2 * serving.times.prefill_ps(tokens)
        instances = len(serving.prefill) * serving.instances_per_host
        requests = [wave * period_ps / PS_PER_S for wave in range(waves) for _ in range(instances)]
        item = serving.arriving(setup, requests, tokens)
        transfer_ps = (
            tokens * serving.kv_bytes_per_token // serving.tensor * 8 * PS_PER_S // setup.subject.rank_rate_bps
        )
        window_ps = _LEAD_PS + 3 * transfer_ps + 20 * PS_PER_US
        steps = _steps(setup, window_ps, prefill_ps)

        def trial(load: float) -> Trial:
            flows = [
                _later(flow, prefill_ps + wave * period_ps - _LEAD_PS)
                for wave in range(waves)
                for flow in background(setup, load, window_ps)
            ]
            others = [setup.flows(flows)] if flows else []
            return setup.trial(f"background {load:.0%}", [{"together": [item, steps.groups.item(setup), *others]}])

        runs = dict(zip(loads, (yield [trial(load) for load in loads]), strict=True))
        found = {load: Served(run) for load, run in runs.items()}
        itl_ps = {load: steps.fabric_ps(run) + steps.compute_ps for load, run in runs.items()}
        first_ms = {load: served.first_token_percentile_ms() for load, served in found.items()}
        transfer_us = {load: served.transfer_percentile_us() for load, served in found.items()}
        itl_ms = {load: float(np.percentile(each, 99)) / PS_PER_MS for load, each in itl_ps.items()}
        inflection = next((load for load in loads if transfer_us[load] > _INFLECTION * transfer_us[0.0]), None)
        reported = [load for load in _REPORTED if load in first_ms]
        return Measured(
            tables=[
                ReportTable(
                    "Latency by background load",
                    [
                        "background (%)",
                        "TTFT P99 (ms)",
                        "transfer P99 (us)",
                        "ITL P99 (ms)",
                        "TTFT factor",
                        "transfer factor",
                        "ITL factor",
                    ],
                    [_row(load, first_ms, transfer_us, itl_ms) for load in loads],
                    "factors: over the same without background. "
                    + (
                        f"Inflection: at {inflection:.0%} a transfer takes {_INFLECTION} times as long as without"
                        if inflection is not None
                        else f"No load makes transfers {_INFLECTION} times as long"
                    ),
                )
            ],
            curves=[
                CurveFigure(
                    f"{name} by background load",
                    Axis("background (%)", "%"),
                    Axis(f"{name} ({unit})", unit),
                    [curve(name, [100 * load for load in loads], values.values())],
                )
                for name, unit, values in (
                    ("TTFT P99", "ms", first_ms),
                    ("transfer P99", "us", transfer_us),
                    ("ITL P99", "ms", itl_ms),
                )
            ],
            kpis=[KpiValue("ITL", itl_ms[load], f"P99, background {load:.0%}") for load in (loads[0], *reported)],
            repeatability=[
                repeatability(
                    f"transfer, background {loads[-1]:.0%}", "us", (found[loads[-1]].transfer_ps / 1e6).tolist()
                )
            ],
            scaled=[
                serving.described(),
                f"{counted(len(requests), 'request')} of {tokens} tokens; background runs around the transfers, "
                f"{window_ps / PS_PER_US:g} us each time, between all pairs of ranks at a share of their NICs' rate",
                steps.described,
                *([] if len(loads) == len(LOADS) else [f"{counted(len(loads), 'load')} in place of steps of 5 %"]),
            ],
        )


def _steps(setup: Setup, window_ps: int, prefill_ps: int) -> DecodeSteps:
    """Return decode steps in the first window of background."""
    steps = decode_steps(setup, prefill_ps, tokens=1)
    each_ps = steps.dispatches.count * steps.dispatches.interval_ps
    return replace(steps, tokens=max(2, min(8, (window_ps - _LEAD_PS) // each_ps)))


def _later(flow: Flow, by_ps: int) -> Flow:
    return replace(flow, start_ps=max(0, flow.start_ps + by_ps))


def _row(load: float, *columns: dict[float, float]) -> list[Cell]:
    return [
        round(100 * load),
        *(round(values[load], 4) for values in columns),
        *(round(values[load] / values[0.0], 4) for values in columns),
    ]
