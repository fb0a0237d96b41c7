"""The fuzzing targets for a short while: hypothesis makes the choices that the driver makes at random.

The driver itself (`python -m fuzz`) is for the long runs; see fuzz/__init__.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.target import Target
from fuzz.targets import TARGETS

EXAMPLES = {"frontend": 150, "json": 400, "p4runtime": 120, "packets": 150, "programs": 30, "traces": 400}


@cache
def target(name: str) -> Target:
    return TARGETS[name]()


@cache
def seeds(name: str) -> list[bytes]:
    return target(name).seeds()


@pytest.fixture(scope="module", autouse=True)
def none_outlives_the_module() -> Iterator[None]:
    yield
    seeds.cache_clear()
    target.cache_clear()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_seeds_are_sound(name: str) -> None:
    bad = ("refused", "no ", "FINDING")
    outcomes = [target(name).execute(seed) for seed in seeds(name)]
    assert [outcome for outcome in outcomes if outcome.startswith(bad) or "is refused" in outcome] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
@pytest.mark.timeout(600)
def test_mutated_cases_break_no_promise(name: str) -> None:
    fuzzed = target(name)

    @settings(
        max_examples=EXAMPLES[name],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True), st.integers(0, 2**16), st.integers(0, 2**16))
    def break_no_promise(rng: random.Random, first: int, second: int) -> None:
        parents = [seeds(name)[number % len(seeds(name))] for number in (first, second)]
        assert fuzzed.execute(fuzzed.mutate(rng, parents))

    break_no_promise()


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_is_refused_in_good_order(text: str) -> None:
    assert target("frontend").execute(text.encode()).startswith("refused: ")
