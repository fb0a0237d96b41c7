"""Collectives by the switches of a scale-up domain, over all its planes: exact, and each algorithm once by default."""

from __future__ import annotations

from typing import Any

import pytest

from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

LINKS: dict[str, Any] = {"credits": {"classes": [3]}, "link_retry": {"links": ["*<->*"]}}
TWO_TIERS = {"kind": "scale_up", "accelerators": 6, "switches": 2, "links": 3, "domain": 3, "upper_switches": 3}


def run(fabric: dict[str, Any], traffic: list[dict[str, Any]], **more: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": traffic, **LINKS, **more}))


def test_two_tiers_reduce_scatter_and_gather_exactly() -> None:
    items = [
        {"collective": each, "algorithms": ["nvls"], "sizes": [6000], "dtype": "int32"}
        for each in ("allreduce", "reducescatter", "allgather")
    ]
    result = run(TWO_TIERS, items)
    assert result.ok
    assert [each.algorithm for each in result.collectives] == ["nvls"] * 3
    assert all(each.wrong == 0 and each.packets_aggregated > 0 for each in result.collectives[:2])
    assert not result.drops
    assert {plane.plane for plane in result.planes if plane.packets_aggregated} == {0, 1}


def test_by_default_the_switches_algorithm_runs_once() -> None:
    fabric = {"kind": "scale_up", "accelerators": 4, "switches": 1}
    result = run(fabric, [{"collective": "allreduce", "sizes": [256], "dtype": "int32"}])
    names = [each.algorithm for each in result.collectives]
    assert names.count("nvls") == 1
    assert "in-network" not in names


@pytest.mark.slow
@pytest.mark.parametrize("accelerators", [40, 72])
def test_a_switch_of_many_accelerators_sums_with_a_wider_bitmap(accelerators: int) -> None:
    fabric = {"kind": "scale_up", "accelerators": accelerators, "switches": 1}
    result = run(fabric, [{"collective": "allreduce", "algorithms": ["nvls"], "sizes": [4096], "dtype": "int32"}])
    assert result.ok
    (found,) = result.collectives
    assert found.wrong == 0
    assert found.identical
