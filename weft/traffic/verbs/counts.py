"""Counters of a host's RDMA device besides the host's totals: queue pairs of UC and UD, connection management."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from weft.engine import _core
from weft.verbs.counters import DEVICE_COUNTERS, UNRELIABLE_COUNTERS

_Unreliable = _core.UcQueuePair | _core.UdQueuePair


class DeviceCounts:
    """Counters by the names of `DEVICE_COUNTERS`. They run on as long as the host, whatever `reset_stats` does."""

    def __init__(self) -> None:
        self._queue_pairs: list[_Unreliable] = []
        self._kept: Counter[str] = Counter()
        self._management: Callable[[], Mapping[str, int]] | None = None

    def count(self, queue_pair: _core.QueuePair) -> None:
        """Count what a queue pair of a client counts, until `count_no_more`. The host's totals have RC's."""
        if isinstance(queue_pair, _Unreliable):
            self._queue_pairs.append(queue_pair)

    def count_no_more(self, queue_pair: _core.QueuePair) -> None:
        """Keep what it has counted."""
        if isinstance(queue_pair, _Unreliable):
            self._queue_pairs.remove(queue_pair)
            self._kept.update(_counts_of(queue_pair))

    def keep(self) -> None:
        """Keep what a reset of queue pairs, which follows, would forget: UC's own counters go with those of RC."""
        for queue_pair in self._queue_pairs:
            if isinstance(queue_pair, _core.UcQueuePair):
                self._kept.update(_counts_of(queue_pair))
                queue_pair.reset_stats()

    def count_management(self, counters: Callable[[], Mapping[str, int]]) -> None:
        """Have connection management's counters read there."""
        self._management = counters

    def values(self) -> dict[str, int]:
        """Return all counters; none of a host without a device."""
        if self._management is None:
            return {}
        sums = Counter(self._kept)
        for queue_pair in self._queue_pairs:
            sums.update(_counts_of(queue_pair))
        sums.update(self._management())
        return {name: sums[name] for name in DEVICE_COUNTERS}


def _counts_of(queue_pair: _Unreliable) -> dict[str, int]:
    if isinstance(queue_pair, _core.UcQueuePair):
        return _named("uc", queue_pair.uc_stats())
    return _named("ud", queue_pair.stats())


def _named(service: str, stats: Mapping[str, Any]) -> dict[str, int]:
    return {f"{service}_{name}": stats[name] for name in UNRELIABLE_COUNTERS[service]}
