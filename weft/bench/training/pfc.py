"""7.2 PFC Behavior Under Incast."""

from __future__ import annotations

from itertools import product

import numpy as np

from weft.bench.congestion import paused_us, pauses
from weft.bench.figures import curve
from weft.bench.incasts import RATIOS, incast, left_out, possible_ratios
from weft.bench.measures import goodput_bps, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.unpaced import UNPACED
from weft.quantities.readable import format_size
from weft.quantities.units import MIB, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

SENDERS = {"at line rate": UNPACED, "with the fabric's congestion control": {}}


class PfcUnderIncast(BenchTest):
    """Pauses of an incast by the number of senders."""

    section = "7.2"
    name = "pfc-incast"
    title = "PFC Behavior Under Incast"
    objective = "How often and how far switches pause under N:1 incast, and whether headroom suffices."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        setup.require_pfc()
        possible = possible_ratios(setup)
        ratios = setup.choose(smoke=possible[-1:], standard=possible, full=possible)
        size = setup.choose(smoke=2 * MIB, standard=8 * MIB, full=64 * MIB)
        keys = list(product(SENDERS, ratios))

        def trial(senders: str, ratio: int) -> Trial:
            return setup.trial(
                f"{ratio}:1 {senders}",
                [setup.flows(incast(setup, ratio, size))],
                SENDERS[senders],
                observe={"pauses": True},
            )

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        seconds = {key: _time_ps(run) / PS_PER_S for key, run in runs.items()}
        rates = {key: pauses(run) / seconds[key] for key, run in runs.items()}
        most = keys[len(ratios) - 1]
        return Measured(
            tables=[
                ReportTable(
                    f"Incasts of {format_size(size)} from each sender",
                    [
                        "senders",
                        "ratio",
                        "PAUSE frames",
                        "PAUSE frames/s",
                        "paused, all ports (us)",
                        "longest paused port (us)",
                        "tiers paused",
                        "goodput (% of receiver's rate)",
                        "dropped",
                        "largest headroom used (B)",
                        "storms",
                    ],
                    [_row(setup, key, runs[key], seconds[key]) for key in keys],
                    "tiers paused: how far pauses spread from the congested switch, the hosts' own NICs last",
                )
            ],
            curves=[
                CurveFigure(
                    "PAUSE frames by senders",
                    Axis("senders"),
                    Axis("PAUSE frames/s"),
                    [curve(name, ratios, [rates[name, ratio] for ratio in ratios]) for name in SENDERS],
                )
            ],
            kpis=[KpiValue("PFC Behavior", rates[most], f"{most[1]}:1 {most[0]}")],
            repeatability=[repeatability(f"goodput, {most[1]}:1 {most[0]}", "Gbps", [goodput_bps(runs[most]) / 1e9])],
            scaled=[*left_out(setup, RATIOS, possible), f"each sender sends {format_size(size)} once"],
            anomalies=[
                f"{ratio}:1 {name}: {sum(run.results.drops.values())} packets dropped although the class is lossless"
                for (name, ratio), run in runs.items()
                if sum(run.results.drops.values())
            ],
        )


def _time_ps(run: TrialRun) -> int:
    flows = run.flows
    return int((flows["start_ps"] + flows["completion_ps"]).max() - flows["start_ps"].min())


def _row(setup: Setup, key: tuple[str, int], run: TrialRun, seconds: float) -> list[Cell]:
    memory = run.results.memory
    return [
        key[0],
        f"{key[1]}:1",
        pauses(run),
        round(pauses(run) / seconds),
        round(paused_us(run), 1),
        round(max((each.longest_pause_ps for each in memory), default=0) / PS_PER_US, 1),
        _tiers(setup, run),
        round(100 * goodput_bps(run) / setup.subject.rank_rate_bps, 1),
        sum(run.results.drops.values()),
        max((each.largest_headroom_bytes for each in memory), default=0),
        sum(each.storms_detected for each in run.results.pfc_watchdog),
    ]


def _tiers(setup: Setup, run: TrialRun) -> str:
    """Return the roles of the nodes that were paused, from the receiver's switch outwards."""
    roles = {switch.name: switch.role for switch in setup.subject.fabric.switches}
    nodes = {str(port).split(":")[0] for port in np.unique(run.run.texts("pauses", "port").astype(str))}
    found = {roles.get(node, "host") for node in nodes}
    order = ["spine", "core", "leaf", "host"]
    return ", ".join(sorted(found, key=lambda role: order.index(role) if role in order else 0)) or "none"
