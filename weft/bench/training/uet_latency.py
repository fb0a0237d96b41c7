"""6.2 UET Latency Characterization."""

from __future__ import annotations

from weft.bench.configurations import under_each
from weft.bench.latencies import HEADINGS, OBSERVED, Latency, latency_of, one_way_ps, round_trips_ps
from weft.bench.measures import repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.streams import Stream
from weft.bench.training.throughput import directions_of
from weft.bench.variants import Variant
from weft.quantities.readable import format_size
from weft.quantities.units import KIB, MIB, PS_PER_MS, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import InvalidTrialError, Procedure, Trial

TRANSPORTS = {"UET ROD": Variant("uet-rod"), "UET RUD": Variant("uet-rud"), "RoCEv2 RC": Variant("rc")}
_STEADY_SPACING_PS = 20 * PS_PER_US
"""Less than a PDC stays open without work."""
_FIRST_SPACING_PS = 2 * PS_PER_MS
"""More than that: each message opens a PDC."""
_LOAD = 0.5
FIRST, STEADY, LOADED = "first packet (PDC + data)", "steady state", f"loaded ({_LOAD:.0%})"


class UetLatency(BenchTest):
    """Latency of UET with and without an open PDC, and of RoCEv2."""

    section = "6.2"
    name = "uet-latency"
    title = "UET Latency Characterization"
    objective = "Latency of UET's services, with the opening of a PDC and without, compared with RoCEv2."
    compares_transports = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        setups, refused = under_each(
            setup, {name: Variant(each.transport, setup.variant.load_balancing) for name, each in TRANSPORTS.items()}
        )
        sizes = setup.choose(
            smoke=(4 * KIB,), standard=(64, 4 * KIB, 64 * KIB, MIB), full=(64, KIB, 4 * KIB, 64 * KIB, MIB)
        )
        messages = setup.choose(smoke=4, standard=20, full=100)
        trial_ps = setup.choose(smoke=50, standard=200, full=2000) * PS_PER_US
        conditions = setup.choose(smoke=(FIRST, STEADY), standard=(FIRST, STEADY, LOADED), full=(FIRST, STEADY, LOADED))
        latencies: dict[tuple[str, int, str, str], Latency] = {}
        for name, under in setups.items():
            keys = [(size, condition) for size in sizes for condition in conditions]
            try:
                runs = yield [_trial(under, name, size, condition, messages, trial_ps) for size, condition in keys]
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
                continue
            for (size, condition), run in zip(keys, runs, strict=True):
                for way, measure in (("one-way", one_way_ps), ("round trip", round_trips_ps)):
                    times = measure(run)
                    if condition == STEADY:
                        times = times[1:]  # the first message opens the PDC
                    if len(times):
                        latencies[name, size, condition, way] = latency_of([times])
        rud_first = latencies.get(("UET RUD", sizes[0], FIRST, "one-way"))
        return Measured(
            tables=[
                ReportTable(
                    "Latency by transport service (us)",
                    ["service", "message", "condition", "way", "messages", *HEADINGS],
                    [
                        _row(name, size, condition, way, each)
                        for (name, size, condition, way), each in latencies.items()
                    ],
                )
            ],
            curves=[
                CurveFigure(
                    f"Latency of {format_size(size)} messages: {condition}",
                    Axis("one-way latency (us)", "us", "log"),
                    Axis("messages (%)", "%"),
                    [
                        each.distribution(name)
                        for (name, of_size, of_condition, way), each in latencies.items()
                        if (of_size, of_condition, way) == (size, condition, "one-way")
                    ],
                )
                for size in sizes[-1:]
                for condition in conditions[-1:]
            ],
            kpis=[
                KpiValue(
                    "UET First-Packet Latency",
                    rud_first.percentile_us(50),
                    f"UET RUD, {format_size(sizes[0])}, one-way",
                )
            ]
            if rud_first is not None
            else [],
            repeatability=[
                repeatability(
                    f"first-packet latency, {name}",
                    "us",
                    (latencies[name, sizes[0], FIRST, "round trip"].times_ps / PS_PER_US).tolist(),
                )
                for name in setups
                if (name, sizes[0], FIRST, "round trip") in latencies
            ],
            scaled=[
                f"{messages} messages of each size, each alone on the fabric, or all pairs at {_LOAD:.0%} load",
                "RoCEv2's queue pairs are connected before the run: its first message has no set-up to wait for",
            ],
            anomalies=refused,
        )


def _trial(under: Setup, name: str, size: int, condition: str, messages: int, trial_ps: int) -> Trial:
    label = f"{name}, {format_size(size)}, {condition}"
    if condition == LOADED:
        flows = Stream(directions_of(under)["bidirectional"], size).flows(under, _LOAD, trial_ps)
    else:
        spacing_ps = _FIRST_SPACING_PS if condition == FIRST else _STEADY_SPACING_PS
        source, destination = under.subject.remote_pair()
        flows = [
            flow
            for number in range(messages)
            for flow in under.transfer(source, destination, size, number * spacing_ps)[:1]
        ]
    return under.trial(label, [under.flows(flows)], observe=OBSERVED)


def _row(name: str, size: int, condition: str, way: str, found: Latency) -> list[Cell]:
    return [name, format_size(size), condition, way, len(found.times_ps), *found.row]
