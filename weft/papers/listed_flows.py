"""Flows that a study lists, as a traffic pattern of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import weft
from weft.topologies import FabricSpec


class ListedFlows(weft.TrafficPattern):
    """Flows [source, destination, bytes] or [source, destination, bytes, start in us] by hosts' numbers."""

    def __init__(self, flows: Sequence[Sequence[float]]) -> None:
        self._flows = flows

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterator[weft.Flow]:
        """See weft.TrafficPattern."""
        for source, destination, size_bytes, *start_us in self._flows:
            start_ps = round(start_us[0] * 1_000_000) if start_us else 0
            yield weft.Flow(int(source), int(destination), int(size_bytes), start_ps=start_ps)
