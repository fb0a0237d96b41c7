"""Tests that decide whether parts are noisy: what they find, and how seldom they err."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.controller.errors import SettingError
from weft.controller.link_watch import Reading
from weft.controller.noise.flaps import flapping_links
from weft.controller.noise.limits import GAP_FRAMES, LEAST_GAPS, PAUSE_WINDOW, NoiseLimits
from weft.controller.noise.losses import LossCount, Lost, lossy_directions
from weft.controller.noise.pauses import Paused, PauseWatch, pausing_ports
from weft.controller.noise.rates import NicState, PortQueue, RateWatch, Sender, gap_ps, nic_queues
from weft.controller.noise.stragglers import Computations, slow_ranks
from weft.controller.noise.tails import log_binomial_tail, log_normal_tail, log_poisson_tail

LIMITS = NoiseLimits()
US = 10**6
RATE_BPS = 10**11
FRAME_BYTES = 1250
FRAME_PS = 100_000  # of 1,250 bytes at 100 Gb/s


def exact_binomial_tail(successes: int, trials: int, probability: float) -> float:
    chances = (
        math.comb(trials, each) * probability**each * (1 - probability) ** (trials - each)
        for each in range(successes, trials + 1)
    )
    return math.fsum(chances)


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.001, 0.999))
def test_bounds_are_never_below_the_tails(successes: int, trials: int, probability: float) -> None:
    successes = min(successes, trials)
    bound = math.exp(log_binomial_tail(successes, trials, probability))
    assert bound >= exact_binomial_tail(successes, trials, probability) * (1 - 1e-9)
    deviations = successes / 10
    assert math.exp(log_normal_tail(deviations)) >= math.erfc(deviations / math.sqrt(2)) / 2
    mean = trials * probability
    below = math.fsum(math.exp(-mean) * mean**each / math.factorial(each) for each in range(successes))
    assert math.exp(log_poisson_tail(successes, mean)) >= (1 - below) * (1 - 1e-6) - 1e-12


def test_chances_of_all_tests_of_a_part_add_up_to_its_share() -> None:
    total = sum(math.exp(LIMITS.log_chance(10, test)) for test in range(1, 100_000))
    assert total == pytest.approx(LIMITS.false_findings / 3 / 10, rel=1e-4)


@pytest.mark.parametrize(
    "values", [{"false_findings": 0}, {"least_loss": 1.5}, {"slow": 0.95}, {"slow": 0}, {"straggler": 1}]
)
def test_limits_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(values))):
        NoiseLimits(**values)


def counted(lost: list[int], sent: list[int]) -> dict[int, Lost]:
    return {
        number: Lost(packets, of, of * 1000, packets)
        for number, (packets, of) in enumerate(zip(lost, sent, strict=True))
    }


def test_a_direction_that_loses_more_than_its_peers_is_found_and_no_other() -> None:
    counts = counted([1, 0, 20, 1], [10_000] * 4)
    ((number, evidence),) = lossy_directions(counts, LIMITS, test=1)
    assert number == 2
    assert evidence.measured == 20e-4
    assert evidence.usual == pytest.approx(2 / 30_000)
    assert "20 of 10,000" in evidence.words


@pytest.mark.parametrize(
    ("lost", "sent"),
    [
        ([12, 10, 9, 14], [10_000] * 4),  # all lose alike
        ([12, 0, 0, 0], [100_000, 200, 100, 50]),  # the peers have sent too little to compare with
        ([3, 0, 0, 0], [100_000] * 4),  # below least_loss
        ([12, 0, 0], [10_000] * 3),  # too few peers
        ([0, 0, 0, 0], [0] * 4),
    ],
)
def test_a_direction_that_may_be_as_its_peers_is_left_alone(lost: list[int], sent: list[int]) -> None:
    assert list(lossy_directions(counted(lost, sent), LIMITS, test=1)) == []


def test_directions_of_all_roles_say_what_is_usual_where_few_of_the_role_send() -> None:
    counts = counted([20, 0, 0, 0, 0], [10_000] * 5)
    role = {number: counts[number] for number in (0, 1)}
    assert [number for number, _ in lossy_directions(role, LIMITS, 1, counts)] == [0]
    assert list(lossy_directions(role, LIMITS, 1, role)) == []


def test_long_packets_may_lose_more_where_bits_are_wrong() -> None:
    # 80 times as long, 40 times as many lost.
    counts = {0: Lost(40, 1000, 4_000_000, 40)} | {number: Lost(1, 1000, 50_000, 1) for number in range(1, 5)}
    assert list(lossy_directions(counts, LIMITS, test=1)) == []
    same = {number: replace(each, sent_bytes=50_000) for number, each in counts.items()}
    assert [number for number, _ in lossy_directions(same, LIMITS, test=1)] == [0]


@pytest.mark.parametrize("ratio", [0.0001, 0.001, 0.01])
def test_links_that_all_lose_alike_are_not_lossy(ratio: float) -> None:
    draws, found = np.random.default_rng(1), 0
    for _ in range(60):
        shares, sent, lost = draws.lognormal(0, 2, 8), np.zeros(8, int), np.zeros(8, int)
        for test in range(1, 11):
            more = draws.poisson(200 * shares)
            sent += more
            lost += draws.binomial(more, ratio)
            found += len(list(lossy_directions(counted(lost.tolist(), sent.tolist()), LIMITS, test)))
    assert found == 0


def reading(sent: int, received: int, on_the_way: int = 0) -> Reading:
    return Reading(0, sent, received, sent + on_the_way, sent * 1000)


def settled(count: LossCount, last: Reading) -> Lost:
    """What counts once later readings have shown what was on its way."""
    return [count.take(last) for _ in range(4)][-1]


def test_only_what_is_certainly_lost_counts() -> None:
    count = LossCount()
    first = count.take(reading(100, 90, on_the_way=20), overtaking=3)
    assert (first.packets, first.most) == (9, 13)  # one packet may be on its way
    assert count.take(reading(200, 190)) == replace(first, most=10)
    assert settled(count, reading(300, 289)) == Lost(10, 300, 300_000, 11)
    count.restart()
    assert count.take(reading(400, 370)) == Lost()
    assert settled(count, reading(500, 465)) == Lost(4, 100, 100_000, 5)
    # A switch that was restarted counts from 0.
    assert count.take(reading(10, 10)) == Lost()


def test_packets_on_the_way_at_peers_are_not_their_losses() -> None:
    busy = [LossCount() for _ in range(5)]
    for number in range(1, 5):
        counts = {place: each.take(reading(number * 1000, number * 1000 - 1)) for place, each in enumerate(busy)}
        assert list(lossy_directions(counts, LIMITS, number)) == []
    assert all(each.most == 1 for each in counts.values())


def port(time_ps: int, waiting: int, sent: int, **held: object) -> PortQueue:
    return PortQueue(time_ps, waiting, sent, **held)  # type: ignore[arg-type]


GAP_PS = gap_ps(RATE_BPS, FRAME_BYTES)


def gaps(share: float, waiting_frames: float = GAP_FRAMES) -> tuple[PortQueue, PortQueue]:
    frames = math.floor(share * GAP_FRAMES)
    return port(0, int(waiting_frames * FRAME_BYTES), 0), port(GAP_PS, 0, frames * FRAME_BYTES)


def test_a_port_with_packets_waiting_below_its_rate_is_slow() -> None:
    watch = RateWatch(RATE_BPS, FRAME_BYTES)
    for number in range(LEAST_GAPS):
        assert watch.found(LIMITS) is None, number
        watch.take(*gaps(0.75))
    evidence = watch.found(LIMITS)
    assert evidence is not None
    assert evidence.measured == pytest.approx(0.75)
    watch.restart()
    assert watch.found(LIMITS) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, FRAME_PS - 1))
def test_a_port_that_sends_at_its_rate_is_never_slow(shares: list[float], phase_ps: int) -> None:
    """Whatever waits: a frame that is under way at first and at last counts once."""
    watch = RateWatch(RATE_BPS, FRAME_BYTES)
    for share in shares:
        waiting = int(share * 4 * GAP_FRAMES)
        begun = (GAP_PS - phase_ps + FRAME_PS - 1) // FRAME_PS  # frames whose first bit leaves within the gap
        sent = min(waiting, begun) * FRAME_BYTES
        watch.take(port(0, waiting * FRAME_BYTES, 0), port(GAP_PS, 0, sent))
        assert watch.found(LIMITS) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (port(0, 15 * FRAME_BYTES, 0), port(GAP_PS, 0, 0)),  # too little waits
        (port(0, 99 * FRAME_BYTES, 0, is_held=True), port(GAP_PS, 0, 0)),
        (port(0, 99 * FRAME_BYTES, 0), port(GAP_PS, 0, 0, is_held=True)),
        (port(0, 99 * FRAME_BYTES, 0, held=(1,)), port(GAP_PS, 0, 0, held=(2,))),  # paused, or dropped, meanwhile
        (port(0, 99 * FRAME_BYTES, 0), port(0, 0, 0)),
    ],
)
def test_a_port_that_something_else_holds_is_not_measured(before: PortQueue, after: PortQueue) -> None:
    watch = RateWatch(RATE_BPS, FRAME_BYTES)
    for _ in range(2 * LEAST_GAPS):
        watch.take(before, after)
    assert watch.found(LIMITS) is None


def test_a_port_that_once_sends_at_its_rate_is_not_slow() -> None:
    watch = RateWatch(RATE_BPS, FRAME_BYTES)
    for _ in range(LEAST_GAPS - 1):
        watch.take(*gaps(0.7))
    watch.take(*gaps(1.0))
    watch.take(*gaps(0.7))
    assert watch.found(LIMITS) is None


def nic(*senders: Sender) -> NicState:
    return NicState(port(0, 0, 0), dict(enumerate(senders)))


@pytest.mark.parametrize(
    ("states", "waiting"),
    [
        ((Sender(1, 10, 5000), Sender(1, 15, 100), Sender(1, 20, 100)), 5000),
        ((Sender(1, 10, 5000), Sender(1, 15, 100), Sender(1, 15, 100)), 0),  # it had no more to send
        ((Sender(1, 10, 5000), Sender(2, 15, 100), Sender(2, 20, 100)), 0),  # more was posted
        ((Sender(1, 10, 5000), Sender(1, 15, 0), Sender(1, 20, 100)), 0),  # its window was full
        ((Sender(1, 10, 0), Sender(1, 15, 100), Sender(1, 20, 100)), 0),
        ((Sender(1, 10, 5000), Sender(1, 10, 5000), Sender(1, 20, 100)), 0),  # it waited for something else
    ],
)
def test_what_a_nic_has_waiting_is_what_queue_pairs_may_send(
    states: tuple[Sender, Sender, Sender], waiting: int
) -> None:
    assert nic_queues(*(nic(each) for each in states))[0].waiting_bytes == waiting


def paused(watch: PauseWatch, share: float, readings: int = PAUSE_WINDOW + 1) -> PauseWatch:
    for number in range(readings):
        watch.take(Paused(number * 100 * US, (int(number * share * 100 * US), 0), (False, False)))
    return watch


def test_a_nic_that_pauses_much_longer_than_others_is_found() -> None:
    watches = {number: paused(PauseWatch(), share) for number, share in enumerate((0, 0.001, 0.1, 0))}
    ((number, evidence),) = pausing_ports(watches)
    assert (number, evidence.measured, evidence.usual) == (2, pytest.approx(0.1), 0.0)


@pytest.mark.parametrize("shares", [(0.1, 0.1, 0.1, 0.2), (0, 0, 0.04, 0)])
def test_nics_that_pause_like_others_or_little_are_left_alone(shares: tuple[float, ...]) -> None:
    assert list(pausing_ports({number: paused(PauseWatch(), share) for number, share in enumerate(shares)})) == []


def test_a_pause_that_lasts_counts_from_when_it_is_seen() -> None:
    watch = PauseWatch()
    for number in range(PAUSE_WINDOW + 1):
        assert watch.share is None
        watch.take(Paused(number * US, (0,), (True,)))
    assert watch.share == 1.0
    assert paused(PauseWatch(), 0.5, readings=PAUSE_WINDOW).share is None


def test_a_link_that_fails_again_and_again_is_flapping() -> None:
    assert list(flapping_links({"a": 3, "b": 1}, 16, LIMITS)) == []
    ((name, evidence),) = flapping_links({"a": 5, "b": 1}, 16, LIMITS)
    assert (name, evidence.measured) == ("a", 5.0)
    assert list(flapping_links(dict.fromkeys("abcdefgh", 5), 8, LIMITS)) == []


def ranks(draws: random.Random, factors: list[float], scatter: float, count: int = 12) -> list[Computations]:
    """Ranks that compute forward and backward, by turns of different lengths, with log-normal scatter."""
    times = [10 * US * (1 + number % 3) for number in range(count)]
    return [
        Computations(
            f"h{number}",
            {
                name: [round(each * factor * draws.lognormvariate(0, scatter)) for each in times]
                for name in ("forward", "backward")
            }
            | {"optimizer": [round(7 * US * factor)]},
        )
        for number, factor in enumerate(factors)
    ]


@pytest.mark.parametrize(("slower", "scatter"), [(1.15, 0.0), (1.15, 0.02), (1.3, 0.0), (1.3, 0.02), (1.3, 0.1)])
def test_a_slow_host_is_found(slower: float, scatter: float) -> None:
    found = list(slow_ranks(ranks(random.Random(1), [1, 1, slower, 1, 1], scatter), LIMITS, ranks=5, test=1))
    ((host, evidence),) = found
    assert host == "h2"
    assert evidence.measured == pytest.approx(slower, rel=0.12)


@pytest.mark.parametrize("scatter", [0.0, 0.05, 0.3])
def test_hosts_that_compute_alike_are_not_slow(scatter: float) -> None:
    draws = random.Random(2)
    found = [
        each
        for test in range(1, 201)
        for each in slow_ranks(ranks(draws, [1.0] * 6, scatter), LIMITS, ranks=6, test=test)
    ]
    assert found == []


def test_more_work_of_one_category_does_not_make_a_host_slow() -> None:
    each = ranks(random.Random(3), [1] * 5, 0.01)
    longer = {name: list(values) for name, values in each[0].durations_ps.items()}
    longer["backward"] = [value * 2 for value in longer["backward"]]
    assert list(slow_ranks([Computations("h0", longer), *each[1:]], LIMITS, ranks=5, test=1)) == []


def test_too_few_peers_or_computations_say_nothing() -> None:
    slow = ranks(random.Random(4), [1, 1, 1, 2.0, 1], 0.01)
    assert list(slow_ranks(slow[1:4], LIMITS, ranks=3, test=1)) == []
    few = ranks(random.Random(4), [1, 1, 1, 2.0, 1], 0.01, count=2)
    assert list(slow_ranks(few, LIMITS, ranks=5, test=1)) == []
