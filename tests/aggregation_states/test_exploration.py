"""Every state of a reduction over two levels of switches: no wrong sum, and a way to the end from everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aggregation_states.exploration import DeadlockError, Exploration, WrongEndError
from tests.aggregation_states.real_switches import (
    compiled,
    epoch_after_a_failed_uplink,
    epoch_of_survivors,
    epochs_over_two_planes,
    first_epoch,
)
from weft.controller.pipeline import Pipeline

LIMIT = 1_000_000
ONE_LEAF, TWO_LEAVES = ("h0", "h1"), ("h0", "h2")
# Pieces of aggregation.p4, each with what makes it wrong.
MUTANTS = {
    "a slot does not look at the round": {
        "same_round = same_epoch && age == 0": "same_round = same_epoch",
        " || (age != 0 && age[31:31] == 0)": "",
    },
    "a slot keeps the lanes of its last round": {"bitmap = worker_bit;": "bitmap = worker_bit; combine = 0xFFFFFFFF;"},
    "a contributor counts twice": {"(bitmap & worker_bit) == 0": "true"},
    "a slot keeps the contributors of its last round": {"bitmap = worker_bit;": "bitmap = bitmap | worker_bit;"},
    "what was sent up is not sent up again": {
        "outcome = state == SLOT_SENT_UP ? Outcome.SEND_UP : Outcome.REPLY;": "outcome = Outcome.REPLY;"
    },
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return compiled(tmp_path_factory.mktemp("compiled"))


def test_two_slots_of_two_rounds(pipeline: Pipeline) -> None:
    found = Exploration(first_epoch(pipeline, 2), 4).explore(LIMIT)
    assert found.states == 4501
    assert found.ends > 0


@pytest.mark.slow
def test_two_slots_of_four_rounds(pipeline: Pipeline) -> None:
    assert Exploration(first_epoch(pipeline, 2), 8).explore(LIMIT).states == 12877


@pytest.mark.slow
def test_the_workers_go_on_over_another_spine_in_any_state(pipeline: Pipeline) -> None:
    """One slot of three rounds, so that versions are used again in both epochs."""
    later = epoch_after_a_failed_uplink(pipeline, 1)
    found = Exploration(first_epoch(pipeline, 1), 3, later).explore(LIMIT)
    assert found.states == 24936


@pytest.mark.slow
def test_two_survivors_begin_another_reduction_when_the_third_worker_has_died(pipeline: Pipeline) -> None:
    later = epoch_of_survivors(pipeline, 1)
    found = Exploration(first_epoch(pipeline, 1), 2, later, new_reduction=True).explore(LIMIT)
    assert found.states == 3808


def test_a_stream_goes_to_the_other_plane_and_comes_home(pipeline: Pipeline) -> None:
    """Its plane is lost and returns in any state: packets and slots of the first life are still there."""
    lives = epochs_over_two_planes(pipeline, 1, ONE_LEAF, 3)
    assert Exploration(lives[0], 3, *lives[1:]).explore(LIMIT).states == 9299


@pytest.mark.slow
@pytest.mark.parametrize(("messages", "lives", "states"), [(2, 2, 16736), (1, 3, 196869)])
def test_a_stream_changes_planes_of_two_levels(pipeline: Pipeline, messages: int, lives: int, states: int) -> None:
    first, *later = epochs_over_two_planes(pipeline, 1, TWO_LEAVES, lives)
    assert Exploration(first, messages, *later).explore(LIMIT).states == states


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_program_is_found(mutant: str, tmp_path: Path) -> None:
    wrong = compiled(tmp_path, MUTANTS[mutant])
    with pytest.raises((WrongEndError, DeadlockError), match="the way there: "):
        Exploration(first_epoch(wrong, 1), 3).explore(LIMIT)


@pytest.mark.slow
def test_a_program_that_forgets_the_epoch_is_found(tmp_path: Path) -> None:
    wrong = compiled(tmp_path, {"tag[47:32] == job.epoch": "true"})
    with pytest.raises((WrongEndError, DeadlockError), match="the way there: "):
        Exploration(first_epoch(wrong, 1), 2, epoch_of_survivors(wrong, 1), new_reduction=True).explore(LIMIT)
    lives = epochs_over_two_planes(wrong, 1, ONE_LEAF, 3)
    with pytest.raises((WrongEndError, DeadlockError), match="the way there: "):
        Exploration(lives[0], 3, *lives[1:]).explore(LIMIT)
