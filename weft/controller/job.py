"""An aggregation job that has been admitted: its hosts, its trees, what is set aside for it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.trees import AggregationTree
from weft.topologies.addressing import IpVersion

UNPROMISED = 1.0
"""For what a job counts that is promised nothing and may take all of a link."""
LANE_COUNT = 64
"""Lanes of a packet with data, unless the program was compiled for others."""


@dataclass(frozen=True)
class PlannedTree:
    """A tree and the first slot of the job on each of its switches."""

    tree: AggregationTree
    slot_base: dict[str, int]


@dataclass(frozen=True)
class Job:
    """An admitted job: `hosts` in order of their ranks, one planned tree per plane, packets of one IP version.

    It belongs to `tenant`, "" for nobody, and is promised a `share` of the rate of its trees' links; 0: nothing.
    Packets with data have `lane_count` lanes.
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

    @property
    def weight(self) -> float:
        """What its trees count for where others are placed."""
        return self.share or UNPROMISED
