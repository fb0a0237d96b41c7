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


def watch(limits: WatchLimits = LIMITS, at_once: int = 1) -> DirectionWatch:
    return DirectionWatch(RATE_BPS, limits, at_once)


def reading(number: int, sent: int, received: int, marked: int = 0, later: int = 0) -> Reading:
    """A reading whose sender sent so many packets more, before it was read again."""
    after = sent + later
    return Reading(number * 100 * US, sent, received, after, after * FRAME_BYTES, marked)


def test_a_share_of_lost_packets_above_the_limit_is_a_loss_and_below_it_is_none() -> None:
    for lost, expected in ((0, []), (10, []), (11, [Loss(10, 1000)])):
        link = watch()
        assert link.take(reading(0, 0, 0)) == []
        # One packet is being sent, so it is not known to be lost.
        assert link.take(reading(1, 1000, 1000 - lost)) == expected
    assert Loss(10, 1000).ratio == 0.01


def test_of_a_segment_that_is_being_sent_no_packet_is_lost() -> None:
    assert watch(at_once=64).take(reading(1, 1000, 1000 - 64)) == []
    assert watch(at_once=64).take(reading(1, 1000, 1000 - 74)) == [Loss(10, 1000)]


def test_few_packets_are_not_judged_but_add_up() -> None:
    link = watch()
    link.take(reading(0, 0, 0))
    assert link.take(reading(1, 400, 300)) == []
    assert link.take(reading(2, 1000, 800)) == [Loss(199, 1000)]
    assert link.take(reading(3, 2000, 1800)) == []  # compared with the last judgement


def test_a_loss_is_found_though_all_was_well_for_long_before() -> None:
    link = watch()
    for number in range(100):
        assert link.take(reading(number, number * 1000, number * 1000)) == []
    (found,) = link.take(reading(100, 100_000, 99_000 + 970))
    assert isinstance(found, Loss)
    assert (found.lost_packets, found.sent_packets) == (29, 1000)


def test_what_was_lost_within_the_uncertainty_of_one_reading_is_found_by_many() -> None:
    """The receiver has 200 packets at each reading that were sent after the first reading of the sender."""
    link, found, readings = watch(), list[Loss | Slowness](), 0
    while not found:
        readings += 1
        sent = readings * 1000
        found = link.take(reading(readings, sent, sent - sent // 50 + 200, later=200))
    assert readings <= 21  # 2 % of 21,000 less 200 are 1 %


def test_what_was_on_the_link_at_the_first_reading_is_no_gain() -> None:
    link = watch()
    link.take(reading(0, 1000, 995, later=5))
    assert link.take(reading(1, 3000, 3000)) == []


def test_duplicates_are_no_losses() -> None:
    link = watch()
    link.take(reading(0, 0, 0))
    assert link.take(reading(1, 5000, 5600)) == []
    assert link.take(reading(2, 10_000, 10_600)) == []


def test_packets_lost_before_a_restart_do_not_count() -> None:
    link = watch()
    link.take(reading(0, 1000, 1000))
    link.restart()
    assert link.take(reading(1, 3000, 2000)) == []
    assert link.take(reading(2, 5000, 4000)) == []
    assert link.take(reading(3, 7000, 5900)) == [Loss(99, 2000)]


@pytest.mark.parametrize("fallen", [reading(1, 100, 5000), reading(1, 6000, 100)])
def test_counters_of_either_end_that_fall_begin_anew(fallen: Reading) -> None:
    link = watch()
    link.take(reading(0, 5000, 5000))
    assert link.take(fallen) == []
    assert link.take(reading(2, fallen.sent_packets + 2000, fallen.received_packets + 2000)) == []


HISTORIES = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(0, 500)).flatmap(
        lambda sent: st.tuples(st.just(sent[0]), st.just(sent[1]), st.integers(-1, sent[1]))
    ),
    max_size=30,
)
"""Of each interval: packets sent between readings, in the reading, and how many of the latter have arrived."""


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(HISTORIES, st.sampled_from([1, 10, 1000]))
def test_a_link_that_loses_nothing_is_never_lossy(history: list[tuple[int, int, int]], least: int) -> None:
    """Whatever is sent, and whatever of it is on the link, when its receiver is read."""
    link, sent = watch(WatchLimits(loss_ratio=1e-6, least_packets=least)), 0
    for number, (between, meanwhile, arrived) in enumerate(history):
        sent += between
        assert link.take(reading(number, sent, max(0, sent + arrived), later=meanwhile)) == []
        sent += meanwhile


@settings(deadline=None)
@given(st.lists(st.integers(100, 3000), min_size=2, max_size=30), st.integers(2, 10))
def test_a_link_that_loses_a_tenth_or_more_is_found_when_enough_was_sent(intervals: list[int], one_in: int) -> None:
    link, sent, found, since = watch(), 0, [], 0
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
