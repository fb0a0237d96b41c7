"""Layers of paths: each free of cycles, and each path in the first that it closes none in."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.controller.routing.dependency_layers import DependencyLayers

CHANNELS = 7
PATHS = st.lists(
    st.permutations(range(CHANNELS)).flatmap(
        lambda order: st.sampled_from([tuple(order[:length]) for length in range(1, CHANNELS)])
    ),
    max_size=25,
)


def closes_a_cycle(paths: list[tuple[int, ...]]) -> bool:
    graph = networkx.DiGraph(edge for path in paths for edge in pairwise(path))
    return not networkx.is_directed_acyclic_graph(graph)


@settings(deadline=None, max_examples=200)
@given(PATHS, st.integers(0, 25))
def test_a_path_is_in_the_first_layer_that_it_closes_no_cycle_in(
    paths: list[tuple[int, ...]], copied_after: int
) -> None:
    layers = DependencyLayers(CHANNELS)
    members: list[list[tuple[int, ...]]] = []
    for number, path in enumerate(paths):
        if number == copied_after:
            before, layers = layers, layers.copy()
            before.place((0, 1, 2, 3, 4, 5, 6))
        expected = next(
            (layer for layer, others in enumerate(members) if not closes_a_cycle([*others, path])),
            len(members),
        )
        assert layers.place(path) == expected
        if expected == len(members):
            members.append([])
        members[expected].append(path)


def test_a_path_that_comes_back_to_a_channel_is_refused() -> None:
    with pytest.raises(ValueError, match=r"passes a channel twice: \[1, 2, 1\]"):
        DependencyLayers(3).place([1, 2, 1])
