"""6.4 UET Congestion Control Benchmarks."""

from __future__ import annotations

from weft.bench.configurations import under_each
from weft.bench.figures import curve
from weft.bench.incasts import RATIOS, incast, left_out, possible_ratios
from weft.bench.measures import goodput_bps, health_of, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.training.convergence import convergence_of, doubled_flows
from weft.bench.variants import Variant
from weft.quantities.readable import format_size
from weft.quantities.units import MIB, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import InvalidTrialError, Procedure, TrialRun

TRANSPORTS = {"UET RUD (no PFC)": Variant("uet-rud"), "RoCEv2 DCQCN": Variant("rc")}
CREDITS = "UET RUD + receiver credits (no PFC)"
RUD = "UET RUD (no PFC)"


class UetCongestion(BenchTest):
    """Incasts under UET's congestion control without PFC, and under DCQCN."""

    section = "6.4"
    name = "uet-congestion"
    title = "UET Congestion Control Benchmarks"
    objective = "Whether UET's congestion control fills a receiver's link under incast without PFC and without loss."
    compares_transports = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        setups, refused = under_each(
            setup, {name: Variant(each.transport, setup.variant.load_balancing) for name, each in TRANSPORTS.items()}
        )
        possible = possible_ratios(setup)
        ratios = setup.choose(smoke=possible[-1:], standard=possible, full=possible)
        size = setup.choose(smoke=MIB, standard=4 * MIB, full=64 * MIB)
        duration_ps = setup.choose(smoke=500, standard=2000, full=20_000) * PS_PER_US
        joined = 4
        converges = setup.subject.senders_to(0, 2 * joined) is not None
        found: dict[str, dict[int, TrialRun]] = {}
        convergence: dict[str, str] = {}
        for name, under, changes in [
            *((name, under, {}) for name, under in setups.items()),
            *((CREDITS, setups[RUD], {"transport.receiver_credits": True}) for _ in range(RUD in setups)),
        ]:
            trials = [
                under.trial(f"{name}, {ratio}:1", [under.flows(incast(under, ratio, size))], changes)
                for ratio in ratios
            ]
            if converges:
                flows = doubled_flows(under, joined, duration_ps)
                trials.append(under.trial(f"{name}, {joined} + {joined} flows", [under.flows(flows)], changes))
            try:
                runs = yield trials
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            found[name] = dict(zip(ratios, runs, strict=False))
            if converges:
                time_ps = convergence_of(runs[-1], joined, duration_ps).time_ps
                convergence[name] = (
                    f"> {duration_ps / PS_PER_US:.0f}" if time_ps is None else f"{time_ps / PS_PER_US:.1f}"
                )
        most = ratios[-1]
        rud = found.get(RUD)
        losses = {name: _drop_share(runs[most]) for name, runs in found.items()}
        return Measured(
            tables=[
                ReportTable(
                    f"Incasts of {format_size(size)} from each sender",
                    [
                        "transport",
                        "ratio",
                        "throughput (% of receiver's rate)",
                        "peak queue (B)",
                        "PFC pauses",
                        "dropped (%)",
                        "trimmed (%)",
                        "sent again (%)",
                    ],
                    [_row(setup, name, ratio, run) for name, runs in found.items() for ratio, run in runs.items()],
                    "trimmed packets lose their payload and are sent again; no application sees a loss",
                ),
                ReportTable(
                    f"Convergence after {joined} flows have become {2 * joined}",
                    ["transport", "within 10 % of fair shares after (us)"],
                    [[name, text] for name, text in convergence.items()],
                ),
            ],
            curves=[
                CurveFigure(
                    "Throughput by senders",
                    Axis("senders"),
                    Axis("% of the receiver's rate", "%"),
                    [
                        curve(
                            name,
                            runs,
                            [100 * goodput_bps(run) / setup.subject.rank_rate_bps for run in runs.values()],
                        )
                        for name, runs in found.items()
                    ],
                )
            ],
            kpis=[KpiValue("UET PFC-Free Loss Rate", 100 * losses[RUD], f"{most}:1, packets dropped")] if rud else [],
            repeatability=[
                repeatability(f"throughput, {name}, {most}:1", "Gbps", [goodput_bps(runs[most]) / 1e9])
                for name, runs in found.items()
            ],
            scaled=[
                *left_out(setup, RATIOS, possible),
                "receiver credit utilisation is not counted: the row with receiver credits shows what they make of it",
            ],
            anomalies=refused,
        )


def _drop_share(run: TrialRun) -> float:
    health = health_of([run])
    return health.dropped_packets / max(1, health.packets)


def _row(setup: Setup, name: str, ratio: int, run: TrialRun) -> list[Cell]:
    health = health_of([run])
    packets = max(1, health.packets)
    return [
        name,
        f"{ratio}:1",
        round(100 * goodput_bps(run) / setup.subject.rank_rate_bps, 1),
        health.largest_queue_bytes,
        health.pfc_pauses,
        round(100 * health.dropped_packets / packets, 3),
        round(100 * health.trimmed_packets / packets, 3),
        round(100 * health.retransmitted_packets / packets, 3),
    ]
