"""Weft's TCP in virtual time and Linux's in a lab of the real clock, over the same fabric and program."""

from __future__ import annotations

import os

import pytest
from tcp_linux import Found, Way, linux, ours

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for Mininet"),
]

WAYS = (Way("newreno", False), Way("cubic", False), Way("newreno", True))
DURATION_S = 6
MOST_BPS = 20e6 * 1448 / 1514
"""Of 1,514 B on the link 1,448 are data."""
QUEUE_BYTES = 50_000
MARKED_FROM_BYTES = 20_000


@pytest.fixture(scope="module")
def found() -> dict[Way, tuple[Found, Found]]:
    pairs = zip(ours(WAYS, DURATION_S), linux(WAYS, DURATION_S), strict=True)
    return dict(zip(WAYS, pairs, strict=True))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_both_fill_the_link_and_share_it(found: dict[Way, tuple[Found, Found]], way: Way) -> None:
    """The queue is twice the bandwidth-delay product, so the link is always busy; a mark at 20 kB may leave it idle.

    Goodputs are of each flow's own time, at whose ends it has the link alone, so their sum may be beyond the link's.
    Flows with equal round trips get equal shares in the long run; over some ten losses each, not quite.
    """
    for each in found[way]:
        assert (0.85 if way.ecn else 0.92) * MOST_BPS < each.goodput_bps < 1.15 * MOST_BPS
        assert each.larger_share < 0.7
    weft, kernel = found[way]
    assert kernel.goodput_bps == pytest.approx(weft.goodput_bps, rel=0.1)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_both_have_the_same_queue(found: dict[Way, tuple[Found, Found]], way: Way) -> None:
    """Without marks it is at times full; with them it is seldom longer than what is marked."""
    weft, kernel = found[way]
    most = MARKED_FROM_BYTES if way.ecn else QUEUE_BYTES
    for each in found[way]:
        assert 0.8 * most < each.queue_bytes(0.9) < 1.2 * most
        assert each.queue_bytes(0.5) < 0.95 * most
    # A window of whole segments is off by one of each flow.
    assert kernel.queue_bytes(0.5) == pytest.approx(weft.queue_bytes(0.5), rel=0.3, abs=3 * 1514)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_both_have_losses_or_marks_alike(found: dict[Way, tuple[Found, Found]], way: Way) -> None:
    """Losses are repaired without timeouts; their number per second is that of the sawtooth, which both have."""
    weft, kernel = found[way]
    assert weft.total("timeouts") == 0
    assert kernel.total("timeouts") <= 1  # a machine that pauses for 200 ms makes one
    again, count = "retransmitted_segments", "fast_recoveries"
    assert (weft.total(again) > 0) == (weft.total(count) > 0) == (not way.ecn)
    for each in found[way]:
        assert (each.marked_packets > 0) == way.ecn
    if not way.ecn:
        assert 0.5 < kernel.total(count) / weft.total(count) < 2
        assert kernel.total("mean_window_bytes") == pytest.approx(weft.total("mean_window_bytes"), rel=0.2)
    else:
        assert 0.5 < kernel.marked_packets / weft.marked_packets < 2
        # Where the machine pauses, the kernel's timers and probes send again what is not lost.
        assert kernel.total(again) < kernel.total("sent_segments") / 100
