"""8.2 PFC Behavior Under Bursty KV Cache Transfers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

import numpy as np

from weft.bench import congestion
from weft.bench.background import payload_share
from weft.bench.figures import curve
from weft.bench.flow_groups import FlowGroups
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.readable import counted, format_size, format_time
from weft.quantities.units import KIB, MIB, PS_PER_MS, PS_PER_S, PS_PER_US
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure, Trial, TrialRun

BURSTS = (4, 8, 16, 32)
ARRIVALS_PS = (100 * PS_PER_US, PS_PER_MS, 10 * PS_PER_MS)
XOFF = (10_000, 100_000, 1_000_000)
_VICTIM_BYTES = 64 * KIB


@dataclass(frozen=True)
class _Key:
    """A trial: transfers of a burst, the window in which they arrive, and the threshold of PFC."""

    transfers: int
    arrival_ps: int
    xoff_bytes: int


@dataclass(frozen=True)
class _Flows:
    """A burst's transfers and messages of a pair that has nothing to do with them, as items 0 and 1."""

    burst: FlowGroups
    victim: FlowGroups


class PfcBursts(BenchTest):
    """Bursts of KV caches to one decode worker, and a flow that shares only links with them."""

    section = "8.2"
    name = "pfc-bursts"
    title = "PFC Behavior Under Bursty KV Cache Transfers"
    objective = "How much switches pause under bursts of KV caches, and whom that delays besides."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        subject = setup.subject
        setup.require_pfc()
        bursts = setup.choose(smoke=(4, 32), standard=BURSTS, full=BURSTS)
        arrivals = setup.choose(smoke=ARRIVALS_PS[:1], standard=ARRIVALS_PS[:2], full=ARRIVALS_PS)
        thresholds = setup.choose(smoke=XOFF[1:2], standard=XOFF, full=XOFF)
        block = setup.choose(smoke=MIB, standard=4 * MIB, full=16 * MIB)
        receiver = 0
        senders = subject.senders_to(receiver, 1)
        if senders is None:
            raise NotApplicableError("no other host reaches the first one")
        victim = _victim(setup, receiver)
        # A burst arrives in as large a part of its duration as the draft's.
        shrunk = block / (16 * MIB)
        keys = [_Key(*key) for key in product(bursts, arrivals, thresholds)]
        flows = {key: _flows(setup, key, receiver, victim, block, shrunk) for key in keys}

        def trial(key: _Key, *, alone: bool = False) -> Trial:
            items = [flows[key].victim] if alone else [flows[key].burst, flows[key].victim]
            traffic = [each.item(setup) for each in items]
            return setup.trial(
                f"{counted(key.transfers, 'transfer')} in {format_time(key.arrival_ps)}, XOFF "
                f"{format_size(key.xoff_bytes)}{', victim alone' if alone else ''}",
                traffic if alone else [{"together": traffic}],
                {"pfc.xoff": f"{key.xoff_bytes}B", "pfc.alpha": None},
            )

        lone, *found = yield [trial(keys[0], alone=True), *(trial(key) for key in keys)]
        runs = dict(zip(keys, found, strict=True))
        alone_us = float(np.median(flows[keys[0]].victim.times(lone).latency_ps)) / PS_PER_US
        largest = keys[-1]
        condition = (
            f"{counted(largest.transfers, 'transfer')} of {format_size(block)}, XOFF {format_size(largest.xoff_bytes)}"
        )
        return Measured(
            tables=[
                ReportTable(
                    f"Bursts of transfers of {format_size(block)}",
                    [
                        "transfers",
                        "arrive within (us)",
                        "XOFF",
                        "PAUSE frames",
                        "paused, all ports (us)",
                        "delay of others, P99 (us)",
                        "transfer P50 (us)",
                        "transfer P99 (us)",
                        "dropped (ppm)",
                        "buffer (%)",
                    ],
                    [_row(setup, key, flows[key], run, alone_us, shrunk) for key, run in runs.items()],
                    f"delay of messages of {format_size(_VICTIM_BYTES)} from rank {victim[0]} to rank {victim[1]}, "
                    f"which take {alone_us:.2f} us alone",
                )
            ],
            curves=[
                CurveFigure(
                    "PAUSE frames by transfers of a burst",
                    Axis("transfers"),
                    Axis("PAUSE frames"),
                    [
                        curve(
                            f"XOFF {format_size(xoff)}, within {format_time(arrival_ps)}",
                            bursts,
                            [congestion.pauses(runs[_Key(count, arrival_ps, xoff)]) for count in bursts],
                        )
                        for arrival_ps, xoff in product(arrivals, thresholds)
                    ],
                )
            ],
            kpis=[
                KpiValue("PFC_frame_count", float(congestion.pauses(runs[largest])), condition),
                KpiValue("Buffer_utilization", congestion.buffer_percent(runs[largest], subject), condition),
                KpiValue("Packet_drop_rate", congestion.dropped_ppm(runs[largest]), condition),
            ],
            scaled=[
                f"transfers of {format_size(block)} in place of 16 MB; the windows are shortened alike",
                "a burst comes from the hosts in turn: with fewer hosts than transfers, several from one",
                "the delayed messages are in the class of the caches, which alone is paused; other classes go on",
            ],
            anomalies=[
                f"{each.transfers} transfers, XOFF {format_size(each.xoff_bytes)}: "
                f"{counted(sum(run.results.drops.values()), 'packet')} dropped although the class is lossless"
                for each, run in runs.items()
                if sum(run.results.drops.values())
            ],
        )


