"""7.3 DCQCN Convergence Time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.bench.figures import curve
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.variants import Changes
from weft.engine import congestion_control_kind
from weft.quantities.fairness import jain_index
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial, TrialRun

FLOWS = (4, 16, 64, 256)
"""M of the draft: flows before the onset; as many join them."""
WITHIN = 0.1
"""Largest deviation of a flow's rate from its fair share."""
_WINDOWS = 100
_SHOWN = 8


@dataclass(frozen=True)
class Convergence:
    """Rates of all flows after the onset.

    Attributes:
        time_ps: from the onset until all flows stay within 10 % of their fair share; None if that is never so.
        fairness: Jain's index of the bytes of all flows in the last quarter.
        curves: rate by time of some flows, as a share of the fair one.
    """

    time_ps: int | None
    fairness: float
    curves: list[Curve]


class CongestionConvergence(BenchTest):
    """Time until flows have fair shares after as many have joined them."""

    section = "7.3"
    name = "convergence"
    title = "DCQCN Convergence Time"
    objective = "The time until all flows are within 10 % of their fair share after the number of flows has doubled."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        possible = [count for count in FLOWS if subject.senders_to(0, 2 * count) is not None]
        if not possible:
            raise NotApplicableError(
                f"{2 * FLOWS[0]} flows from different hosts to one; the fabric has {subject.ranks} endpoints"
            )
        counts = setup.choose(smoke=possible[:1], standard=possible, full=possible)
        duration_ps = setup.choose(smoke=1000, standard=5000, full=50_000) * PS_PER_US
        control = subject.spec.options.transport.congestion_control
        presets = _presets(setup)
        chosen = setup.choose(smoke=dict(list(presets.items())[:1]), standard=presets, full=presets)
        keys = [
            (preset, count) for preset in chosen for count in (counts if preset == next(iter(chosen)) else counts[:1])
        ]

        def trial(preset: str, count: int) -> Trial:
            return setup.trial(
                f"{count} + {count} flows, {preset}",
                [setup.flows(doubled_flows(setup, count, duration_ps))],
                chosen[preset],
            )

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        found = {key: convergence_of(run, key[1], duration_ps) for key, run in runs.items()}
        first = keys[0]
        is_dcqcn = control == "dcqcn"
        return Measured(
            tables=[
                ReportTable(
                    f"Convergence of {control}",
                    ["parameters", "flows", "converged after (us)", "JFI of the last quarter"],
                    [_row(key, each, duration_ps) for key, each in found.items()],
                )
            ],
            curves=[
                CurveFigure(
                    f"Rates of {count} + {count} flows, {preset}",
                    Axis("after the onset (us)", "us"),
                    Axis("share of the fair rate"),
                    each.curves,
                    note=f"the first {_SHOWN} flows" if 2 * count > _SHOWN else "",
                )
                for (preset, count), each in found.items()
            ][:3],
            kpis=[
                KpiValue(
                    "DCQCN Convergence",
                    (duration_ps if each.time_ps is None else each.time_ps) / PS_PER_US,
                    f"{count} + {count} flows, {preset}",
                    ">" if each.time_ps is None else "=",
                )
                for (preset, count), each in found.items()
                if is_dcqcn
            ],
            repeatability=[repeatability("JFI of the last quarter", "JFI", [found[first].fairness])],
            scaled=[
                f"flows are watched for {format_time(duration_ps)} after the onset",
                *(
                    f"M = {count} takes {2 * count} senders; the fabric has {subject.ranks} endpoints"
                    for count in FLOWS
                    if count not in possible
                ),
            ],
            anomalies=[
                f"{preset}, {count} + {count} flows: rates are not all within 10 % at the end"
                for (preset, count), each in found.items()
                if each.time_ps is None
            ]
            + ([] if is_dcqcn else [f"the fabric's congestion control is {control}, so the KPI has no value"]),
        )


def _presets(setup: Setup) -> Mapping[str, Changes]:
    """Return the sets of parameters that are compared, the fabric's own first."""
    transport = setup.subject.spec.options.transport
    own = transport.preset or "own parameters"
    kind = congestion_control_kind(transport.congestion_control)
    others = {
        name: {"transport.preset": name, "transport.parameters": None}
        for name in (preset.name for preset in kind.presets)
        if name != own
    }
    return {own: {}, **others}


def doubled_flows(setup: Setup, count: int, duration_ps: int) -> list[Flow]:
    """Return `count` flows from the start on and as many from the onset on, as messages one after another."""
    subject = setup.subject
    senders = subject.senders_to(0, 2 * count) or []
    fair_bps = subject.rank_rate_bps / (2 * count)
    window_ps = duration_ps // _WINDOWS
    message_bytes = max(1024, int(fair_bps * window_ps / (8 * PS_PER_S)))
    flows = []
    for number, sender in enumerate(senders):
        start_ps = 0 if number < count else duration_ps
        # Twice the fair share until the onset, and enough to outlast the end.
        messages = _WINDOWS * (5 if number < count else 3)
        for _ in range(messages):
            flows += setup.transfer(sender, 0, message_bytes, start_ps)
    return flows


def convergence_of(run: TrialRun, count: int, duration_ps: int) -> Convergence:
    """Return what a trial of M + M flows found; the onset is at `duration_ps`, and as long again is looked at."""
    flows = run.flows
    ends = flows["start_ps"] + flows["completion_ps"]
    window_ps = duration_ps / _WINDOWS * 5
    edges = np.arange(duration_ps, 2 * duration_ps + 1, window_ps)
    sources = list(dict.fromkeys(flows["source"].tolist()))
    rates = []
    for source in sources:
        own = np.flatnonzero(flows["source"] == source)
        own = own[np.argsort(ends[own], kind="stable")]
        # Between two ends of messages, which travel one behind the other, bytes arrive evenly.
        times = np.concatenate([[flows["start_ps"][own].min()], ends[own]])
        arrived = np.concatenate([[0], np.cumsum(flows["size_bytes"][own])])
        rates.append(np.diff(np.interp(edges, times, arrived)))
    shares: npt.NDArray[np.float64] = np.array(rates)
    fair = shares.sum(axis=0) / len(sources)
    relative = shares / np.where(fair > 0, fair, 1.0)
    is_outside = np.abs(relative - 1.0).max(axis=0) > WITHIN
    outside = np.flatnonzero(is_outside)
    last = int(outside[-1]) + 1 if len(outside) else 0
    time_ps = None if last >= len(is_outside) else round(last * window_ps)
    quarter = shares[:, -max(1, shares.shape[1] // 4) :].sum(axis=1)
    middles = (edges[:-1] - duration_ps + window_ps / 2) / PS_PER_US
    return Convergence(
        time_ps,
        jain_index(quarter.tolist()),
        [
            curve(f"flow {number}{'' if number < count else ' (joined)'}", middles, relative[number])
            for number in sorted({*range(min(_SHOWN // 2, count)), *range(count, min(count + _SHOWN // 2, 2 * count))})
        ],
    )


def _row(key: tuple[str, int], found: Convergence, duration_ps: int) -> list[Cell]:
    time: Cell = f"> {duration_ps / PS_PER_US:.0f}" if found.time_ps is None else round(found.time_ps / PS_PER_US, 1)
    return [key[0], f"{key[1]} + {key[1]}", time, round(found.fairness, 4)]
