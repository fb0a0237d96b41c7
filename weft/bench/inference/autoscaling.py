"""12.2 Dynamic Autoscaling Response Time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.link_failures import control_of
from weft.bench.measures import repeatability
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import KIB, PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, TrialRun

_LOAD = 0.4
_BINS = 20
_WITHIN = 0.05
_UP, _DOWN = "scale-up", "scale-down"


@dataclass(frozen=True)
class _Plan:
    """Hosts that serve all the time, those that join or leave, and when."""

    pairs: tuple[tuple[int, int], ...]
    changing: tuple[tuple[int, int], ...]
    event_ps: int
    duration_ps: int


class Autoscaling(BenchTest):
    """Decode hosts that come to a running system, and that leave it."""

    section = "12.2"
    name = "autoscaling"
    title = "Dynamic Autoscaling Response Time"
    objective = "How soon caches reach decode workers that are added, and what others notice."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        plan = _plan(setup)
        hosts = [setup.subject.fabric.hosts[rank].name for _, rank in plan.changing]
        steady, new = _streams(setup, plan.pairs, 0, plan.duration_ps), {}
        new[_UP] = _streams(setup, plan.changing, plan.event_ps, plan.duration_ps)
        new[_DOWN] = _streams(setup, plan.changing, 0, plan.event_ps)
        at = f"{plan.event_ps}ps"
        # Caches to hosts that leave have arrived when their links go.
        gone = f"{plan.event_ps + (plan.duration_ps - plan.event_ps) // 2}ps"
        events: dict[str, list[dict[str, Any]]] = {
            _UP: [event for host in hosts for event in ({"host": host, "state": "down"}, _event(host, "up", at))],
            _DOWN: [_event(host, "down", gone) for host in hosts],
        }
        runs = yield [
            setup.trial(
                f"{name} by {counted(len(hosts), 'host')}",
                [{"together": [steady.item(setup), new[name].item(setup)]}],
                events=events[name],
            )
            for name in (_UP, _DOWN)
        ]
        found = dict(zip((_UP, _DOWN), runs, strict=True))
        tails = {name: _tails_us(steady, run, plan) for name, run in found.items()}
        return Measured(
            tables=[
                ReportTable(
                    "Response to scaling",
                    [
                        "event",
                        "fabric convergence (ms)",
                        "first transfer (ms)",
                        "steady state (ms)",
                        "P99 of others before (us)",
                        "P99 of others after (us)",
                        "packets dropped",
                        "retransmitted",
                    ],
                    [_row(name, run, new[name], steady, plan, tails[name]) for name, run in found.items()],
                    "all from the event on; first transfer: until the first cache has arrived at a new host",
                )
            ],
            curves=[
                CurveFigure(
                    f"KV cache rate, {name}",
                    Axis("time (us)", "us"),
                    Axis("rate (GB/s)", "GB/s"),
                    [curve("all hosts", *_rates(run, plan))],
                )
                for name, run in found.items()
            ],
            repeatability=[
                repeatability("P99 of others, scale-up", "us", list(tails[_UP])),
            ],
            scaled=[
                f"joining and leaving: {counted(len(hosts), 'decode host')}; serving all the time: "
                f"{counted(len(plan.pairs), 'pair')}; all send blocks of {format_size(_block(setup))} at {_LOAD:.0%} "
                f"of the NICs' rate, for {format_time(plan.duration_ps)}",
                "hosts join as their links come up, and leave as these go down, after their caches have ended; "
                "starting the software of a worker takes no time",
                control_of(setup),
            ],
            anomalies=[f"{run.trial.label}: {run.error}" for run in runs if run.error],
        )


def _plan(setup: Setup) -> _Plan:
    subject = setup.subject
    one_way = [pair for pair in subject.pairs if pair[0] < pair[1]]
    hosts = len(subject.servers)
    if hosts < 4 or len(one_way) < 2:
        raise NotApplicableError(f"hosts that join others take 4 hosts; the fabric has {hosts}")
    joining = min(4, hosts // 4)
    servers = {subject.server_of[one_way[-1 - number][1]] for number in range(len(one_way))}
    chosen = set(sorted(servers)[-joining:])
    changing = tuple(pair for pair in one_way if subject.server_of[pair[1]] in chosen)
    pairs = tuple(pair for pair in one_way if pair not in changing)
    if not pairs:
        raise NotApplicableError("no pair of hosts is left to serve while others join")
    duration_ps = setup.choose(smoke=400, standard=3000, full=100_000) * PS_PER_US
    return _Plan(pairs, changing, duration_ps // 4, duration_ps)


def _block(setup: Setup) -> int:
    """Return the size of a block: small, so that many end in a short time."""
    return setup.choose(smoke=16 * KIB, standard=16 * KIB, full=256 * KIB)


def _event(host: str, state: str, at: str) -> dict[str, Any]:
    return {"host": host, "state": state, "at": at}


def _streams(setup: Setup, pairs: tuple[tuple[int, int], ...], begin_ps: int, end_ps: int) -> FlowGroups:
    block = _block(setup)
    interval_ps = round(block * 8 * PS_PER_S / (setup.subject.rank_rate_bps * _LOAD))
    found = FlowGroups()
    for start_ps in range(begin_ps, end_ps, interval_ps):
        # Pairs begin one behind the other, or all their blocks would meet at the same moments.
        for place, (source, destination) in enumerate(pairs):
            later_ps = place * interval_ps // len(pairs)
            found.add(setup.transfer(source, destination, block, start_ps + later_ps))
    return found


def _tails_us(steady: FlowGroups, run: TrialRun, plan: _Plan) -> tuple[float, float]:
    """Return P99 of the others' blocks, of those before and those behind the event."""
    times = steady.times(run, 0)
    before = times.start_ps < plan.event_ps
    return (
        float(np.percentile(times.latency_ps[before], 99)) / PS_PER_US,
        float(np.percentile(times.latency_ps[~before], 99)) / PS_PER_US,
    )


