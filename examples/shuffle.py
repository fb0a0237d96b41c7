"""A traffic pattern of one's own: a shuffle, as between the stages of a MapReduce job."""

from collections.abc import Iterator

import numpy as np

import weft
from weft.topologies import FabricSpec


class Shuffle(weft.TrafficPattern):
    """Every host sends a block to every other, in an order of its own, `stagger_us` apart; sizes vary by `spread`."""

    def __init__(self, block_bytes: int = 16384, stagger_us: float = 1.0, spread: float = 0.5) -> None:
        if not 0 <= spread < 1:
            raise ValueError(f"spread is {spread} (valid: from 0 to below 1)")
        self.block_bytes = block_bytes
        self.stagger_ps = round(stagger_us * 1e6)
        self.spread = spread

    def flows(self, fabric: FabricSpec, rng: np.random.Generator) -> Iterator[weft.Flow]:
        """See weft.TrafficPattern."""
        hosts = len(fabric.hosts)
        for source in range(hosts):
            others = np.delete(np.arange(hosts), source)
            for turn, destination in enumerate(rng.permutation(others)):
                size = self.block_bytes * rng.uniform(1 - self.spread, 1 + self.spread)
                yield weft.Flow(
                    source,
                    int(destination),
                    max(1, round(size)),
                    plane=turn % fabric.training_nics,
                    start_ps=turn * self.stagger_ps,
                )
