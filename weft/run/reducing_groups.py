"""Ranks that reduce together in the network."""

from __future__ import annotations

from dataclasses import dataclass

from weft.quantities.traffic_classes import DATA_CLASS


@dataclass(frozen=True)
class ReducingGroup:
    """Ranks that have an aggregation job of their own, in order of its workers; None: all ranks of the fabric.

    `tenant` is to whom the job belongs, "" nobody. Its packets travel in `traffic_class`.
    """

    ranks: tuple[int, ...] | None = None
    tenant: str = ""
    traffic_class: int = DATA_CLASS


ALL_RANKS = ReducingGroup()
