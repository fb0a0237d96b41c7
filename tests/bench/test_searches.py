"""Binary searches find the edge of what holds, whatever the trials say."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.bench.searches import Searched, largest_that_holds
from weft.sweeps import Outcome, State
from weft.trials import Trial, TrialRun


def searched(
    edges: dict[str, float], low: float, high: float, resolution: float, geometric: bool
) -> tuple[dict[str, Searched[str]], list[list[Trial]]]:
    """Run a search in which values up to each key's edge hold; return what it found, and the trials of each step."""

    def trial(key: str, value: float) -> Trial:
        return Trial(key, {"value": value})

    def holds(key: str, value: float, run: TrialRun) -> bool:
        assert run.trial.tree["value"] == value
        return value <= edges[key]

    search = largest_that_holds(dict.fromkeys(edges, (low, high)), trial, holds, resolution, geometric=geometric)
    return driven(search)


def driven(search: Generator[Any, Any, Any]) -> tuple[Any, list[list[Trial]]]:
    """Give a procedure a run for each trial; return its result and the trials of each step."""
    steps: list[list[Trial]] = []
    try:
        trials = next(search)
        while True:
            steps.append(list(trials))
            runs = [TrialRun(each, Path(), Outcome(State.FINISHED)) for each in trials]
            trials = search.send(runs)
    except StopIteration as end:
        return end.value, steps


_EDGES = st.dictionaries(st.sampled_from("abc"), st.floats(0.0, 1.2), min_size=1)


@given(_EDGES, st.floats(0.01, 0.5))
def test_the_value_is_within_the_resolution_of_the_edge(edges: dict[str, float], resolution: float) -> None:
    low, high = resolution / 2, 1.0
    found, steps = searched(edges, low, high, resolution, False)
    for key, edge in edges.items():
        value = found[key].value
        if edge >= high:
            assert value == high
        elif edge < low:
            assert value is None
        else:
            assert value is not None
            assert value <= edge < value + resolution
    # The trials of a step are of different keys, so they run together.
    assert all(len({trial.label for trial in step}) == len(step) for step in steps)


@given(st.floats(1.0, 1e9), st.floats(1.05, 2.0))
def test_a_geometric_search_ends_within_a_ratio(edge: float, ratio: float) -> None:
    found, _ = searched({"a": edge}, 1.0, 1e8, ratio, True)
    value = found["a"].value
    assert value is not None
    assert value == 1e8 if edge >= 1e8 else value <= edge < value * ratio * 1.0001


def test_what_nothing_holds_is_tried_once_at_the_lower_end() -> None:
    found, steps = searched({"a": -1.0}, 0.1, 1.0, 0.5, False)
    assert found["a"].value is None
    assert [trial.tree["value"] for step in steps for trial in step].count(0.1) == 1
