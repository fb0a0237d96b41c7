"""How computations differ between ranks and from time to time: stragglers and jitter, by a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.quantities import portable_math
from weft.traffic.jobs.operations import MAX_DURATION_PS


@dataclass(frozen=True)
class ComputeVariation:
    """How computation differs between ranks and from time to time.

    Attributes:
        stragglers: of some ranks, by which factor all their computations are longer.
        jitter: standard deviation of the logarithm of a factor of every computation, drawn from a log-normal
            distribution of median 1.
        seed: of the factors.

    """

    stragglers: Mapping[int, float] = field(default_factory=dict)
    jitter: float = 0.0
    seed: int = 1

    def with_jitter(self, rank: int, durations_ps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a rank's durations, each times a factor of its own; the same array where there is no jitter."""
        if not self.jitter:
            return durations_ps
        generator = np.random.default_rng([self.seed, rank])
        factors = portable_math.exp(self.jitter * generator.standard_normal(len(durations_ps)))
        varied = np.minimum(np.rint(durations_ps * factors), MAX_DURATION_PS).astype(np.int64)
        varied.flags.writeable = False
        return varied
