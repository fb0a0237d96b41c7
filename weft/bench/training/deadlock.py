"""7.4 PFC Storm and Deadlock Resilience."""

from __future__ import annotations

import numpy as np

from weft.bench.congestion import pauses
from weft.bench.figures import curve
from weft.bench.measures import goodput_bps
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.storms import WITHOUT_WATCHDOG, StormTimes
from weft.bench.unpaced import UNPACED
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, TrialRun

_WINDOWS = 50
_WATCHDOG = "PFC watchdog"
_NO_WATCHDOG = "no watchdog"


class StormAndDeadlock(BenchTest):
    """Cyclic traffic, and a NIC that pauses without end, with and without a watchdog."""

    section = "7.4"
    name = "storm-deadlock"
    title = "PFC Storm and Deadlock Resilience"
    objective = "Whether adversarial traffic or a broken NIC stops a lossless fabric, and for how long."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        setup.require_pfc()
        times = _times(setup)
        victims = [pair for pair in subject.pairs if 0 not in pair]
        if not victims:
            raise NotApplicableError(f"a storm and flows past it take 4 endpoints; the fabric has {subject.ranks}")
        flows = _storm_flows(setup, times, victims)
        watchdogs = {_NO_WATCHDOG: WITHOUT_WATCHDOG, _WATCHDOG: times.watchdog}
        runs = yield [
            setup.trial("cyclic traffic", [setup.flows(_cyclic(setup, times.traffic_ps))], UNPACED),
            *(
                setup.trial(f"a NIC storms, {name}", [setup.flows(flows)], changes, events=[times.event(setup, 0)])
                for name, changes in watchdogs.items()
            ),
        ]
        cyclic, storms = runs[0], dict(zip(watchdogs, runs[1:], strict=True))
        stopped = {name: _longest_silence_ps(run, victims, times) for name, run in storms.items() if not run.error}
        deadlocks = sum(bool(run.error) for run in runs)
        return Measured(
            tables=[
                ReportTable(
                    "Adversarial traffic and storms",
                    [
                        "trial",
                        "deadlock",
                        "storms found",
                        "PAUSE frames",
                        "victims' longest silence (us)",
                        "goodput (Gbps)",
                        "dropped",
                    ],
                    [
                        _row("cyclic: each switch to the next, and to one more", cyclic, None),
                        *(_row(f"NIC storm, {name}", run, stopped.get(name)) for name, run in storms.items()),
                    ],
                    f"the NIC of {subject.fabric.hosts[0].name} pauses from {format_time(times.begin_ps)} to "
                    f"{format_time(times.end_ps)}; victims are flows between other hosts",
                )
            ],
            curves=[
                CurveFigure(
                    "Victims' rate during a NIC storm",
                    Axis("time (us)", "us"),
                    Axis("Gbps"),
                    [curve(name, *_rates(run, victims, times)) for name, run in storms.items() if not run.error],
                )
            ],
            kpis=[KpiValue("PFC Deadlock", float(deadlocks), "cyclic traffic and two storms")],
            scaled=[
                f"traffic of {format_time(times.traffic_ps)} in place of 300 s; the watchdog's times are "
                f"{format_time(times.watchdog_ps)}",
                "Weft refuses routes that make a cycle of buffers before the run (pfc.allow_deadlock); these make none",
            ],
            anomalies=[f"{run.trial.label}: {run.error}" for run in runs if run.error],
        )


def _times(setup: Setup) -> StormTimes:
    unit_ps = setup.choose(smoke=100, standard=1000, full=20_000) * PS_PER_US
    return StormTimes(10 * unit_ps, 2 * unit_ps, 6 * unit_ps, unit_ps // 2)


def _cyclic(setup: Setup, duration_ps: int) -> list[Flow]:
    """Return transfers from the ranks of each switch to ranks of the next two, which need every port both ways."""
    subject = setup.subject
    switches = list(dict.fromkeys(subject.edges))
    ranks = {switch: [rank for rank in range(subject.ranks) if subject.edges[rank] == switch] for switch in switches}
    size = subject.rank_rate_bps * duration_ps // (8 * PS_PER_S) // 4
    flows = []
    for place, switch in enumerate(switches):
        for step in (1, 2):
            others = ranks[switches[(place + step) % len(switches)]]
            # All of a switch's ranks send to one of the next: a congested port in each switch of the cycle.
            for rank in ranks[switch]:
                if (
                    others[0] != rank
                    and subject.fabric.hops_between(subject.edges[rank], subject.edges[others[0]]) is not None
                ):
                    flows += setup.transfer(rank, others[0], size // max(1, len(ranks[switch])))
    if not flows:
        raise NotApplicableError("no switch reaches another one")
    return flows


def _storm_flows(setup: Setup, times: StormTimes, victims: list[tuple[int, int]]) -> list[Flow]:
    """Return messages at half the line rate between other hosts, and to the host whose NIC storms."""
    subject = setup.subject
    window_ps = times.traffic_ps // _WINDOWS
    size = max(1024, subject.rank_rate_bps * window_ps // (8 * PS_PER_S) // 2)
    to_storm = subject.senders_to(0, 1) or []
    return [
        flow
        for number in range(_WINDOWS)
        for source, destination in [*victims, *((sender, 0) for sender in to_storm)]
        for flow in setup.transfer(source, destination, size, number * window_ps)
    ]


def _ends(run: TrialRun, victims: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    flows = run.flows
    chosen = np.isin(flows["source"], [source for source, _ in victims]) & (flows["destination"] != 0)
    return (flows["start_ps"] + flows["completion_ps"])[chosen], flows["size_bytes"][chosen]


def _longest_silence_ps(run: TrialRun, victims: list[tuple[int, int]], times: StormTimes) -> int:
    """Return the longest time in which no message of a victim ended."""
    ends = np.sort(_ends(run, victims)[0])
    return int(np.diff(ends[ends <= 2 * times.traffic_ps], prepend=0).max(initial=0))


def _rates(run: TrialRun, victims: list[tuple[int, int]], times: StormTimes) -> tuple[list[float], list[float]]:
    ends, sizes = _ends(run, victims)
    edges = np.linspace(0, 1.5 * times.traffic_ps, _WINDOWS + 1)
    sent = np.histogram(ends, edges, weights=sizes)[0]
    width_s = (edges[1] - edges[0]) / PS_PER_S
    return ((edges[:-1] + edges[1:]) / 2 / PS_PER_US).tolist(), (sent * 8 / width_s / 1e9).tolist()


def _row(name: str, run: TrialRun, silence_ps: int | None) -> list[Cell]:
    if run.error:
        return [name, "yes", "", "", "", 0.0, ""]
    results = run.results
    return [
        name,
        "no",
        len([each for each in results.pfc_watchdog if each.storms_detected]),
        pauses(run),
        "" if silence_ps is None else round(silence_ps / PS_PER_US, 1),
        round(goodput_bps(run) / 1e9, 1),
        sum(results.drops.values()),
    ]
