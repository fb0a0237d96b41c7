"""Flap damping: penalties, when a link is suppressed, and when it is used again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import SettingError
from weft.controller.flap_damping import PENALTY_PER_FAILURE, FlapDamping, FlapState

MS = 10**9
DAMPING = FlapDamping()
gaps = st.lists(st.integers(0, 30 * MS), max_size=40)


@st.composite
def dampings(draw: st.DrawFn) -> FlapDamping:
    reuse = draw(st.floats(1.0, 5000.0))
    suppress = reuse * draw(st.floats(1.01, 8.0))
    half_life_ps = draw(st.integers(1000, 100 * MS))
    # The ceiling lies above `suppress`: the ratio of both is at most 2^3.
    max_suppress_ps = int(half_life_ps * draw(st.floats(3.1, 20.0)))
    return FlapDamping(half_life_ps, suppress, reuse, max_suppress_ps)


def failing(damping: FlapDamping, after_ps: list[int]) -> list[FlapState]:
    """Return the states of a link after each of its failures, which come so long after one another."""
    states, now_ps = [FlapState()], 0
    for gap_ps in after_ps:
        now_ps += gap_ps
        states.append(states[-1].after_failure(now_ps, damping))
    return states[1:]


def test_a_penalty_halves_in_a_half_life() -> None:
    state = FlapState().after_failure(0, DAMPING)
    assert state.penalty == PENALTY_PER_FAILURE
    assert state.penalty_at(DAMPING.half_life_ps, DAMPING) == PENALTY_PER_FAILURE / 2


def test_the_third_failure_in_a_row_suppresses_by_default_and_two_do_not() -> None:
    assert [state.is_suppressed for state in failing(DAMPING, [0, 0, 0])] == [False, False, True]


def test_without_pause_it_is_used_again_after_the_longest_time() -> None:
    last = failing(DAMPING, [0] * 1000)[-1]
    assert last.penalty == DAMPING.ceiling == 750 * 16
    assert last.reuse_ps(DAMPING) == DAMPING.max_suppress_ps


@given(dampings(), gaps)
def test_no_penalty_is_above_the_ceiling(damping: FlapDamping, after_ps: list[int]) -> None:
    assert all(0 < state.penalty <= damping.ceiling for state in failing(damping, after_ps))


@given(dampings(), gaps)
def test_a_link_becomes_suppressed_above_the_limit_alone(damping: FlapDamping, after_ps: list[int]) -> None:
    for state in failing(damping, after_ps):
        if state.penalty > damping.suppress:
            assert state.is_suppressed
        elif state.penalty <= damping.reuse:
            assert not state.is_suppressed


@given(dampings(), gaps.filter(bool))
def test_a_suppressed_link_is_used_again_in_time_and_not_before(damping: FlapDamping, after_ps: list[int]) -> None:
    last = failing(damping, after_ps)[-1]
    reuse_ps = last.reuse_ps(damping)
    assert (reuse_ps is None) == (not last.is_suppressed)
    if reuse_ps is None:
        return
    assert last.as_of_ps <= reuse_ps <= last.as_of_ps + damping.max_suppress_ps
    assert not last.at(reuse_ps, damping).is_suppressed
    assert last.penalty_at(reuse_ps, damping) <= damping.reuse * 1.001
    if reuse_ps > last.as_of_ps:
        assert last.at(reuse_ps - 1, damping).is_suppressed


@given(dampings(), gaps.filter(bool), st.integers(0, 50 * MS), st.integers(0, 50 * MS))
def test_what_a_penalty_decays_to_does_not_depend_on_who_looked_between(
    damping: FlapDamping, after_ps: list[int], first_ps: int, second_ps: int
) -> None:
    last = failing(damping, after_ps)[-1]
    between = last.at(last.as_of_ps + first_ps, damping)
    then_ps = between.as_of_ps + second_ps
    assert between.penalty_at(then_ps, damping) == pytest.approx(last.penalty_at(then_ps, damping))


@given(dampings(), gaps.filter(bool), st.integers(0, 30 * MS))
def test_another_failure_never_brings_the_reuse_forward(damping: FlapDamping, after_ps: list[int], gap_ps: int) -> None:
    *_, last = failing(damping, after_ps)
    again = last.after_failure(last.as_of_ps + gap_ps, damping)
    before, after = last.reuse_ps(damping), again.reuse_ps(damping)
    if before is not None and before > again.as_of_ps:
        assert after is not None
        assert after >= before - 1  # a picosecond of rounding


def test_time_does_not_go_back() -> None:
    state = FlapState().after_failure(5, DAMPING)
    with pytest.raises(ValueError, match="asked for at 4 ps"):
        state.penalty_at(4, DAMPING)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"half_life_ps": 0}, {"valid": "both above 0", "problem": "th a"}),
        ({"max_suppress_ps": -1}, {"valid": "both above 0", "problem": "th a"}),
        ({"reuse": 0.0}, {"valid": "0 < reuse < suppress", "problem": "suppress"}),
        ({"reuse": 2000.0}, {"valid": "0 < reuse < suppress", "problem": "suppress"}),
        (
            {"max_suppress_ps": 10 * MS},
            {"valid": "less, or a longer max_suppress", "problem": "never suppresses: penalties end"},
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, float], message: dict[str, str]) -> None:
    with refused(SettingError, **message) as caught:
        FlapDamping(**values)  # type: ignore[arg-type]
    assert re.search(r"valid: ", str(caught.value))


def test_a_very_long_time_to_suppress_is_no_overflow() -> None:
    assert FlapDamping(half_life_ps=1, max_suppress_ps=10**15).ceiling > 1e100