def _rates(run: TrialRun, plan: _Plan) -> tuple[list[float], list[float]]:
    flows = run.flows
    edges = np.linspace(0, plan.duration_ps, _BINS + 1)
    sent = np.histogram(flows["start_ps"] + flows["completion_ps"], edges, weights=flows["size_bytes"])[0]
    width_s = plan.duration_ps / _BINS / PS_PER_S
    return ((edges[:-1] + edges[1:]) / 2 / PS_PER_US).tolist(), (sent / width_s / 1e9).tolist()


def _row(
    name: str, run: TrialRun, new: FlowGroups, steady: FlowGroups, plan: _Plan, tails_us: tuple[float, float]
) -> list[Cell]:
    state = "up" if name == _UP else "down"
    events = [each for each in run.results.link_events if each.state == state and each.at_ps is not None]
    convergence_ps = max((each.recovery_ps or 0 for each in events), default=0)
    times = new.times(run, 1)
    first_ps = int((times.start_ps + times.latency_ps).min()) - plan.event_ps
    return [
        name,
        round(convergence_ps / PS_PER_MS, 5),
        round(first_ps / PS_PER_MS, 5) if name == _UP else "",
        _steady_ms(run, plan),
        *(round(each, 2) for each in tails_us),
        sum(run.results.drops.values()),
        run.results.retransmissions,
    ]


def _steady_ms(run: TrialRun, plan: _Plan) -> Cell:
    """Return from the event until the rate, averaged over 2 bins, stays within 5 % of the last third's."""
    _, rates = _rates(run, plan)
    smooth = np.convolve(rates, np.ones(2) / 2, "valid")
    final = float(np.mean(rates[-_BINS // 3 :]))
    off = np.flatnonzero(np.abs(smooth - final) > _WITHIN * final)
    width_ps = plan.duration_ps / _BINS
    if len(off) and off[-1] >= len(smooth) - 1:
        return "not within the trial"
    settled_ps = (off[-1] + 1) * width_ps if len(off) else 0.0
    return round(max(0.0, settled_ps - plan.event_ps) / PS_PER_MS, 4)