def _victim(setup: Setup, receiver: int) -> tuple[int, int]:
    """Return a pair without the receiver, to a rank at its switch if there is one; any pair if all have it."""
    subject = setup.subject
    candidates = [pair for pair in subject.pairs if receiver not in pair]
    candidates.sort(key=lambda pair: subject.edges[pair[1]] != subject.edges[receiver])
    return candidates[0] if candidates else subject.pairs[0]


def _flows(setup: Setup, key: _Key, receiver: int, victim: tuple[int, int], block: int, shrunk: float) -> _Flows:
    subject = setup.subject
    most = next(count for count in range(subject.ranks, 0, -1) if subject.senders_to(receiver, count))
    senders = subject.senders_to(receiver, most) or []
    drawn = random.Random(setup.seed)
    burst, others = FlowGroups(), FlowGroups()
    for number in range(key.transfers):
        start_ps = round(drawn.random() * key.arrival_ps * shrunk)
        burst.add(setup.transfer(senders[number % len(senders)], receiver, block, start_ps))
    ends_ps = key.transfers * block * 8 * PS_PER_S // subject.rank_rate_bps
    apart_ps = round(2 * _VICTIM_BYTES * 8 * PS_PER_S / (subject.rank_rate_bps * payload_share(setup))) + 5 * PS_PER_US
    for number in range(max(2, min(1000, ends_ps // apart_ps))):
        others.add(setup.transfer(*victim, _VICTIM_BYTES, number * apart_ps))
    return _Flows(burst, others)


def _row(setup: Setup, key: _Key, flows: _Flows, run: TrialRun, alone_us: float, shrunk: float) -> list[Cell]:
    latencies_us = flows.burst.times(run, 0).latency_ps / PS_PER_US
    victim_us = float(np.percentile(flows.victim.times(run, 1).latency_ps, 99)) / PS_PER_US
    return [
        key.transfers,
        round(key.arrival_ps * shrunk / PS_PER_US, 2),
        format_size(key.xoff_bytes),
        congestion.pauses(run),
        round(congestion.paused_us(run), 1),
        round(victim_us - alone_us, 2),
        round(float(np.median(latencies_us)), 1),
        round(float(np.percentile(latencies_us, 99)), 1),
        round(congestion.dropped_ppm(run), 1),
        round(congestion.buffer_percent(run, setup.subject), 2),
    ]
