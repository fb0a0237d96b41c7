"""Traffic patterns: who sends how much to whom, and each rank's schedule for it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.errors import InvalidValueError
from weft.quantities.limits import MAX_FLOW_BYTES, MAX_FLOW_QUEUE_PAIRS
from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.schedule_nodes import (
    SINK,
    ZEROS,
    Channel,
    Delay,
    RankSchedule,
    Span,
    WaitReceive,
    Write,
    run_immediate,
)

LABEL = "traffic"


@dataclass(frozen=True, slots=True)
class Flow:
    """`size_bytes` written from rank `source` to rank `destination` over `plane`, from `start_ps` on.

    So many queue pairs each write a like part of it; the flow is over when all have. It travels in a class of the
    fabric's data.
    """

    source: int
    destination: int
    size_bytes: int
    plane: int = 0
    start_ps: int = 0
    queue_pairs: int = 1
    traffic_class: int = DATA_CLASS

    def parts(self) -> Iterator[tuple[Span, str]]:
        """Return what each queue pair writes, of a buffer of zeros, and the label of its channel."""
        offset_bytes = 0
        for number in range(self.queue_pairs):
            length_bytes = self.size_bytes // self.queue_pairs + (number < self.size_bytes % self.queue_pairs)
            yield Span(ZEROS, offset_bytes, length_bytes), f"{LABEL} {number}" if number else LABEL
            offset_bytes += length_bytes


def incast(
    receiver: int,
    senders: Iterable[int],
    size_bytes: int,
    plane: int = 0,
    start_ps: int = 0,
    queue_pairs: int = 1,
) -> list[Flow]:
    """All senders write to one receiver at once. A receiver among the senders is left out."""
    return [
        Flow(sender, receiver, size_bytes, plane, start_ps, queue_pairs) for sender in senders if sender != receiver
    ]


def permutation(rank_count: int, size_bytes: int, plane: int = 0, seed: int = 0, queue_pairs: int = 1) -> list[Flow]:
    """Every rank sends to one other and receives from one other: a seeded random cycle through all ranks.

    Raises ValueError for fewer than two ranks.
    """
    if rank_count < 2:
        raise InvalidValueError(f"a permutation of {rank_count} ranks", valid="2 or more")
    order = list(range(rank_count))
    random.Random(seed).shuffle(order)
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [Flow(rank, following[rank], size_bytes, plane, queue_pairs=queue_pairs) for rank in range(rank_count)]


def flows_by_rank(flows: Sequence[Flow]) -> dict[int, dict[int, Flow]]:
    """Return the flows that each rank sends or receives, by rank and by their place among all."""
    by_rank: dict[int, dict[int, Flow]] = {}
    for number, flow in enumerate(flows):
        for rank in (flow.source, flow.destination):
            by_rank.setdefault(rank, {})[number] = flow
    return by_rank


def flow_schedule(
    flows: Mapping[int, Flow], rank: int, run_tag: int = 0, *, tells_receivers: bool = True
) -> RankSchedule:
    """Return the schedule of `rank` for its flows; it is done when all that it sends and receives has completed.

    A flow's number distinguishes it from all others of the run. If the transport does not tell receivers of messages
    (`TransportKind.tells_receivers`), it is done when all that the rank sends has completed.

    Raises ValueError for a flow from a rank to itself, of a size outside 1 byte to 2 GiB, before the start, or over
    more queue pairs than it has bytes.
    """
    largest = max((flow.size_bytes for flow in flows.values()), default=0)
    schedule = RankSchedule(rank, {ZEROS: largest, SINK: largest})
    for number, flow in flows.items():
        if flow.source == flow.destination:
            raise ValueError(f"flow {number} goes from rank {flow.source} to itself")
        if not 0 < flow.size_bytes <= MAX_FLOW_BYTES:
            raise InvalidValueError(f"flow {number} of {flow.size_bytes} bytes", valid=f"1 to {MAX_FLOW_BYTES}")
        if flow.start_ps < 0:
            raise InvalidValueError(f"flow {number} starts at {flow.start_ps} ps", valid="0 or later")
        most_queue_pairs = min(flow.size_bytes, MAX_FLOW_QUEUE_PAIRS)
        if not 1 <= flow.queue_pairs <= most_queue_pairs:
            raise InvalidValueError(
                f"flow {number} of {flow.size_bytes} bytes over {flow.queue_pairs} queue pairs",
                valid=f"1 to {most_queue_pairs}",
            )
        immediate = run_immediate(run_tag, number)
        told = immediate if tells_receivers else None
        if flow.source == rank:
            delay = schedule.add(Delay(flow.start_ps)) if flow.start_ps else None
            for source, label in flow.parts():
                channel = Channel(flow.plane, flow.destination, label, flow.traffic_class)
                schedule.add(Write(channel, source, replace(source, buffer=SINK), told), [delay])
        if flow.destination == rank and tells_receivers:
            for _, label in flow.parts():
                channel = Channel(flow.plane, flow.source, label, flow.traffic_class)
                schedule.add(WaitReceive(channel, immediate))
    return schedule
