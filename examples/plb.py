"""A choice of path of one's own: change it when the present one is congested, as PLB does.

After Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022,
section 3: the signal is the share of packets in a round trip that switches marked, as acknowledgements report it.
"""

import numpy as np

import weft


class Plb(weft.PathChoice):
    """A path is left after `rounds` round trips in a row in which more than `threshold` of its packets were marked."""

    def __init__(
        self, path: weft.PathProperties, rng: np.random.Generator, threshold: float = 0.5, rounds: int = 3
    ) -> None:
        super().__init__(path, rng)
        self.threshold = threshold
        self.rounds = rounds
        self._take_another(0)

    def entropy(self, now_ps: int, sequence: int, retransmission: bool) -> int:
        """Stay on the path."""
        return self.current

    def on_delivered(self, now_ps: int, entropy: int, round_trip_ps: int, congestion_experienced: bool) -> None:
        """Count marks; at the end of a round trip, see whether there were too many."""
        if entropy != self.current:
            return
        self.delivered += 1
        self.marked += congestion_experienced
        if now_ps < self.round_ends_ps:
            return
        self.congested_rounds = self.congested_rounds + 1 if self.marked > self.threshold * self.delivered else 0
        if self.congested_rounds >= self.rounds:
            self._take_another(now_ps)
        else:
            self._begin_round(now_ps)

    def _take_another(self, now_ps: int) -> None:
        self.current = int(self.rng.integers(self.entropies))
        self.congested_rounds = 0
        self._begin_round(now_ps)

    def _begin_round(self, now_ps: int) -> None:
        self.delivered = self.marked = 0
        self.round_ends_ps = now_ps + self.path.base_round_trip_ps
