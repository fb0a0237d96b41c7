"""Collectives as the drafts benchmark them: bus bandwidth by size and number of accelerators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.bench.setup import NotApplicableError, Setup
from weft.bench.subject import Subject
from weft.quantities.readable import format_size
from weft.quantities.units import PS_PER_S
from weft.results.collectives import CollectiveResult
from weft.trials import Trial, TrialRun

COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024)
"""Accelerators in the draft's sweeps."""
TITLES = {"allreduce": "AllReduce", "alltoall": "AlltoAll", "allgather": "AllGather"}
ALGORITHMS = {"allreduce": "ring", "alltoall": "direct", "allgather": "ring"}
"""Algorithm of each, of those that collective libraries use on any fabric."""
SEGMENTED = {"segment": "16KiB", "messages": "64KiB"}
"""`fidelity` of a scenario in which packets of long messages travel together."""
_SEGMENTED_FROM_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Bandwidth:
    """Times of all iterations of a collective, and the bus bandwidth in Gb/s for an accelerator at each percentile.

    `percentiles_gbps` are what 50, 95 and 99 % of the iterations reached at least.
    """

    times_ps: tuple[int, ...]
    mean_gbps: float
    percentiles_gbps: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        """Mean time of an iteration."""
        return float(np.mean(self.times_ps)) / PS_PER_S


def counts_of(setup: Setup) -> list[int]:
    """Return the draft's numbers of accelerators that the fabric has, and its own if that is not among them.

    NotApplicableError: it has fewer than two.
    """
    setup.require_hosts(2, "a collective")
    ranks = setup.subject.ranks
    found = [count for count in COUNTS if count <= ranks]
    return found if found and found[-1] == ranks else [*found, ranks]


def members(setup: Setup, count: int) -> list[int]:
    """Return so many ranks, spread over all switches with hosts: whole hosts, each switch in turn."""
    subject = setup.subject
    by_edge: dict[str, list[tuple[int, ...]]] = {}
    for host in subject.servers:
        by_edge.setdefault(subject.edges[host[0]], []).append(host)
    turns = [
        group[place]
        for place in range(max(map(len, by_edge.values())))
        for group in by_edge.values()
        if place < len(group)
    ]
    hosts, left = [], count
    for host in turns:
        if left > 0:
            hosts.append(host[:left])
            left -= len(host)
    # Host by host, so that neighbours in a ring share a host where they can.
    return [rank for host in sorted(hosts, key=lambda host: subject.server_of[host[0]]) for rank in host]


def algorithm_of(subject: Subject, collective: str) -> str:
    """Return the algorithm of a collective on whole hosts: AllReduce over scale-up links first, where there are any."""
    return "hierarchical" if collective == "allreduce" and subject.ranks_per_host > 1 else ALGORITHMS[collective]


def collective_item(
    subject: Subject, collective: str, size_bytes: int, ranks: Sequence[int], repetitions: int = 1
) -> dict[str, Any]:
    """Return an item of traffic that runs a collective."""
    return {
        "collective": collective,
        "algorithms": [algorithm_of(subject, collective)],
        "sizes": [f"{size_bytes}B"],
        "ranks": list(ranks),
        "dtype": "bfloat16",
        "data": "lengths",
        "repetitions": repetitions,
    }


def collective_trial(
    setup: Setup, collective: str, size_bytes: int, count: int, repetitions: int, iteration: int = 0
) -> Trial:
    """Return a trial of a collective of so many accelerators."""
    label = f"{TITLES[collective]}, {format_size(size_bytes)}, {count} accelerators"
    title = setup.variant.title
    return setup.trial(
        f"{label}{f', {title}' if title else ''}",
        [collective_item(setup.subject, collective, size_bytes, members(setup, count), repetitions)],
        segments_for(setup, size_bytes),
        iteration=iteration,
    )


def segments_for(setup: Setup, size_bytes: int) -> Mapping[str, Any]:
    """Return the change of the scenario that lets long messages of large collectives travel in segments.

    Without it, a gigabyte of all accelerators takes minutes; docs/fidelity.md has the bounds of what it changes.
    """
    options = setup.subject.spec.options
    takes = options.transport.protocol == "rc" and not options.pfc.classes and not options.int_telemetry
    return {"fidelity": SEGMENTED} if takes and size_bytes >= _SEGMENTED_FROM_BYTES else {}


def bandwidth_of(runs: Sequence[TrialRun]) -> Bandwidth:
    """Return the bandwidth of one collective over all repetitions of trials."""
    results: list[CollectiveResult] = [result for run in runs for result in run.results_of("collectives")]
    times = tuple(time for result in results for time in result.times_ps)
    # Bus bandwidth goes with the inverse of the time.
    factor = results[0].busbw_bytes_per_s * results[0].time_ps * 8 / 1e9
    gbps = factor / np.array(times, np.float64)
    least = np.percentile(gbps, (50, 5, 1))
    return Bandwidth(times, float(gbps.mean()), tuple(float(value) for value in least))


def require_two_hosts(setup: Setup) -> None:
    """Raise NotApplicableError if all accelerators are in one host: nothing would cross the fabric."""
    if setup.subject.ranks <= setup.subject.ranks_per_host:
        raise NotApplicableError("all accelerators are in one host")
