"""An admitted aggregation job: its hosts, its trees and its reserved resources."""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.trees import AggregationTree
from weft.topologies.addressing import IpVersion

UNPROMISED = 1.0
"""Weight of a job without a promised share, which may use a whole link."""
LANE_COUNT = 64
"""Default number of lanes in a data packet; a program may be compiled with another."""


@dataclass(frozen=True)
class PlannedTree:
    """A tree, and the job's first slot on each of its switches."""

    tree: AggregationTree
    slot_base: dict[str, int]


@dataclass(frozen=True)
class Job:
    """An admitted job: `hosts` in order of their ranks, one planned tree per plane, packets of one IP version.

    Its workers are the hosts' NICs at `place` among the NICs of each plane, from 0; hosts with several NICs in a plane
    need a job for each. It belongs to `tenant` ("" for nobody) and is promised a `share` of the rate of its trees'
    links; 0 is no promise. Data packets have `lane_count` lanes.
    """

    job_id: int
    hosts: tuple[str, ...]
    planes: tuple[int, ...]
    slot_count: int
    epoch: int
    q_key: int
    trees: tuple[PlannedTree, ...]
    ip_version: IpVersion = 4
    tenant: str = ""
    share: float = 0.0
    lane_count: int = LANE_COUNT
    place: int = 0

    @property
    def weight(self) -> float:
        """Load that the job's trees add to their links when other trees are placed."""
        return self.share or UNPROMISED
