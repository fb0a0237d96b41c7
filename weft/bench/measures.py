"""Figures of trials that several tests report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from weft.bench.congestion import pauses, trimmed
from weft.bench.model import Health, Repeatability
from weft.bench.subject import Subject
from weft.quantities.fairness import jain_index
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.trials import TrialRun

PERCENTILES = (50.0, 95.0, 99.0, 99.9)
"""Percentiles that the drafts ask of latencies, in %."""


def max_mean_ratio(values: Sequence[float]) -> float:
    """Return the largest value over the mean; 1 where nothing was sent."""
    mean = math.fsum(values) / len(values)
    return max(values) / mean if mean else 1.0


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Return the sample's standard deviation over the mean; None for a single value, or a mean of 0."""
    if len(values) < 2 or not (mean := float(np.mean(values))):
        return None
    return float(np.std(values, ddof=1)) / mean


def repeatability(metric: str, unit: str, values: Sequence[float]) -> Repeatability:
    """Return how far the iterations of a metric spread."""
    return Repeatability(metric, unit, len(values), float(np.mean(values)), coefficient_of_variation(values))


def goodput_bps(run: TrialRun) -> float:
    """Return the payload of all flows over the time from the first start to the last acknowledgement."""
    flows = run.flows
    begin, end = flows["start_ps"].min(), (flows["start_ps"] + flows["completion_ps"]).max()
    return float(flows["size_bytes"].sum()) * 8 * PS_PER_S / float(end - begin)


def percentiles_us(times_ps: npt.ArrayLike) -> list[float]:
    """Return the percentiles of times in microseconds, in the order of `PERCENTILES`."""
    return [float(each) / PS_PER_US for each in np.percentile(np.asarray(times_ps, np.float64), PERCENTILES)]


def port_bytes(run: TrialRun) -> dict[str, int]:
    """Return the bytes that each port has sent, by its name."""
    names, sent = run.run.texts("ports", "port"), run.run.integers("ports", "transmitted_bytes")
    return dict(zip(names.tolist(), sent.tolist(), strict=True))


def peers_of(run: TrialRun) -> Mapping[str, str]:
    """Return the port at the other end of each."""
    table = run.run
    return dict(zip(table.texts("ports", "port").tolist(), table.texts("ports", "peer").tolist(), strict=True))


def uplink_loads(run: TrialRun, subject: Subject) -> list[list[float]]:
    """Return the bytes that each parallel link has carried, by group (`Subject.uplinks`)."""
    sent = port_bytes(run)
    return [[float(sent[port]) for port in group.ports] for group in subject.uplinks]


def balance(run: TrialRun, subject: Subject) -> tuple[float, float]:
    """Return MMR and JFI of the links that lead up from switches with hosts.

    A group counts if it has sent something. MMR is the largest, JFI the smallest of all groups. Both
    count bytes, not flows: flows of equal size give the same.
    """
    groups = [loads for loads in uplink_loads(run, subject) if len(loads) > 1 and any(loads)]
    if not groups:
        return 1.0, 1.0
    return max(map(max_mean_ratio, groups)), min(map(jain_index, groups))


def busiest_uplink_share(run: TrialRun, subject: Subject) -> float:
    """Return the largest share of its capacity that a link between switches has used while traffic ran."""
    switches = {switch.name for switch in subject.fabric.switches}
    peers = peers_of(run)
    between = [
        share
        for port, share in run.run.utilisation.items()
        if port.split(":")[0] in switches and peers[port].split(":")[0] in switches
    ]
    return max(between, default=0.0)


def health_of(runs: Iterable[TrialRun]) -> Health:
    """Return the health indicators of trials that have results, together."""
    total = Health()
    for run in runs:
        if run.has_results:
            total = total.together_with(_health(run))
    return total


def _health(run: TrialRun) -> Health:
    results = run.results
    conserved = results.packet_conservation
    return Health(
        packets=0 if conserved is None else sum(each.packets for each in conserved.entered.values()),
        dropped_packets=sum(results.drops.values()),
        ecn_marked_packets=sum(each.ecn_marked_packets for each in results.planes),
        pfc_pauses=pauses(run),
        paused_ps=sum(each.paused_ps for each in results.memory),
        retransmitted_packets=results.retransmissions,
        out_of_sequence_packets=results.out_of_sequence_packets,
        trimmed_packets=trimmed(run),
        largest_queue_bytes=max((each.largest_queue_bytes or 0 for each in results.planes), default=0),
    )
