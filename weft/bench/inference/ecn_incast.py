"""8.1 ECN Marking Under Inference Incast."""

from __future__ import annotations

from itertools import product

import numpy as np

from weft.bench import congestion
from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted, format_size
from weft.quantities.units import MIB, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

SENDERS = (2, 4, 8, 16, 32)
THRESHOLDS = (100_000, 500_000, 1_000_000, 5_000_000)
_RECEIVER = 0
_SAMPLES = 200
Key = tuple[int, int]


class EcnIncast(BenchTest):
    """Prefill workers that send caches to one decode worker at once, by thresholds of ECN."""

    section = "8.1"
    name = "ecn-incast"
    title = "ECN Marking Under Inference Incast"
    objective = "Whether switches mark at their thresholds when several KV caches come to one port."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        senders = possible_senders(setup, SENDERS)
        thresholds = setup.choose(smoke=THRESHOLDS[:1], standard=THRESHOLDS, full=THRESHOLDS)
        chosen = setup.choose(smoke=(senders[0], senders[-1]), standard=tuple(senders), full=tuple(senders))
        block = setup.choose(smoke=MIB, standard=4 * MIB, full=16 * MIB)
        iterations = setup.choose(smoke=1, standard=3, full=20)
        port = port_to(setup, _RECEIVER)
        keys = list(product(thresholds, chosen))
        groups = {count: _incast(setup, count, block) for count in chosen}

        def trial(threshold: int, count: int, iteration: int = 0) -> Trial:
            duration_ps = count * block * 8 * PS_PER_S // subject.rank_rate_bps
            return setup.trial(
                f"{count}:1, threshold {format_size(threshold)}",
                [groups[count].item(setup)],
                {"ecn": {"kmin": f"{threshold}B", "kmax": f"{threshold * 5 // 4}B", "pmax": 1.0}},
                iteration=iteration,
                observe={"queues": [port], "interval": f"{max(PS_PER_US // 10, duration_ps // _SAMPLES)}ps"},
            )

        runs = dict(zip(keys, (yield [trial(*key) for key in keys]), strict=True))
        last = keys[len(chosen) - 1]
        again = yield [trial(*last, number) for number in range(1, iterations)]
        repeated = [congestion.marked_percent(run, subject) for run in (runs[last], *again)]
        condition = f"{last[1]}:1 of {format_size(block)}, threshold {format_size(last[0])}"
        return Measured(
            tables=[
                ReportTable(
                    f"Incasts of {format_size(block)} from each prefill worker",
                    [
                        "threshold",
                        "senders",
                        "marked (%)",
                        "above the threshold from (us)",
                        "depth then (B)",
                        "largest depth (B)",
                        "aggregate GB/s",
                        "dropped (ppm)",
                        "buffer (%)",
                    ],
                    [_row(setup, key, groups[key[1]], runs[key], port) for key in keys],
                    f"depth of {port}, which leads to the decode worker, sampled; packets that leave the threshold "
                    "behind them are marked",
                )
            ],
            curves=[
                CurveFigure(
                    "Share of marked packets",
                    Axis("prefill workers"),
                    Axis("marked (%)", "%"),
                    [
                        curve(
                            f"threshold {format_size(threshold)}",
                            chosen,
                            [congestion.marked_percent(runs[threshold, count], subject) for count in chosen],
                        )
                        for threshold in thresholds
                    ],
                )
            ],
            kpis=[
                KpiValue("ECN_marking_rate", congestion.marked_percent(runs[last], subject), condition),
                KpiValue("Buffer_utilization", congestion.buffer_percent(runs[last], subject), condition),
                KpiValue("Packet_drop_rate", congestion.dropped_ppm(runs[last]), condition),
            ],
            repeatability=[repeatability(f"marked, {condition}", "%", repeated)],
            scaled=[
                f"blocks of {format_size(block)} in place of 16 MB, each sent once; K_max is 1.25 times the threshold, "
                "P_max 1",
                f"the whole fabric is under test in place of a leaf; {counted(len(again) + 1, 'iteration')} of the "
                "last configuration",
                *(
                    f"{count}:1 takes more senders than the fabric has ({senders[-1]})"
                    for count in SENDERS
                    if count > senders[-1]
                ),
            ],
            anomalies=[
                *(
                    f"{count}:1, threshold {format_size(threshold)}: marks although no queue reached the threshold"
                    for (threshold, count), run in runs.items()
                    if congestion.marked_percent(run, subject) and _deepest(run) < threshold
                ),
            ],
        )


def possible_senders(setup: Setup, wanted: tuple[int, ...]) -> list[int]:
    """Return those numbers of senders that the fabric has for one receiver, and its most if it has fewer.

    Raises:
        NotApplicableError: it has none or one.
    """
    subject = setup.subject
    most = next((count for count in range(subject.ranks, 1, -1) if subject.senders_to(_RECEIVER, count)), 0)
    if not most:
        raise NotApplicableError(f"an incast takes 3 endpoints of different hosts; the fabric has {subject.ranks}")
    return sorted({*(count for count in wanted if count < most), min(most, wanted[-1])})


def port_to(setup: Setup, rank: int) -> str:
    """Return the name of the switch's port that leads to a rank's first NIC."""
    fabric = setup.subject.fabric
    host = fabric.hosts[rank]
    link = next(link for link in fabric.links if (link.a.node, link.a.port) == (host.name, host.nics[0].number))
    return str(link.b)


def _incast(setup: Setup, count: int, block: int) -> FlowGroups:
    found = FlowGroups()
    for sender in setup.subject.senders_to(_RECEIVER, count) or []:
        found.add(setup.transfer(sender, _RECEIVER, block))
    return found


def _row(setup: Setup, key: Key, groups: FlowGroups, run: TrialRun, port: str) -> list[Cell]:
    threshold, count = key
    times, depths = run.run.integers("queues", "time_ps"), run.run.integers("queues", "queue_bytes")
    above = np.flatnonzero(depths >= threshold)
    return [
        format_size(threshold),
        count,
        round(congestion.marked_percent(run, setup.subject), 3),
        round(float(times[above[0]]) / PS_PER_US, 2) if len(above) else "never",
        int(depths[above[0]]) if len(above) else "",
        int(depths.max(initial=0)),
        round(groups.times(run).bytes_per_s / 1e9, 2),
        round(congestion.dropped_ppm(run), 1),
        round(congestion.buffer_percent(run, setup.subject), 2),
    ]


def _deepest(run: TrialRun) -> int:
    """Return the deepest queue of any port."""
    return max((each.largest_queue_bytes or 0 for each in run.results.planes), default=0)
