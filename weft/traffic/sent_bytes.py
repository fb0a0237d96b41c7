"""How many bytes prepared runs are going to send over each queue pair: the matrix of the traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.traffic.jobs.classes import Slots
from weft.traffic.jobs.native_job import SharedParts
from weft.traffic.jobs.operations import Kind, exact_sum
from weft.traffic.jobs.rank_job import SHARE_UNIT, PeerPaths, RankJob
from weft.traffic.lane_schedule import Schedule
from weft.traffic.patterns import Flow
from weft.traffic.schedule_nodes import Channel


class SentOver(NamedTuple):
    """Bytes of one queue pair between two ranks, over the NICs of a number."""

    source: int
    destination: int
    nic: int
    size_bytes: int


class SentBytes:
    """Sums the bytes of runs as they are prepared. Scale-up links and the network's reductions do not count."""

    def __init__(self) -> None:
        self._of_channels: Counter[tuple[int, Channel]] = Counter()
        self._of_flows: list[SentOver] = []

    def add_schedules(self, schedules: Sequence[Schedule]) -> None:
        """Add what ranks write by their schedules."""
        for schedule in schedules:
            for channel, size_bytes in schedule.sent_bytes().items():
                self._of_channels[schedule.rank, channel] += size_bytes

    def add_flows(self, flows: Sequence[Flow]) -> None:
        """Add flows that have a queue pair each."""
        self._of_flows += [SentOver(each.source, each.destination, each.plane, each.size_bytes) for each in flows]

    def add_job(self, rank: int, part: RankJob, slots: Slots, shared: SharedParts) -> None:
        """Add what a rank of a job sends, and what it reads of others."""
        operations = slots.operations
        for kind in (Kind.SEND, Kind.READ):
            rows = operations.of_kind(kind)
            targets, sizes = slots.target[rows], operations.size_bytes[rows]
            for slot in np.unique(targets).tolist():
                for channel, size_bytes in _shares(part.peers[slot], exact_sum(sizes[targets == slot])):
                    sender = (channel.peer, channel.towards(rank)) if kind is Kind.READ else (rank, channel)
                    self._of_channels[sender] += size_bytes
        rows = operations.of_kind(Kind.COLLECTIVE)
        calls_apart = len(part.calls) != len(slots.calls)
        numbers = np.arange(len(rows)) if calls_apart else slots.target[rows]
        for slot, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            call = part.calls[int(slot)]
            for channel, size_bytes in shared.schedule(call).sent_bytes().items():
                self._of_channels[rank, call.channel(channel)] += size_bytes * int(count)

    def __iter__(self) -> Iterator[SentOver]:
        """Iterate over the queue pairs that send something between hosts."""
        for (rank, channel), size_bytes in self._of_channels.items():
            if size_bytes and not channel.is_scale_up:
                yield SentOver(rank, channel.peer, channel.plane, size_bytes)
        yield from self._of_flows


def _shares(paths: PeerPaths, size_bytes: int) -> Iterator[tuple[Channel, int]]:
    """Yield each channel to a peer with its share of the bytes."""
    before = 0
    for channel, end_share in zip(paths.channels, paths.end_shares, strict=True):
        end = size_bytes * end_share // SHARE_UNIT
        yield channel, end - before
        before = end
