"""What the controller writes for a mode of ECMP groups, in each target's units, and after failures."""

from __future__ import annotations

import finsy
import pytest

from weft.controller.failures import NO_FAILURES
from weft.controller.features import Settings
from weft.controller.features.depth_ages import AgeHistogram, DepthAges
from weft.controller.features.load_balancing import (
    CANDIDATE_TABLES,
    LoadBalancingMode,
    LoadBalancingSettings,
    mode_entities,
    selector_of,
)
from weft.controller.plan import FabricState, Planner
from weft.controller.target import BMV2, EMBEDDED, TargetFacts
from weft.topologies import leaf_spine

FABRIC = leaf_spine(planes=1, leaves=3, spines=3, hosts_per_leaf=1)


def settings(mode: LoadBalancingMode, **more: int) -> Settings:
    return Settings(features=(LoadBalancingSettings(mode, **more),))


def default_actions(chosen: Settings) -> dict[str, finsy.P4TableAction]:
    plan = Planner(FABRIC).plan(chosen, FabricState())["p0l0"]
    return {
        each.table_id: each.action
        for each in plan
        if isinstance(each, finsy.P4TableEntry) and each.is_default_action
        and isinstance(each.action, finsy.P4TableAction)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (EMBEDDED, {"flowlet_gap": 2_500, "hysteresis": 205, "lifetime": 10**6}),
        (BMV2, {"flowlet_gap": 3, "hysteresis": 16, "lifetime": 1000}),
    ],
    ids=["embedded", "bmv2"],
)
def test_parameters_are_in_the_target_s_units(target: TargetFacts, expected: dict[str, int]) -> None:
    (entity,) = mode_entities(LoadBalancingSettings("adaptive", flowlet_gap_ps=2_500_000), target)
    assert isinstance(entity, finsy.P4TableEntry)
    assert isinstance(entity.action, finsy.P4TableAction)
    assert entity.action.args == expected


@pytest.mark.parametrize(("mode", "flags"), [("flow", (0, 0)), ("random", (1, 0)), ("adaptive", (1, 1))])
def test_switches_do_what_the_mode_needs_and_no_more(mode: LoadBalancingMode, flags: tuple[int, int]) -> None:
    actions = default_actions(settings(mode))
    identity = actions["identity"].args
    assert (identity["balances_load"], identity["reports_queue_depths"]) == flags
    assert ("load_balancing" in actions) == bool(flags[0])


def test_candidates_are_the_members_of_the_routes_groups() -> None:
    planner = Planner(FABRIC)
    chosen = settings("adaptive")
    failed = NO_FAILURES.with_link(FABRIC.links_between("p0l0", "p0s1")[0])
    for failures in (NO_FAILURES, failed):
        routes = planner.plan(chosen, FabricState(failures))["p0l0"].routes
        groups = {
            each.action_profile_id: [member.member_id for member in each.members or ()]
            for each in routes
            if isinstance(each, finsy.P4ActionProfileGroup)
        }
        assert list(groups) == [selector_of(table) for table in ("ecmp", *CANDIDATE_TABLES)]
        assert len({tuple(members) for members in groups.values()}) == 1
        assert len(groups["ecmp_selector"]) == (2 if failures is failed else 3)


def test_a_switch_that_nothing_touches_keeps_its_candidates() -> None:
    planner = Planner(FABRIC)
    chosen = settings("adaptive")
    before = planner.plan(chosen, FabricState())["p0l0"]
    again = planner.plan(chosen, FabricState())["p0l0"]
    assert again.is_same_as(before)


def test_ages_are_shares_of_choices() -> None:
    ages = DepthAges(AgeHistogram({1: 90, 255: 9}), 1) + DepthAges(AgeHistogram({511: 1}))
    assert ages.choices == 101
    assert [ages.queued.at_most_ns(share) for share in (0.5, 0.99, 1.0)] == [1, 255, 511]
    assert ages.queued.count == 100
    assert AgeHistogram().at_most_ns(0.5) is None
