"""How compute times vary between ranks and over time: stragglers, seeded jitter, and communication beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.quantities import portable_math
from weft.traffic.jobs.operations import MAX_DURATION_PS


@dataclass(frozen=True)
class ComputeVariation:
    """How compute times vary between ranks and over time.

    Attributes:
        stragglers: by rank, the factor that lengthens all its computations.
        jitter: standard deviation of the logarithm of each computation's factor, drawn from a log-normal
            distribution with median 1.
        seed: random seed of the jitter.
        communication_share: see `RankPart`.

    """

    stragglers: Mapping[int, float] = field(default_factory=dict)
    jitter: float = 0.0
    seed: int = 1
    communication_share: float = 0.0

    def with_jitter(self, rank: int, durations_ps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a rank's durations, each multiplied by its jitter factor; the same array without jitter."""
        if not self.jitter:
            return durations_ps
        generator = np.random.default_rng([self.seed, rank])
        factors = portable_math.exp(self.jitter * generator.standard_normal(len(durations_ps)))
        varied = np.minimum(np.rint(durations_ps * factors), MAX_DURATION_PS).astype(np.int64)
        varied.flags.writeable = False
        return varied
