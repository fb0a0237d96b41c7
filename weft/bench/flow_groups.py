"""Flows that belong together, such as a transfer over several NICs or a dispatch of all ranks to all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.bench.setup import Setup
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S
from weft.traffic.patterns import Flow
from weft.trials import TrialRun


@dataclass(frozen=True, eq=False)
class GroupTimes:
    """Times of groups, in the order in which they were added.

    Attributes:
        start_ps: when the first flow of each group was posted.
        latency_ps: from then until the last one's last acknowledgement.
        size_bytes: payload of each group.
    """

    start_ps: Integers
    latency_ps: Integers
    size_bytes: Integers

    @property
    def bytes_per_s(self) -> float:
        """Payload of all groups over the time from the first start to the last acknowledgement."""
        begin, end = self.start_ps.min(), (self.start_ps + self.latency_ps).max()
        return float(self.size_bytes.sum()) * PS_PER_S / float(end - begin)


class FlowGroups:
    """Collects flows by group, and finds the groups in a run."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self._groups: list[int] = []
        self.count = 0

    def add(self, flows: Iterable[Flow]) -> None:
        """Add a group."""
        for flow in flows:
            self.flows.append(flow)
            self._groups.append(self.count)
        self.count += 1

    def item(self, setup: Setup) -> dict[str, Any]:
        """Return the item of traffic that runs all flows."""
        return setup.flows(self.flows)

    def times(self, run: TrialRun, item: int = 0) -> GroupTimes:
        """Return the groups' times in a run; `item` is the place of these flows among the run's lists of flows."""
        flows = run.flows
        rows = np.flatnonzero(flows["item"] == item)
        groups = np.asarray(self._groups, np.int64)[flows["flow"][rows]]
        starts, ends = np.full(self.count, np.iinfo(np.int64).max), np.zeros(self.count, np.int64)
        np.minimum.at(starts, groups, flows["start_ps"][rows])
        np.maximum.at(ends, groups, (flows["start_ps"] + flows["completion_ps"])[rows])
        sizes = np.bincount(groups, flows["size_bytes"][rows], self.count).astype(np.int64)
        return GroupTimes(starts, ends - starts, sizes)

    def mean_wait_ps(self, run: TrialRun, item: int = 0) -> float:
        """Return how long a rank waits from a group's start for all flows to it, on average over groups and ranks."""
        flows = run.flows
        rows = np.flatnonzero(flows["item"] == item)
        starts = self.times(run, item).start_ps
        groups = np.asarray(self._groups, np.int64)[flows["flow"][rows]]
        keys, places = np.unique(np.stack((groups, flows["destination"][rows])), axis=1, return_inverse=True)
        ends = np.zeros(keys.shape[1], np.int64)
        np.maximum.at(ends, places.ravel(), (flows["start_ps"] + flows["completion_ps"])[rows])
        return float((ends - starts[keys[0]]).mean())
