"""Traffic around the rings of a torus: every host writes to the one two places further along its row."""

from collections.abc import Iterator

import numpy as np

import weft
from weft.topologies import FabricSpec


class AlongRows(weft.TrafficPattern):
    """`size_bytes` a host. All links of a row that lead one way carry two flows; needs a torus with a host a switch."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterator[weft.Flow]:
        """See weft.TrafficPattern."""
        columns = 1 + max(switch.coordinates[-1] for switch in fabric.switches)
        for host in range(len(fabric.hosts)):
            row, column = divmod(host, columns)
            yield weft.Flow(host, row * columns + (column + 2) % columns, self.size_bytes)
