"""A window that follows the rate: what HPCC's authors add to DCQCN and TIMELY for their "+w".

Source: alibaba-edu/High-Precision-Congestion-Control, rdma-queue-pair.cc (GetWin with VAR_WIN) and run.py.
"""

from __future__ import annotations

import weft
from weft.engine import CongestionNeeds, make_congestion_control


class RateWindow(weft.CongestionControl):
    """One of Weft's controls by rate, with a window of a bandwidth-delay product times the rate's share of the line.

    `parameters` are the control's, by the engine's names (with their units).
    """

    needs = CongestionNeeds(marks=True, every_acknowledgement=True)

    def __init__(self, path: weft.PathProperties, control: str, preset: str = "", **parameters: float) -> None:
        super().__init__(path)
        self._control = make_congestion_control(
            control,
            preset=preset,
            parameters=parameters,
            line_rate_bps=path.line_rate_bps,
            base_round_trip_ps=path.base_round_trip_ps,
            frame_bytes=path.frame_bytes,
        )
        self._product_bytes = path.bandwidth_delay_product_bytes

    def window_bytes(self) -> int:
        """See weft.CongestionControl."""
        return max(1, self._product_bytes * self._control.pacing_rate_bps // self.path.line_rate_bps)

    def pacing_rate_bps(self) -> int:
        """See weft.CongestionControl."""
        return self._control.pacing_rate_bps

    def next_deadline_ps(self) -> int | None:
        """See weft.CongestionControl."""
        return self._control.next_deadline_ps

    def on_acknowledgement(self, event: weft.Acknowledgement) -> None:
        """See weft.CongestionControl."""
        self._control.on_acknowledgement(
            event.now_ps,
            acknowledged_bytes=event.acknowledged_bytes,
            acknowledged_packets=event.acknowledged_packets,
            in_flight_bytes=event.in_flight_bytes,
            round_trip_ps=event.round_trip_ps,
            sequence=event.sequence,
            next_sequence=event.next_sequence,
            hops=event.hops,
            congestion_experienced=event.congestion_experienced,
        )

    def on_congestion_notification(self, now_ps: int) -> None:
        """See weft.CongestionControl."""
        self._control.on_congestion_notification(now_ps)

    def on_packet_sent(self, now_ps: int, frame_bytes: int, retransmission: bool) -> None:
        """See weft.CongestionControl."""
        self._control.on_packet_sent(now_ps, frame_bytes, retransmission)

    def on_loss(self, now_ps: int, timeout: bool) -> None:
        """See weft.CongestionControl."""
        self._control.on_loss(now_ps, timeout)

    def on_deadline(self, now_ps: int) -> None:
        """See weft.CongestionControl."""
        self._control.on_deadline(now_ps)
