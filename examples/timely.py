"""A congestion control of one's own: TIMELY, which paces by the gradient of the round-trip time.

Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1.
"""

import weft

_HYPERACTIVE_AFTER = 5  # rate increases in a row; section 4.3


class Timely(weft.CongestionControl):
    """Thresholds are in round trips of the idle path, the step in line rates, the window in products of the two."""

    def __init__(
        self,
        path: weft.PathProperties,
        low: float = 1.25,
        high: float = 4.0,
        step: float = 0.01,
        decrease: float = 0.8,
        smoothing: float = 0.5,
        window: float = 2.0,
    ) -> None:
        super().__init__(path)
        self.low_ps = low * path.base_round_trip_ps
        self.high_ps = high * path.base_round_trip_ps
        self.step_bps = step * path.line_rate_bps
        self.decrease, self.smoothing = decrease, smoothing
        self.most_in_flight_bytes = round(window * path.bandwidth_delay_product_bytes)
        self.rate_bps = float(path.line_rate_bps)
        self.round_trip_ps = 0
        self.gradient = 0.0
        self.increases = 0
        self.next_update = 0

    def window_bytes(self) -> int:
        """Let the rate decide, within a bound on what senders that start together put in flight."""
        return self.most_in_flight_bytes

    def pacing_rate_bps(self) -> int:
        """See weft.CongestionControl."""
        return round(self.rate_bps)

    def on_acknowledgement(self, event: weft.Acknowledgement) -> None:
        """Once a round trip: what was sent after the last change has come back."""
        if event.round_trip_ps == 0 or event.sequence < self.next_update:
            return
        self.next_update = event.next_sequence
        before, self.round_trip_ps = self.round_trip_ps, event.round_trip_ps
        if before:
            difference = (self.round_trip_ps - before) / self.path.base_round_trip_ps
            self.gradient += self.smoothing * (difference - self.gradient)
            self._update()

    def _update(self) -> None:
        if self.round_trip_ps < self.low_ps:
            self._increase()
        elif self.round_trip_ps > self.high_ps:
            self._decrease(1 - self.high_ps / self.round_trip_ps)
        elif self.gradient <= 0:
            self._increase()
        else:
            self._decrease(min(1.0, self.gradient))

    def _increase(self) -> None:
        self.increases += 1
        steps = 5 if self.increases >= _HYPERACTIVE_AFTER else 1
        self.rate_bps = min(float(self.path.line_rate_bps), self.rate_bps + steps * self.step_bps)

    def _decrease(self, share: float) -> None:
        self.increases = 0
        self.rate_bps = max(self.step_bps, self.rate_bps * (1 - self.decrease * share))
