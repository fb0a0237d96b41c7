"""8.4 PFC Storm and Deadlock Resilience."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.bench import congestion
from weft.bench.figures import curve
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.storms import WITHOUT_WATCHDOG, StormTimes
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import Procedure, TrialRun

_WINDOWS = 60
_BROKEN = 0
"""The rank with a NIC that pauses without end."""


class InferencePfcStorm(BenchTest):
    """KV caches between all hosts while traffic makes a cycle of switches wait, and while a NIC pauses for ever."""

    section = "8.4"
    name = "pfc-storm"
    title = "PFC Storm and Deadlock Resilience"
    objective = "Whether KV cache transfers stop when a NIC or a cycle of full buffers pauses the fabric."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        setup.require_pfc()
        victims = [pair for pair in subject.pairs if _BROKEN not in pair]
        if not victims:
            raise NotApplicableError(f"a storm and caches past it take 4 endpoints; the fabric has {subject.ranks}")
        unit_ps = setup.choose(smoke=50, standard=500, full=20_000) * PS_PER_US
        times = StormTimes(12 * unit_ps, 3 * unit_ps, 6 * unit_ps, unit_ps)
        caches = _caches(setup, times, victims)
        to_broken = subject.senders_to(_BROKEN, 4) or subject.senders_to(_BROKEN, 1) or []
        stormed = [*caches, *(flow for sender in to_broken for flow in _stream(setup, times, sender, _BROKEN))]
        event = times.event(setup, _BROKEN)
        observe = {"pauses": True}
        names = ("cyclic traffic", "NIC storm", "NIC storm, PFC watchdog")
        runs = yield [
            setup.trial(
                names[0],
                [{"together": [setup.flows(caches), setup.flows(_cyclic(setup, times))]}],
                WITHOUT_WATCHDOG,
                observe=observe,
            ),
            setup.trial(names[1], [setup.flows(stormed)], WITHOUT_WATCHDOG, observe=observe, events=[event]),
            setup.trial(names[2], [setup.flows(stormed)], times.watchdog, observe=observe, events=[event]),
        ]
        found = dict(zip(names, runs, strict=True))
        working = {name: run for name, run in found.items() if not run.error}
        return Measured(
            tables=[
                ReportTable(
                    "KV caches under storms",
                    [
                        "trial",
                        "PFC storm",
                        "deadlock",
                        "PAUSE propagation (hops)",
                        "longest without a cache (ms)",
                        "recovery (ms)",
                        *congestion.HEADINGS,
                    ],
                    [_row(setup, name, run, times, victims) for name, run in found.items()],
                    "caches go between hosts with working NICs, host by host in equal intervals; recovery: from the "
                    "end of the storm until all caches posted before it have arrived",
                )
            ],
            curves=[
                CurveFigure(
                    "KV cache rate",
                    Axis("time (us)", "us"),
                    Axis("rate (GB/s)", "GB/s"),
                    [curve(name, *_rates(run, victims, times)) for name, run in working.items()],
                )
            ],
            kpis=[KpiValue("PFC_frame_count", float(congestion.pauses(run)), name) for name, run in working.items()],
            scaled=[
                f"traffic of {format_time(times.traffic_ps)} in place of 300 s, a storm from "
                f"{format_time(times.begin_ps)} to {format_time(times.end_ps)}, a watchdog with times of "
                f"{format_time(times.watchdog_ps)}",
                "Weft refuses routes that make a cycle of buffers before a run (pfc.allow_deadlock); the cyclic "
                "traffic goes from each switch's hosts to those of the next one over the fabric's own routes",
            ],
            anomalies=[f"{run.trial.label}: {run.error}" for run in runs if run.error],
        )


def _stream(setup: Setup, times: StormTimes, source: int, destination: int) -> list[Flow]:
    """Return a message of a quarter of the line rate in each window."""
    window_ps = times.traffic_ps // _WINDOWS
    size = max(4096, setup.subject.rank_rate_bps * window_ps // (8 * PS_PER_S) // 4)
    return [
        flow for number in range(_WINDOWS) for flow in setup.transfer(source, destination, size, number * window_ps)
    ]


def _caches(setup: Setup, times: StormTimes, victims: list[tuple[int, int]]) -> list[Flow]:
    return [flow for pair in victims for flow in _stream(setup, times, *pair)]


def _cyclic(setup: Setup, times: StormTimes) -> list[Flow]:
    """Return messages from all ranks of each switch to the first rank of the next one, at the receiver's line rate."""
    subject = setup.subject
    switches = list(dict.fromkeys(subject.edges))
    ranks = {switch: [rank for rank in range(subject.ranks) if subject.edges[rank] == switch] for switch in switches}
    size = subject.rank_rate_bps * (times.end_ps - times.begin_ps) // (8 * PS_PER_S)
    flows = []
    for place, switch in enumerate(switches):
        to = ranks[switches[(place + 1) % len(switches)]][0]
        reached = subject.fabric.hops_between(switch, subject.edges[to]) is not None
        senders = [rank for rank in ranks[switch] if reached and subject.server_of[rank] != subject.server_of[to]]
        for rank in senders:
            flows += setup.transfer(rank, to, max(4096, size // len(senders)), times.begin_ps)
    if not flows:
        raise NotApplicableError("no switch with hosts reaches another one")
    return flows


def _ends(run: TrialRun, victims: list[tuple[int, int]], before_ps: int | None = None) -> Integers:
    flows = run.flows
    chosen = (flows["item"] == 0) & np.isin(flows["source"], [source for source, _ in victims])
    chosen &= flows["destination"] != _BROKEN
    if before_ps is not None:
        chosen &= flows["start_ps"] < before_ps
    return np.asarray((flows["start_ps"] + flows["completion_ps"])[chosen], np.int64)


def _rates(
    run: TrialRun, victims: list[tuple[int, int]], times: StormTimes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = _ends(run, victims)
    size = int(np.median(run.flows["size_bytes"]))
    edges = np.linspace(0, 1.25 * times.traffic_ps, _WINDOWS // 2 + 1)
    width_s = float(edges[1] - edges[0]) / PS_PER_S
    return (edges[:-1] + edges[1:]) / 2 / PS_PER_US, np.histogram(ends, edges)[0] * size / width_s / 1e9


def _row(setup: Setup, name: str, run: TrialRun, times: StormTimes, victims: list[tuple[int, int]]) -> list[Cell]:
    if run.error:
        return [name, "", "yes", "", "", "", *("" for _ in congestion.HEADINGS)]
    ends = np.sort(_ends(run, victims))
    silence_ps = int(np.diff(ends, prepend=0).max(initial=0))
    recovery_ps = max(0, int(_ends(run, victims, times.end_ps).max()) - times.end_ps)
    spread = _propagation(setup, run)
    return [
        name,
        "yes" if run.results.nic_storms or any(each.storms_detected for each in run.results.pfc_watchdog) else "no",
        "no",
        spread,
        round(silence_ps / PS_PER_MS, 4),
        round(recovery_ps / PS_PER_MS, 4),
        *congestion.congestion_row(run, setup.subject),
    ]


def _propagation(setup: Setup, run: TrialRun) -> int:
    """Return over how many links pauses have spread: the most switches, and host, away from the first paused port."""
    fabric = setup.subject.fabric
    ports, begins = run.run.texts("pauses", "port"), run.run.integers("pauses", "begin_ps")
    if not len(ports):
        return 0
    switches = {switch.name for switch in fabric.switches}
    order = np.argsort(begins, kind="stable")
    nodes = list(dict.fromkeys(str(ports[row]).split(":")[0] for row in order))
    first = next((node for node in nodes if node in switches), None)
    if first is None:
        return 1
    edges = {host.name: host.nics[0].switch for host in fabric.hosts}
    return 1 + max(
        (fabric.hops_between(first, node if node in switches else edges[node]) or 0) + (node not in switches)
        for node in nodes
    )
