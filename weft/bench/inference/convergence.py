"""8.3 Congestion Control Convergence for Mixed Traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.bench import congestion
from weft.bench.background import background, payload_share
from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.fairness import jain_index
from weft.quantities.readable import format_size, format_time
from weft.quantities.units import KIB, PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, TrialRun

_KV, _EP = "KV caches", "expert dispatches"
_KV_BYTES, _EP_BYTES = 64 * KIB, 16 * KIB
_FIRST_LOAD, _SECOND_LOAD = 0.8, 0.4
_BINS = 40
_WITHIN = 0.05
"""Largest deviation from the steady rate once it has converged."""


@dataclass(frozen=True, eq=False)
class _Rates:
    """Rates of both classes in equal bins of time, GB/s; traffic of the second begins behind a quarter of the bins."""

    times_us: NDArray[np.float64]
    gbytes_per_s: dict[str, NDArray[np.float64]]

    def steady(self, name: str) -> float:
        """Return the mean rate in the last quarter."""
        return float(self.gbytes_per_s[name][-_BINS // 4 :].mean())

    def converged_us(self, onset_us: float) -> float | None:
        """Return when both rates, averaged over 4 bins, are within 5 % of their steady ones for good; None: never."""
        width_us = float(self.times_us[1] - self.times_us[0])
        last_off = -1
        for name, rates in self.gbytes_per_s.items():
            smooth = np.convolve(rates, np.ones(4) / 4, "valid")
            off = np.abs(smooth - self.steady(name)) > _WITHIN * self.steady(name)
            last_off = max(last_off, int(np.flatnonzero(off)[-1]) if off.any() else -1)
        if last_off >= _BINS - 4:
            return None
        return max(0.0, (last_off + 1) * width_us - onset_us)


class MixedConvergence(BenchTest):
    """One class of traffic is under way when the other one begins."""

    section = "8.3"
    name = "convergence"
    title = "Congestion Control Convergence for Mixed Traffic"
    objective = "How long congestion control takes to settle when expert dispatches join KV caches, and the reverse."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        if len(setup.subject.servers) < 2:
            raise NotApplicableError("the fabric has one host")
        duration_ps = setup.choose(smoke=200, standard=2000, full=100_000) * PS_PER_US
        orders = ((_KV, _EP), (_EP, _KV))
        sizes = {_KV: _KV_BYTES, _EP: _EP_BYTES}
        onset_ps = duration_ps // 4

        def flows(name: str, load: float, begin_ps: int) -> list[Flow]:
            sent = background(setup, load, duration_ps - begin_ps, message_bytes=sizes[name])
            shift = 1 if name == _EP else 0
            return [_moved(setup, flow, begin_ps, shift) for flow in sent]

        runs = yield [
            setup.trial(
                f"{second} join {first}",
                [
                    {
                        "together": [
                            setup.flows(flows(first, _FIRST_LOAD, 0)),
                            setup.flows(flows(second, _SECOND_LOAD, onset_ps)),
                        ]
                    }
                ],
            )
            for first, second in orders
        ]
        found = {order: _rates(run, order, duration_ps) for order, run in zip(orders, runs, strict=True)}
        onset_us = onset_ps / PS_PER_US
        control = setup.subject.spec.options.transport.congestion_control
        return Measured(
            tables=[
                ReportTable(
                    f"Convergence of {control}",
                    [
                        "first",
                        "then",
                        "converged after (ms)",
                        f"steady {_KV} (GB/s)",
                        f"steady {_EP} (GB/s)",
                        "JFI of shares",
                        *congestion.HEADINGS,
                    ],
                    [_row(setup, order, found[order], run, onset_us) for order, run in zip(orders, runs, strict=True)],
                    f"JFI of both classes' rates over the rates that they ask for, {_FIRST_LOAD:.0%} and "
                    f"{_SECOND_LOAD:.0%} of the NICs'; converged: within {_WITHIN:.0%} of the mean of the last quarter",
                )
            ],
            curves=[
                CurveFigure(
                    f"Rates as {second} join {first}",
                    Axis("time (us)", "us"),
                    Axis("rate (GB/s)", "GB/s"),
                    [
                        curve(name, found[first, second].times_us, rates)
                        for name, rates in found[first, second].gbytes_per_s.items()
                    ],
                )
                for first, second in orders
            ],
            kpis=[
                KpiValue("ECN_marking_rate", congestion.marked_percent(run, setup.subject), f"{second} join {first}")
                for (first, second), run in zip(orders, runs, strict=True)
            ],
            scaled=[
                f"{format_time(duration_ps)} of traffic; the second class begins after a quarter",
                f"{_KV} are blocks of {format_size(_KV_BYTES)}, {_EP} messages of {format_size(_EP_BYTES)} to the next "
                "of the ranks that the caches go to, both as open streams: rates are those of completed messages",
            ],
            anomalies=[
                f"{second} join {first}: rates do not stay within {_WITHIN:.0%} of a steady one"
                for first, second in orders
                if found[first, second].converged_us(onset_us) is None
            ],
        )


def _moved(setup: Setup, flow: Flow, begin_ps: int, shift: int) -> Flow:
    """Return a flow that begins later, and goes to the rank behind its destination that is on the same host or next."""
    subject = setup.subject
    ranks = [rank for rank in range(subject.ranks) if subject.server_of[rank] != subject.server_of[flow.source]]
    to = ranks[(ranks.index(flow.destination) + shift) % len(ranks)]
    return Flow(flow.source, to, flow.size_bytes, flow.plane, flow.start_ps + begin_ps, flow.queue_pairs)


def _rates(run: TrialRun, order: tuple[str, str], duration_ps: int) -> _Rates:
    flows = run.flows
    ends = flows["start_ps"] + flows["completion_ps"]
    edges = np.linspace(0, duration_ps, _BINS + 1)
    width_s = duration_ps / _BINS / PS_PER_S
    rates = {}
    for item, name in enumerate(order):
        chosen = flows["item"] == item
        sent = np.histogram(ends[chosen], edges, weights=flows["size_bytes"][chosen])[0]
        rates[name] = sent / width_s / 1e9
    return _Rates((edges[:-1] + edges[1:]) / 2 / PS_PER_US, rates)


def _row(setup: Setup, order: tuple[str, str], rates: _Rates, run: TrialRun, onset_us: float) -> list[Cell]:
    converged_us = rates.converged_us(onset_us)
    loads = dict(zip(order, (_FIRST_LOAD, _SECOND_LOAD), strict=True))
    line = setup.subject.rank_rate_bps * payload_share(setup) * len(setup.subject.pairs) / 8e9
    shares = [rates.steady(name) / (load * line) for name, load in loads.items()]
    return [
        *order,
        "not within the trial" if converged_us is None else round(converged_us * PS_PER_US / PS_PER_MS, 4),
        round(rates.steady(_KV), 2),
        round(rates.steady(_EP), 2),
        round(jain_index(shares), 4),
        *congestion.congestion_row(run, setup.subject),
    ]
