"""The benchmarks of rails and of planes, on small fabrics: what they are to show holds there, too."""

from __future__ import annotations

import argparse

import bench_planes
import bench_rails
import pytest
from bar_chart import Bar, bar_chart

PATTERNS = {
    "allreduce": bench_rails.Pattern("all-reduce", "allreduce", 1 << 18, ()),
    "alltoall": bench_rails.Pattern("all-to-all", "alltoall", 1 << 16, ()),
    "moe_dispatch": bench_rails.Pattern("dispatch", "moe_dispatch", 16 * 8 * 1024, ()),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs a host, four a leaf."""
    monkeypatch.setattr(bench_rails, "GPUS_PER_HOST", 2)
    monkeypatch.setattr(bench_rails, "GPUS_PER_LEAF", 4)
    monkeypatch.setattr(bench_rails, "SPINES", 2)


@pytest.mark.parametrize("collective", PATTERNS)
def test_along_rails_nothing_crosses_a_spine_and_nothing_takes_longer(collective: str) -> None:
    found = {name: bench_rails.run(name, 8, PATTERNS[collective], "hierarchical") for name in bench_rails.FABRICS}
    assert found["clos"].bytes_through_spines > 0
    assert found["rail-optimised"].bytes_through_spines == found["rail-only"].bytes_through_spines == 0
    assert found["rail-optimised"].time_us == found["rail-only"].time_us <= found["clos"].time_us


def test_across_rails_a_rail_optimised_fabric_uses_its_spines() -> None:
    assert bench_rails.run("rail-optimised", 8, PATTERNS["alltoall"], "direct").bytes_through_spines > 0


def test_rails_alone_need_a_switch_each_and_no_others() -> None:
    costs = {name: bench_rails.cost(name, 8) for name in bench_rails.FABRICS}
    assert (costs["clos"].switches, costs["clos"].cables_between_switches) == (4, 4)
    assert costs["rail-optimised"].switches == costs["clos"].switches
    assert (costs["rail-only"].switches, costs["rail-only"].ports) == (2, 8)


@pytest.mark.slow
def test_an_all_reduce_that_loses_one_of_four_planes_has_three_quarters_of_the_bandwidth() -> None:
    found = bench_planes.measure(argparse.Namespace(planes=4, leaves=2, hosts_per_leaf=2, mib=8))
    assert [row.wrong for row in found.rows] == [0, 0, 0, 0]
    assert found.bandwidth_after == pytest.approx(3 / 4, rel=0.02)
    assert found.beyond_ideal_us < 20
    assert found.rows[2].over_undisturbed == pytest.approx(4 / 3, rel=0.03)
    assert found.rows[3].time_us == found.rows[0].time_us
    assert found.known_after_us == pytest.approx(8.5)
    assert "<polyline" in bench_planes.picture(found)


def test_a_bar_chart_has_a_bar_for_each_value() -> None:
    picture = bar_chart("times", [Bar("ring", "clos", 4.0), Bar("ring", "rails", 2.0)])
    assert picture.count("<rect") == 1 + 2 + 2
