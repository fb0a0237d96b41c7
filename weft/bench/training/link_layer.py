"""6.5 Link Layer Enhancement Benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bench.configurations import under_each
from weft.bench.congestion import pauses
from weft.bench.incasts import incast, possible_ratios
from weft.bench.measures import goodput_bps, health_of
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.streams import Stream
from weft.bench.training.throughput import directions_of
from weft.bench.unpaced import UNPACED
from weft.bench.variants import Changes, Variant
from weft.quantities.readable import format_size
from weft.quantities.units import KIB, MIB, PS_PER_NS, PS_PER_US
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.traffic.patterns import Flow
from weft.trials import InvalidTrialError, Procedure

_BACKGROUND = 0.8
_BIT_ERROR_RATE = 1e-8
_OVERSUBSCRIPTION = 2
_RATIO = 32
_VICTIM_BYTES = 64 * KIB
_MESSAGE_BYTES = 64 * KIB
_TRIMMED_QUEUE = "256KiB"
"""Memory of a port in the trials of trimming: so small that a bottleneck of 2:1 fills it."""


class LinkLayer(BenchTest):
    """Link-level retry, packet trimming and credits, each compared with its absence."""

    section = "6.5"
    name = "link-layer"
    title = "Link Layer Enhancement Benchmarks"
    objective = "What link-level retry, packet trimming and credit-based flow control make of losses and of blocking."
    compares_transports = True

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        setups, refused = under_each(
            setup,
            {
                "UET": Variant("uet-rud", setup.variant.load_balancing),
                "RoCEv2": Variant("rc", setup.variant.load_balancing),
            },
        )
        parts = []
        for name, part in (("UET", _retry), ("UET", _trimming), ("RoCEv2", _credits)):
            if name not in setups:
                continue
            try:
                parts.append((yield from part(setups[name])))
            except (NotApplicableError, InvalidTrialError) as error:
                refused.append(f"{part.__doc__}: not applicable: {error}")
        if not parts:
            raise NotApplicableError("; ".join(refused))
        return Measured(
            tables=[table for part in parts for table in part.tables],
            bars=[bar for part in parts for bar in part.bars],
            kpis=[kpi for part in parts for kpi in part.kpis],
            scaled=[note for part in parts for note in part.scaled],
            anomalies=refused,
        )


def _retry(setup: Setup) -> Procedure[Measured]:
    """(a) LLR retry latency."""
    trial_ps = setup.choose(smoke=50, standard=400, full=4000) * PS_PER_US
    stream = Stream(directions_of(setup)["bidirectional"], _MESSAGE_BYTES)
    flows = setup.flows(stream.flows(setup, _BACKGROUND, trial_ps))
    errors: dict[str, Any] = {"faults": {"bit_error_rate": _BIT_ERROR_RATE}}
    with_retry: Changes = {"link_retry": {"links": ["*<->*"]}}
    runs = yield [
        setup.trial("no bit errors", [flows], {"link_retry": None}),
        setup.trial("bit errors, no LLR", [flows], {"link_retry": None}, **errors),
        setup.trial("bit errors, LLR", [flows], with_retry, **errors),
    ]
    names = ("no bit errors", "transport retransmission", "LLR")
    rows: list[list[Cell]] = []
    for name, run in zip(names, runs, strict=True):
        completions = np.asarray(run.flows["completion_ps"], np.float64) / PS_PER_US
        retries = run.results.link_retries
        lost = sum(each.lost_packets for each in retries)
        hop_ns = sum(each.replaying_ps for each in retries) / max(1, sum(each.replays for each in retries)) / PS_PER_NS
        rows.append(
            [
                name,
                health_of([run]).dropped_packets,
                run.results.retransmissions,
                lost,
                round(hop_ns, 1) if lost else "none",
                *(round(float(np.percentile(completions, each)), 3) for each in (50, 99)),
                round(float(completions.max()), 3),
            ]
        )
    retries = runs[2].results.link_retries
    replays = sum(each.replays for each in retries)
    columns = ["recovery", "lost for the transport", "sent again by hosts", "lost on links, recovered"]
    columns += ["replay of one hop (ns)", "message P50 (us)", "P99", "max"]
    return Measured(
        tables=[
            ReportTable(
                f"Link-level retry, bit error rate {_BIT_ERROR_RATE:g}, {_BACKGROUND:.0%} load",
                columns,
                rows,
                "replay of one hop: how long a port sends again, from the NACK on; emulated hardware",
            )
        ],
        kpis=[
            KpiValue(
                "LLR Retry Latency",
                sum(each.replaying_ps for each in retries) / replays / PS_PER_NS,
                f"mean of {replays} replays",
            )
        ]
        if replays
        else [],
        scaled=[f"bit errors on all links; messages of {format_size(_MESSAGE_BYTES)}"],
    )


def _trimming(setup: Setup) -> Procedure[Measured]:
    """(b) Packet trimming effectiveness."""
    possible_ratios(setup, (_OVERSUBSCRIPTION,))
    size = setup.choose(smoke=MIB, standard=8 * MIB, full=64 * MIB)
    flows = [setup.flows(incast(setup, _OVERSUBSCRIPTION, size))]
    small: Changes = {"fabric.queue_capacity": _TRIMMED_QUEUE, "buffer": None}
    lossy: Changes = {"transport.congestion_control": "fixed-window", "transport.preset": None}
    window: Changes = {"transport.parameters": {"window": "4MB"}}
    variants: dict[str, Changes] = {
        "packet trimming": {**small, **lossy, **window},
        "full-packet drops": {**small, **lossy, **window, "trimming": None},
    }
    runs = yield [setup.trial(f"2:1, {name}", flows, changes) for name, changes in variants.items()]
    rows: list[list[Cell]] = []
    for name, run in zip(variants, runs, strict=True):
        health = health_of([run])
        rows.append(
            [
                name,
                health.trimmed_packets,
                health.dropped_packets,
                health.retransmitted_packets,
                round(int(run.flows["completion_ps"].max()) / PS_PER_US, 1),
                round(100 * goodput_bps(run) / setup.subject.rank_rate_bps, 1),
            ]
        )
    times = [int(run.flows["completion_ps"].max()) for run in runs]
    columns = ["congested queue", "trimmed", "dropped", "sent again", "all done after (us)", "goodput (% of line rate)"]
    trimmed_bytes = sum(each.trimmed_bytes for each in runs[0].results.trimming)
    delivered_bytes = int(runs[0].flows["size_bytes"].sum())
    return Measured(
        tables=[
            ReportTable(
                f"Packet trimming at a bottleneck of {_OVERSUBSCRIPTION}:1, queues of {_TRIMMED_QUEUE}", columns, rows
            )
        ],
        bars=[
            BarFigure(
                "Time of the transfers with trimming and with drops",
                Axis("us"),
                list(variants),
                {"completion": [time / PS_PER_US for time in times]},
            )
        ],
        kpis=[
            KpiValue(
                "Packet Trimming Savings",
                100 * trimmed_bytes / (trimmed_bytes + delivered_bytes),
                "bytes cut off before the congested link, of all that came to it",
            )
        ],
        scaled=[
            "trimming: senders with a fixed window of 4 MB, so that the bottleneck overflows; the time to the first "
            "request to send again is not recorded, the completion time stands for it",
        ],
    )


def _credits(setup: Setup) -> Procedure[Measured]:
    """(c) CBFC vs. PFC."""
    possible = possible_ratios(setup, (2, 4, 8, 16, _RATIO))
    ratio = possible[-1]
    size = setup.choose(smoke=MIB // 2, standard=2 * MIB, full=16 * MIB)
    victims = _victims(setup, ratio)
    if not victims:
        raise NotApplicableError("no flow past the incast: all endpoints take part in it")
    flow_control: dict[str, Changes] = {
        "PFC": {"pfc": {"classes": [3]}, "credits": None, "trimming": None},
        "CBFC (credits)": {"pfc": None, "credits": {"classes": [3]}, "trimming": None},
    }
    alone = setup.flows(victims)
    burst = setup.flows([*incast(setup, ratio, size), *victims])
    runs = yield [
        trial
        for name, each in flow_control.items()
        for trial in (
            setup.trial(f"{name}, victims alone", [alone], {**each, **UNPACED}),
            setup.trial(
                f"{name}, {ratio}:1 and victims",
                [burst],
                {**each, **UNPACED},
                observe={"pauses": True},
            ),
        )
    ]
    rows: list[list[Cell]] = []
    delays: dict[str, float] = {}
    for place, name in enumerate(flow_control):
        quiet, loud = runs[2 * place : 2 * place + 2]
        before = float(np.asarray(quiet.flows["completion_ps"]).mean())
        during = np.asarray(loud.flows["completion_ps"][-len(victims) :], np.float64)
        delays[name] = (float(during.mean()) - before) / PS_PER_US
        stalls = sum(each.stalls for each in loud.results.credits)
        ports = {str(port).split(":")[0] for port in loud.run.texts("pauses", "port").tolist()}
        rows.append(
            [
                name,
                round(delays[name], 2),
                round(float(during.max()) / before, 2),
                pauses(loud) or stalls,
                len(ports),
                round(100 * goodput_bps(loud) / setup.subject.rank_rate_bps, 1),
            ]
        )
    columns = ["flow control", "victims' delay (us)", "worst victim (× alone)", "pauses or stalls", "nodes paused"]
    columns.append("goodput of all (% of receiver's rate)")
    return Measured(
        tables=[
            ReportTable(
                f"Head-of-line blocking by an incast of {ratio}:1",
                columns,
                rows,
                f"victims: messages of {format_size(_VICTIM_BYTES)} from the incast's senders to other hosts",
            )
        ],
        bars=[BarFigure("Delay of flows past the incast", Axis("us"), list(delays), {"delay": list(delays.values())})],
        kpis=[
            KpiValue(
                "CBFC vs PFC HOL Blocking",
                delays["PFC"] - delays["CBFC (credits)"],
                f"PFC's delay less CBFC's, {ratio}:1",
            )
        ],
        scaled=[
            f"an incast of {ratio}:1 in place of {_RATIO}:1" if ratio < _RATIO else f"an incast of {_RATIO}:1",
            "CBFC is Weft's credits by lane and link, as InfiniBand's; not by destination",
        ],
    )


def _victims(setup: Setup, ratio: int) -> list[Flow]:
    """Return messages between other pairs of the switches that the incast crosses."""
    subject = setup.subject
    senders = set(subject.senders_to(0, ratio) or [])
    receiver_switch = subject.edges[0]
    targets = [
        rank for rank in range(1, subject.ranks) if subject.edges[rank] == receiver_switch and rank not in senders
    ]
    sources = [rank for rank in sorted(senders) if subject.edges[rank] != receiver_switch]
    pairs = list(zip(sources, targets, strict=False))
    return [flow for source, target in pairs for flow in setup.transfer(source, target, _VICTIM_BYTES, 20 * PS_PER_US)]
