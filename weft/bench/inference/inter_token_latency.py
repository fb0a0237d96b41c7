"""10.2 ITL Characterization and Tail Latency."""

from __future__ import annotations

import numpy as np

from weft.bench.background import background
from weft.bench.decode_steps import decode_steps
from weft.bench.expert_dispatch import CANONICAL, Dispatches, even_sizes
from weft.bench.figures import curve
from weft.bench.measures import PERCENTILES, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_MS
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure

_CONDITIONS = {
    "unloaded": (0.0, False),
    "loaded, 50 %": (0.5, False),
    "loaded, 90 %, and further dispatches": (0.9, True),
}


class InterTokenLatency(BenchTest):
    """Decode steps with experts on other hosts, with and without other traffic."""

    section = "10.2"
    name = "inter-token-latency"
    title = "ITL Characterization and Tail Latency"
    objective = "The time from token to token, and the fabric's part of its tail."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        steps = decode_steps(setup)
        further = _further(setup, steps.dispatches)
        trials = []
        for name, (load, has_further) in _CONDITIONS.items():
            items = [steps.groups.item(setup)]
            if flows := background(setup, load, steps.dispatches.end_ps):
                items.append(setup.flows(flows))
            if has_further:
                items.append(further.groups(setup).item(setup))
            trials.append(setup.trial(f"decode steps, {name}", items if len(items) == 1 else [{"together": items}]))
        runs = yield trials
        fabric_ps = {name: steps.fabric_ps(run) for name, run in zip(_CONDITIONS, runs, strict=True)}
        total_ps = {name: each + steps.compute_ps for name, each in fabric_ps.items()}
        return Measured(
            tables=[
                ReportTable(
                    "ITL (ms)",
                    [
                        "condition",
                        "tokens",
                        *(f"P{each:g}" for each in PERCENTILES),
                        "max",
                        "ITL_fabric P50",
                        "ITL_fabric P99",
                        "stalls",
                    ],
                    [_row(name, total_ps[name], each, steps.stall_ps) for name, each in fabric_ps.items()],
                )
            ],
            curves=[
                CurveFigure(
                    "ITL_fabric",
                    Axis("time of all dispatches of a token (ms)", "ms"),
                    Axis("share of the tokens"),
                    [
                        curve(name, np.sort(each) / PS_PER_MS, np.arange(1, len(each) + 1) / len(each))
                        for name, each in fabric_ps.items()
                    ],
                )
            ],
            kpis=[
                KpiValue("ITL", float(np.percentile(each, 99)) / PS_PER_MS, f"P99, {name}")
                for name, each in total_ps.items()
            ],
            repeatability=[
                repeatability(f"ITL, {name}", "ms", (each / PS_PER_MS).tolist()) for name, each in total_ps.items()
            ],
            scaled=[
                steps.described,
                f"{counted(steps.tokens, 'token')} of each condition in place of 10,000; layers begin in equal "
                "intervals, behind a late one when that has ended",
            ],
        )


def _further(setup: Setup, dispatches: Dispatches) -> Dispatches:
    """Return dispatches of another model on the same ranks, between those that are measured."""
    ranks = len(dispatches.members)
    sizes = even_sizes(CANONICAL["M1"], 8, ranks)
    first_ps = dispatches.interval_ps // 2
    return Dispatches(dispatches.members, sizes, dispatches.count, dispatches.interval_ps, first_ps)


def _row(name: str, total_ps: Integers, fabric_ps: Integers, stall_ps: float) -> list[Cell]:
    return [
        name,
        len(total_ps),
        *(round(float(each) / PS_PER_MS, 5) for each in np.percentile(total_ps, PERCENTILES)),
        round(float(total_ps.max()) / PS_PER_MS, 5),
        round(float(np.median(fabric_ps)) / PS_PER_MS, 5),
        round(float(np.percentile(fabric_ps, 99)) / PS_PER_MS, 5),
        int((total_ps > stall_ps).sum()),
    ]
