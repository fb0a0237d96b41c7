"""Streams of messages at an offered rate, and the throughput that a fabric sustains without loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.bench.congestion import trimmed
from weft.bench.measures import goodput_bps
from weft.bench.searches import Searched, largest_that_holds
from weft.bench.setup import Setup
from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_S
from weft.traffic.patterns import Flow
from weft.trials import Procedure, Trial, TrialRun

LEAST_MESSAGES = 8
"""Messages of each pair in a trial, at least."""
MOST_FLOWS = 60_000
"""Messages of all pairs in a trial, at most: small messages have shorter trials."""
_LATENESS = 0.02
"""Share of a trial by which its last message may be later than its first, which had the fabric to itself."""


@dataclass(frozen=True)
class Stream:
    """Equal streams of each of some pairs.

    Attributes:
        pairs: source and destination of each.
        message_bytes: payload of one message.
        queue_pairs: of each pair; each sends messages of the size.
    """

    pairs: tuple[tuple[int, int], ...]
    message_bytes: int
    queue_pairs: int = 1

    def flows(self, setup: Setup, load: float, trial_ps: int) -> list[Flow]:
        """Return the messages of all pairs; their payload is this share of the rate of a pair's NICs."""
        posted_bytes = self.message_bytes * self.queue_pairs
        interval_ps = posted_bytes * 8 * PS_PER_S / (setup.subject.rank_rate_bps * load)
        count = max(LEAST_MESSAGES, math.ceil(trial_ps / interval_ps))
        count = max(1, min(count, MOST_FLOWS // (len(self.pairs) * setup.subject.nics)))
        return [
            flow
            for number in range(count)
            for source, destination in self.pairs
            for flow in setup.transfer(source, destination, posted_bytes, round(number * interval_ps), self.queue_pairs)
        ]


def is_clean(run: TrialRun) -> bool:
    """Return whether a trial has lost, trimmed and repeated nothing."""
    if run.error:
        return False
    results = run.results
    return not (sum(results.drops.values()) or results.retransmissions or trimmed(run))


def is_sustained(run: TrialRun) -> bool:
    """Return whether a trial is clean, and its last message took no longer than the first but for a few per cent."""
    if not is_clean(run):
        return False
    flows = run.flows
    last_start = int(flows["start_ps"].max())
    first = int(flows["completion_ps"][flows["start_ps"] == flows["start_ps"].min()].max())
    end = int((flows["start_ps"] + flows["completion_ps"]).max())
    return end - last_start <= first + _LATENESS * last_start


@dataclass(frozen=True)
class Throughput:
    """A stream's largest sustained load, a share of its NICs' rate, with the goodput that was measured; 0: none."""

    stream: Stream
    load: float
    goodput_bps: float
    run: TrialRun | None


def throughputs(
    setup: Setup,
    streams: Sequence[Stream],
    trial_ps: int,
    resolution: float,
    *,
    label: str = "",
    iteration: int = 0,
) -> Procedure[list[Throughput]]:
    """Search the largest load of each stream at which nothing is lost, trimmed or repeated, and no backlog grows.

    Args:
        setup: the fabric.
        streams: searched together, each for itself.
        trial_ps: time of a trial, for large messages; `MOST_FLOWS` makes it shorter for small ones.
        resolution: of the load.
        label: begins the names of trials.
        iteration: searches with another number have another seed.
    """

    def at_load(stream: Stream, load: float) -> Trial:
        size = format_size(stream.message_bytes)
        pairs = counted(len(stream.pairs), "pair")
        return setup.trial(
            f"{label}{size} messages, {counted(stream.queue_pairs, 'queue pair')}, {pairs}, load {load:.4f}",
            [setup.flows(stream.flows(setup, load, trial_ps))],
            iteration=iteration,
        )

    found: dict[Stream, Searched[Stream]] = yield from largest_that_holds(
        dict.fromkeys(streams, (resolution / 2, 1.0)), at_load, lambda _, __, run: is_sustained(run), resolution
    )
    return [
        Throughput(
            stream,
            found[stream].value or 0.0,
            0.0 if (run := found[stream].run) is None else goodput_bps(run),
            found[stream].run,
        )
        for stream in streams
    ]
