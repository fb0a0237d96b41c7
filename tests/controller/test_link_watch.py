"""Lossy and slow links, found from counters."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.controller.errors import SettingError
from weft.controller.link_watch import DirectionWatch, Loss, Reading, Slowness, WatchLimits

RATE_BPS = 100 * 10**9
US = 10**6
FRAME_BYTES = 1250
PER_INTERVAL = 1000  # frames of 100 us at 100 Gb/s
LIMITS = WatchLimits(loss_ratio=0.01, least_packets=1000, slow_ratio=0.8)


def watch(limits: WatchLimits = LIMITS) -> DirectionWatch:
    return DirectionWatch(RATE_BPS, delay_ps=US, limits=limits)


def reading(number: int, sent: int, received: int, marked: int = 0) -> Reading:
    return Reading(number * 100 * US, sent, sent * FRAME_BYTES, received, marked)


def test_a_share_of_lost_packets_above_the_limit_is_a_loss_and_below_it_is_none() -> None:
    for lost, expected in ((0, []), (20, []), (21, [Loss(10, 1000)])):
        link = watch()
        assert link.take(reading(0, 0, 0)) == []
        # Ten frames fit on the link and one is being sent, so eleven are not known to be lost.
        assert link.take(reading(1, 1000, 1000 - lost)) == expected
    assert Loss(10, 1000).ratio == 0.01


def test_few_packets_are_not_judged_but_add_up() -> None:
    link = watch()
    link.take(reading(0, 0, 0))
    assert link.take(reading(1, 400, 300)) == []
    assert link.take(reading(2, 1000, 800)) == [Loss(189, 1000)]
    assert link.take(reading(3, 2000, 1800)) == []  # compared with the last judgement


def test_what_was_on_the_link_at_the_first_reading_is_no_gain() -> None:
    link = watch()
    link.take(reading(0, 1000, 990))
    assert link.take(reading(1, 3000, 3000)) == []


def test_duplicates_are_no_losses() -> None:
    link = watch()
    link.take(reading(0, 0, 0))
    assert link.take(reading(1, 5000, 5600)) == []


def test_ends_that_were_read_apart_are_not_called_lossy_for_it() -> None:
    def found(uncertainty_ps: int) -> list[Loss | Slowness]:
        link = watch()
        link.take(Reading(0, 0, 0, 0, 0, uncertainty_ps))
        return link.take(Reading(100 * US, 1000, 1000 * FRAME_BYTES, 900, 0, uncertainty_ps))

    assert found(0) == [Loss(89, 1000)]
    assert found(5 * US) == []


def test_counters_that_fall_begin_anew() -> None:
    link = watch()
    link.take(reading(0, 5000, 5000))
    assert link.take(reading(1, 1000, 0)) == []
    assert link.take(reading(2, 2000, 1000)) == []
    link.restart()
    assert link.take(reading(3, 9000, 1000)) == []


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 12)), max_size=30))
def test_a_link_that_loses_nothing_is_never_lossy(intervals: list[tuple[int, int]]) -> None:
    """Whatever is sent, and however many of up to ten frames and one more are on the link."""
    link, sent = watch(), 0
    for number, (packets, under_way) in enumerate(intervals):
        sent += packets
        assert link.take(reading(number, sent, max(0, sent - min(under_way, 11)))) == []


@given(st.lists(st.integers(100, 3000), min_size=2, max_size=30), st.integers(2, 10))
def test_a_link_that_loses_a_tenth_or_more_is_found_when_enough_was_sent(
    intervals: list[int], one_in: int
) -> None:
    link, sent, found, since = watch(), 0, [], 0
    link.take(reading(0, 0, 0))
    for number, packets in enumerate(intervals, 1):
        sent, since = sent + packets, since + packets
        found = link.take(reading(number, sent, sent - sent // one_in))
        assert bool(found) == (since >= LIMITS.least_packets)
        since = 0 if found else since


def intervals_sent(link: DirectionWatch, frames: list[int], marked: list[int]) -> list[Loss | Slowness]:
    sent = marks = 0
    found = link.take(reading(0, 0, 0))
    for number, (more, newly_marked) in enumerate(zip(frames, marked, strict=True), 1):
        sent, marks = sent + more, marks + newly_marked
        found += link.take(reading(number, sent, sent, marks))
    return found


def test_a_port_that_marks_all_the_time_and_sends_a_quarter_is_slow() -> None:
    found = intervals_sent(watch(), [PER_INTERVAL // 4] * 8, [3] * 8)
    assert found == [Slowness(RATE_BPS // 4, RATE_BPS)]


@pytest.mark.parametrize(
    ("frames", "marked"),
    [
        ([PER_INTERVAL] * 20, [50] * 20),  # at its rate
        ([PER_INTERVAL // 4] * 20, [0] * 20),  # nothing waits
        ([PER_INTERVAL // 4] * 7, [9] * 7),  # not for long
        ([PER_INTERVAL // 4] * 20, [9, 9, 9, 9, 9, 0, 9] * 2 + [9] * 6),  # not all the time
        ([200, 300] * 10, [50] * 20),  # bursts
        ([10] * 20, [1] * 20),  # next to nothing
    ],
)
def test_other_ports_are_not_slow(frames: list[int], marked: list[int]) -> None:
    assert intervals_sent(watch(), frames, marked) == []


def test_what_is_not_looked_for_is_not_found() -> None:
    link = watch(WatchLimits())
    assert not WatchLimits().any
    assert intervals_sent(link, [PER_INTERVAL // 4] * 9, [9] * 9) == []
    assert link.take(reading(20, 10**6, 0)) == []


@pytest.mark.parametrize("values", [{"loss_ratio": 0.0}, {"slow_ratio": 1.0}, {"least_packets": 0}])
def test_limits_that_cannot_be_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="valid:"):
        WatchLimits(**values)  # type: ignore[arg-type]
