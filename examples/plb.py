"""A choice of path of one's own: change it when the present one is congested, as PLB does.

After Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022. PLB
counts marked round trips; here the receiver's congestion notifications are the signal.
"""

import numpy as np

import weft


class Plb(weft.PathChoice):
    """A path is kept for at least `patience` idle round trips, and until `marks` notifications have come on it."""

    def __init__(
        self, path: weft.PathProperties, rng: np.random.Generator, patience: float = 2.0, marks: int = 1
    ) -> None:
        super().__init__(path, rng)
        self.patience_ps = round(patience * path.base_round_trip_ps)
        self.marks = marks
        self._take_another(0)

    def entropy(self, now_ps: int, sequence: int, retransmission: bool) -> int:
        """Stay on the path."""
        return self.current

    def on_congestion_notification(self, now_ps: int) -> None:
        """Leave a path that keeps being marked."""
        self.marked += 1
        if self.marked >= self.marks and now_ps >= self.since_ps + self.patience_ps:
            self._take_another(now_ps)

    def _take_another(self, now_ps: int) -> None:
        self.current = int(self.rng.integers(self.entropies))
        self.since_ps = now_ps
        self.marked = 0
