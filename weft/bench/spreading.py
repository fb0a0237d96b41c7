"""How evenly long transfers load parallel links: what the tests of load balancing measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from weft.bench.measures import balance, goodput_bps
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.report_parts import Cell
from weft.trials import Trial, TrialRun

HEADINGS = ("MMR", "JFI", "OOO rate (%)", "Retx rate (%)", "Effective goodput (%)", "pkt/s out of order", "retx/s")


@dataclass(frozen=True)
class Spread:
    """Figures of one trial of transfers.

    Attributes:
        mmr: largest over mean load of parallel links, of the worst switch.
        jfi: Jain's index of these loads, of the worst switch.
        out_of_order_share: packets that arrived behind a gap, as a share of data packets.
        retransmitted_share: packets sent again, as a share of data packets.
        goodput_share: payload as a share of the sending NICs' rate.
        time_ps: from the first start to the last acknowledgement.
    """

    mmr: float
    jfi: float
    out_of_order_share: float
    retransmitted_share: float
    goodput_share: float
    time_ps: float
    data_packets: float

    @property
    def row(self) -> list[Cell]:
        """In the order of `HEADINGS`."""
        seconds = self.time_ps / PS_PER_S
        return [
            round(self.mmr, 3),
            round(self.jfi, 4),
            round(100 * self.out_of_order_share, 3),
            round(100 * self.retransmitted_share, 3),
            round(100 * self.goodput_share, 1),
            round(self.out_of_order_share * self.data_packets / seconds),
            round(self.retransmitted_share * self.data_packets / seconds),
        ]


def mean_of(spreads: Sequence[Spread]) -> Spread:
    """Return the mean of trials that differ in their seed."""
    means: dict[str, Any] = {
        each.name: sum(getattr(one, each.name) for one in spreads) / len(spreads) for each in fields(Spread)
    }
    return Spread(**means)


def require_paths(setup: Setup) -> None:
    """Raise NotApplicableError unless switches with hosts have a choice of links."""
    if not setup.subject.has_parallel_paths:
        raise NotApplicableError("no switch with hosts has parallel links to others")


def transfer_bytes(setup: Setup) -> int:
    """Return the bytes of a transfer that takes a profile's time at line rate."""
    duration_us = setup.choose(smoke=40, standard=400, full=4000)
    return setup.subject.rank_rate_bps // 8 * duration_us // (PS_PER_S // PS_PER_US)


def transfers(setup: Setup, label: str, queue_pairs: int = 1, iteration: int = 0) -> Trial:
    """Return a trial in which each rank writes to the one half the fabric away, all at once."""
    size = transfer_bytes(setup)
    flows = [
        flow
        for source, destination in setup.subject.pairs
        for flow in setup.transfer(source, destination, size, queue_pairs=queue_pairs)
    ]
    return setup.trial(label, [setup.flows(flows)], iteration=iteration)


def spread_of(setup: Setup, run: TrialRun) -> Spread:
    """Return the figures of a trial of `transfers`."""
    flows = run.flows
    mtu_bytes = setup.subject.spec.options.mtu_bytes
    data_packets = sum(math.ceil(size / mtu_bytes) for size in flows["size_bytes"].tolist())
    mmr, jfi = balance(run, setup.subject)
    senders = len({source for source, _ in setup.subject.pairs})
    return Spread(
        mmr,
        jfi,
        run.results.out_of_sequence_packets / data_packets,
        run.results.retransmissions / data_packets,
        goodput_bps(run) / (setup.subject.rank_rate_bps * senders),
        int((flows["start_ps"] + flows["completion_ps"]).max() - flows["start_ps"].min()),
        data_packets,
    )
