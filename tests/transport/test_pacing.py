"""A queue pair's next sending time follows its rate, whenever that changes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import DELAY_PS, US, RdmaPair, cabled_pair, random_bytes
from weft.engine import CongestionControl, python_congestion_control

MTU = 1024
FRAME_BITS = 8 * 1086


@dataclass
class Change:
    """A rate, and another from a given time on."""

    first_bps: int
    then_bps: int
    at_ps: int
    now_bps: int = 0
    over: bool = False

    def control(self) -> CongestionControl:
        self.now_bps = self.first_bps
        return python_congestion_control(
            "Change",
            window_bytes=lambda: 1 << 20,
            pacing_rate_bps=lambda: self.now_bps,
            next_deadline_ps=lambda: None if self.over else self.at_ps,
            on_packet_sent=None,
            on_acknowledgement=lambda _event: None,
            on_congestion_notification=None,
            on_loss=None,
            on_deadline=self.change,
        )

    def change(self, _now_ps: int) -> None:
        self.now_bps, self.over = self.then_bps, True


def completion_ps(pair: RdmaPair, packets: int) -> int:
    """When a message of so many packets has arrived."""
    source = random_bytes(packets * MTU)
    target: Any = np.zeros_like(source)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, pair.b.register(target).rkey, immediate=1)
    while not (done := pair.b.completions.poll()):
        pair.engine.run_for(US // 10)
        assert pair.engine.now_ps < 5000 * US
    return int(done[0]["completed_ps"])


def test_a_moment_at_a_low_rate_does_not_cost_its_gap() -> None:
    change = Change(10_000_000, 100_000_000_000, 5 * US)
    pair = cabled_pair(sender={"congestion_control": change.control()}, retransmission_timeout_ps=10_000 * US)
    assert completion_ps(pair, 2) < 5 * US + DELAY_PS + US  # at 10 Mb/s a frame takes 866 us


def test_a_rate_that_falls_makes_the_gap_longer() -> None:
    change = Change(1_000_000_000, 100_000_000, 3 * US)
    pair = cabled_pair(sender={"congestion_control": change.control()}, retransmission_timeout_ps=10_000 * US)
    gap_ps = FRAME_BITS * 10**12 // 100_000_000
    assert completion_ps(pair, 2) == pytest.approx(gap_ps + DELAY_PS, rel=0.02)


def test_a_rate_without_bound_ends_the_gap() -> None:
    change = Change(10_000_000, 0, 5 * US)
    pair = cabled_pair(sender={"congestion_control": change.control()}, retransmission_timeout_ps=10_000 * US)
    assert completion_ps(pair, 3) < 5 * US + DELAY_PS + US


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("rate_bps", [1_000_000, 10_000_000, 1_000_000_000])
def test_a_low_rate_is_not_taken_for_a_loss(rate_bps: int, retransmission: str) -> None:
    """Eight packets ask for one answer, and take up to thousands of timeouts to be sent."""
    pair = cabled_pair(
        pacing_rate_bps=rate_bps,
        window_bytes=1 << 20,
        retransmission=retransmission,
        ack_interval_packets=8,
        retransmission_timeout_ps=20 * US,
    )
    source = random_bytes(5 * MTU)
    rkey = pair.b.register(np.zeros_like(source)).rkey
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, rkey)
    pair.engine.run_for(6 * FRAME_BITS * 10**12 // rate_bps)
    assert [each["status"] for each in pair.a.completions.poll()] == ["success"]
    stats = pair.a.queue_pair.stats()
    assert (stats["timeouts"], stats["retransmitted_packets"]) == (0, 0)


def test_a_loss_at_a_low_rate_is_noticed_after_the_gap() -> None:
    rate_bps = 10_000_000
    pair = cabled_pair(
        pacing_rate_bps=rate_bps,
        window_bytes=1 << 20,
        retransmission_timeout_ps=20 * US,
        retry_limit=2,
        faults={"loss": 0.999999},
    )
    source = random_bytes(2 * MTU)
    pair.a.queue_pair.post_write(pair.a.register(source), 0, len(source), 0, 1)
    pair.engine.run_for(10 * FRAME_BITS * 10**12 // rate_bps)
    assert [each["status"] for each in pair.a.completions.poll()] == ["retry_exceeded"]
