"""Reductions under random flaps of every plane: a few of the many that `python -m fuzz.plane_flaps` runs."""

from __future__ import annotations

import pytest

from fuzz import plane_flaps
from weft import Fabric, topologies


@pytest.mark.parametrize(("number", "collectives"), [(2, 12), (4, 12), (95, 4)])
def test_a_few_collectives_end_exactly_or_without_a_plane(number: int, collectives: int) -> None:
    """In the last one a plane is lost in one ring that takes over, and returns in the next."""
    found = plane_flaps.episode(1, number, collectives)
    assert found.wrong == []
    assert found.exact > found.without_plane


def test_what_ends_wrongly_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError(0)

    monkeypatch.setattr(Fabric, "run", fail)
    monkeypatch.setattr(Fabric, "training_step", fail)
    found = plane_flaps.episode(1, 0, collectives=2)
    assert (found.exact, found.without_plane) == (0, 0)
    assert len(found.wrong) == 3  # the last one when all links are up again
    assert all("KeyError: 0 (test_plane_flaps.py:" in line for line in found.wrong)


@pytest.mark.parametrize(
    ("down", "trees"),
    [
        ([], [True, True]),
        (["p0l0<->p0s0"], [True, True]),
        (["p0l0<->p0s0", "p0l1<->p0s1"], [False, True]),
        (["h0<->p1l0"], [True, False]),
    ],
)
def test_a_plane_has_a_tree_if_one_spine_reaches_all_leaves(down: list[str], trees: list[bool]) -> None:
    fabric = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1)
    assert [plane_flaps.has_tree(fabric, plane, down) for plane in (0, 1)] == trees
