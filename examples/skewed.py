"""A skewed traffic pattern: each host has a favourite, such as a popular expert, and sends a little to others."""

from collections.abc import Iterator

import numpy as np

import weft
from weft.topologies import FabricSpec


class Skewed(weft.TrafficPattern):
    """Every host writes `large_bytes` to one host and `small_bytes` to some `others`, and receives as much.

    Each round is a permutation, so no NIC sends or receives more than another.
    """

    def __init__(self, large_bytes: int = 8 << 20, small_bytes: int = 512 << 10, others: int = 3) -> None:
        self.large_bytes, self.small_bytes, self.others = large_bytes, small_bytes, others

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterator[weft.Flow]:
        """See weft.TrafficPattern."""
        hosts = len(fabric.hosts)
        order = rng.permutation(hosts)
        for turn in range(1 + self.others):
            size_bytes = self.small_bytes if turn else self.large_bytes
            for place, source in enumerate(order):
                yield weft.Flow(int(source), int(order[(place + 1 + turn) % hosts]), size_bytes)
