"""Policies on small clusters: what must hold of every simulation, and small cases by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.quantities.definitions import UNITS_REQUIRED
from weft.scenario.schedule import PolicyName, ScheduleSection, SpreadSection
from weft.scheduling import Cluster, Job, Placement, Run, cluster_of_fabric, compare, simulate, workload_of
from weft.scheduling.cluster import level_of
from weft.scheduling.placement import Free, Need, Room, Spread
from weft.scheduling.policies import POLICIES
from weft.scheduling.policy import Wish
from weft.scheduling.spread import GivenSlowdowns, NoSlowdown, Slowdowns
from weft.topologies import leaf_spine
from weft.topologies.kinds.fat_tree import fat_tree

HOUR_S = 3600.0
TWICE = SpreadSection(leaves=2, factor=2.0)


def section(**keys: Any) -> ScheduleSection:
    return ScheduleSection.model_validate(keys, context={UNITS_REQUIRED: True})


def cluster(leaves: int = 4, hosts: int = 4, per_host: int = 4) -> Cluster:
    names = [f"h{number}" for number in range(leaves * hosts)]
    levels = (level_of("leaf", [number // hosts for number in range(len(names))]), level_of("all", [0] * len(names)))
    return Cluster(tuple(names), per_host, levels)


def jobs(*rows: tuple[float, int, float] | tuple[float, int, float, bool]) -> list[Job]:
    return [Job(number, *row) for number, row in enumerate(rows)]


def run_of(policy: str, some: Sequence[Job], on: Cluster, slowdowns: Slowdowns | None = None, **keys: Any) -> Run:
    return simulate(on, some, POLICIES.named(policy), section(**keys), slowdowns or NoSlowdown(), (1,))


def starts(run: Run) -> list[float]:
    return [record.started_s for record in run.records]


def test_policies_of_scenarios_are_those_with_files() -> None:
    assert set(POLICIES) == set(get_args(PolicyName))
    assert all(policy.name == name and policy.summary for name, policy in POLICIES.items())


DRAWN = st.lists(
    st.tuples(st.floats(0, 100), st.integers(1, 64), st.floats(0.1, 50), st.booleans()), min_size=1, max_size=40
)


@given(
    rows=DRAWN,
    policy=st.sampled_from(get_args(PolicyName)),
    consolidated=st.booleans(),
    order=st.sampled_from([None, "fifo", "easy", "best-effort"]),
    required=st.booleans(),
    patience=st.sampled_from(["0", "20s"]),
    preemption=st.booleans(),
    migration=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_capacity_is_kept_and_no_job_is_lost(
    rows: list[tuple[float, int, float, bool]],
    policy: str,
    consolidated: bool,
    order: str | None,
    required: bool,
    patience: str,
    preemption: bool,
    migration: bool,
) -> None:
    """`Free` itself refuses that a host gives more than it has; the states say that all is given back."""
    some = jobs(*sorted(rows))
    keys: dict[str, Any] = {"consolidated": consolidated, "order": order, "required": required, "patience": patience}
    keys |= {"preemption": {"cost": "3s"}, "urgent": 0.5} if preemption else {}
    keys |= {"migration": {"cost": "1s"}} if migration else {}
    on = cluster()
    run = run_of(policy, some, on, GivenSlowdowns(0.5, [TWICE], on), **keys)
    for record in run.records:
        assert record.job.arrival_s <= record.started_s < record.ended_s
        assert record.held_s >= record.job.run_time_s * (1 - 1e-9)
        assert record.waited_s + record.held_s == pytest.approx(record.ended_s - record.job.arrival_s)
        assert not record.preemptions or not record.job.is_urgent
    assert all(0 <= state.used <= on.accelerators for state in run.states)
    assert all(0 <= state.unusable <= state.idle for state in run.states)
    assert run.states[-1].used == 0
    assert run.states[-1].waiting == 0
    held_s = sum(record.held_s * record.job.accelerators for record in run.records)
    times_s = np.diff([state.at_s for state in run.states])
    assert times_s @ np.array([state.used for state in run.states[:-1]]) == pytest.approx(held_s)


@given(rows=DRAWN, policy=st.sampled_from(get_args(PolicyName)), consolidated=st.booleans())
@settings(max_examples=100, deadline=None)
def test_in_order_of_arrival_none_overtakes(
    rows: list[tuple[float, int, float, bool]], policy: str, consolidated: bool
) -> None:
    some = jobs(*((at_s, size, time_s) for at_s, size, time_s, _ in sorted(rows)))
    begun = starts(run_of(policy, some, cluster(), order="fifo", consolidated=consolidated))
    assert all(first <= second for first, second in itertools.pairwise(begun))


@given(rows=DRAWN, policy=st.sampled_from(["backfill", "slurm-tree"]), consolidated=st.booleans())
@settings(max_examples=100, deadline=None)
def test_backfill_delays_no_first_job(
    rows: list[tuple[float, int, float, bool]], policy: str, consolidated: bool
) -> None:
    """With exact run times, the first job that waits starts no later than if no other followed it."""
    some = jobs(*((at_s, size, time_s) for at_s, size, time_s, _ in sorted(rows)))
    all_of_them = starts(run_of(policy, some, cluster(), order="easy", consolidated=consolidated))
    blocked = next((job.number for job, at_s in zip(some, all_of_them, strict=True) if at_s > job.arrival_s), None)
    if blocked is not None:
        alone = starts(run_of(policy, some[: blocked + 1], cluster(), order="easy", consolidated=consolidated))
        assert all_of_them[blocked] <= alone[blocked]


@given(
    free=st.lists(st.integers(0, 4), min_size=16, max_size=16),
    size=st.integers(1, 64),
    policy=st.sampled_from(get_args(PolicyName)),
    consolidated=st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_a_placement_is_found_exactly_if_there_is_one(
    free: list[int], size: int, policy: str, consolidated: bool
) -> None:
    on = cluster()
    state = Free(on, np.array(free))
    need = Need.of(size, on.accelerators_per_host, consolidated)
    whole, rest = divmod(size, 4)
    if consolidated:
        left = sorted(free)
        fits = left.count(4) >= whole
        for _ in range(whole if fits else 0):
            left.remove(4)
        fits = fits and (not rest or max(left, default=0) >= rest)
    else:
        fits = sum(free) >= size
    wish = Wish(0, False, np.random.default_rng(1))
    found = POLICIES.named(policy).choose(Room(on, state.of_host, need), wish)
    assert state.may_hold(need) == fits == (found is not None)
    if found is not None:
        assert found.taken.sum() == size
        assert len(set(found.hosts.tolist())) == len(found.hosts)
        state.take(found)
        assert not consolidated or len(found.hosts) == whole + bool(rest)


def test_first_fit_waits_and_backfill_overtakes() -> None:
    """A job of the whole cluster waits behind one of half; a short one of a host goes ahead, a long one may not."""
    some = jobs((0, 32, 10), (1, 64, 10), (2, 4, 5), (3, 4, 50))
    assert starts(run_of("first-fit", some, cluster())) == [0, 10, 20, 20]
    assert starts(run_of("backfill", some, cluster())) == [0, 10, 2, 20]
    assert starts(run_of("kueue", some, cluster())) == [0, 53, 2, 3]


def test_backfill_counts_with_what_users_ask_for() -> None:
    some = jobs((0, 32, 10), (1, 64, 10), (2, 4, 5))
    assert starts(run_of("backfill", some, cluster(), limit=1.5))[2] == 2
    assert starts(run_of("backfill", jobs((0, 32, 10), (1, 64, 10), (2, 4, 9)), cluster(), limit=1))[2] == 20


def chosen(policy: str, free: Sequence[int], size: int, on: Cluster, **wish: Any) -> list[int]:
    need = Need.of(size, on.accelerators_per_host, True)
    room = Room(on, np.array(free), need)
    found = POLICIES.named(policy).choose(
        room, Wish(wish.get("level", 0), wish.get("required", False), np.random.default_rng(1))
    )
    return [] if found is None else sorted(found.hosts.tolist())


def test_topology_aware_policies_take_the_leaf_that_fits_best() -> None:
    on = cluster(leaves=3)
    free = [4, 4, 4, 4, 0, 4, 4, 0, 4, 4, 4, 0]
    for policy in ("slurm-tree", "kueue"):
        assert chosen(policy, free, 8, on) == [5, 6]
        assert chosen(policy, free, 12, on) == [8, 9, 10]
        assert chosen(policy, free, 16, on) == [0, 1, 2, 3]
        # The largest leaf first, and the rest where it fits best.
        assert chosen(policy, free, 24, on) == [0, 1, 2, 3, 5, 6]
        assert chosen(policy, free, 20, on) == [0, 1, 2, 3, 5]
    assert chosen("first-fit", free, 20, on) == [0, 1, 2, 3, 5]
    assert chosen("first-fit", free, 8, on) == [0, 1]


def test_a_required_level_makes_jobs_wait() -> None:
    on = cluster(leaves=2)
    free = [4, 4, 0, 0, 4, 0, 0, 0]
    for policy in ("slurm-tree", "kueue"):
        assert chosen(policy, free, 12, on) == [0, 1, 4]
        assert chosen(policy, free, 12, on, required=True) == []
        assert chosen(policy, free, 8, on, required=True) == [0, 1]
        # Larger than any leaf: it goes up.
        assert chosen(policy, [4] * 8, 20, on, required=True) == [0, 1, 2, 3, 4]


def test_a_small_job_takes_the_fullest_host_it_fits_in() -> None:
    on = cluster(leaves=2)
    for policy in ("slurm-tree", "kueue"):
        assert chosen(policy, [4, 2, 3, 0, 4, 4, 4, 4], 2, on) == [1]


def test_levels_go_down_one_by_one() -> None:
    """Kueue stays in the block that fits best, Slurm in the switch; both then use few racks."""
    racks = [number // 2 for number in range(12)]
    blocks = [number // 6 for number in range(12)]
    levels = (level_of("rack", racks), level_of("block", blocks), level_of("all", [0] * 12))
    on = Cluster(tuple(f"h{number}" for number in range(12)), 1, levels)
    free = [1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0]
    for policy in ("slurm-tree", "kueue"):
        assert chosen(policy, free, 3, on) == [6, 7, 9]
        assert chosen(policy, free, 4, on) == [0, 1, 2, 3]


def test_spread_makes_a_job_slower_and_a_move_faster() -> None:
    """A job of two hosts starts on two leaves, as others hold the rest of both; it moves once they end."""
    on = cluster(leaves=2, hosts=2)
    slow = GivenSlowdowns(1.0, [TWICE], on)
    some = jobs((0, 4, 10), (0, 4, 1000), (0, 4, 10), (0, 4, 1000), (1, 8, 100))
    placed = run_of("random", some, on, slow)
    assert placed.records[4].started_s >= 10
    one_leaf = run_of("kueue", jobs((0, 4, 10), (0, 4, 30), (0, 4, 10), (0, 4, 30), (1, 8, 100)), on, slow)
    spread = one_leaf.records[4]
    assert (spread.spread, spread.slowdown) == (Spread(2, 2), 2.0)
    moved = run_of(
        "kueue", jobs((0, 4, 10), (0, 4, 30), (0, 4, 10), (0, 4, 30), (1, 8, 100)), on, slow, migration={"cost": "5s"}
    ).records[4]
    # Until 30 s it has done 10 s of work; then it moves for 5 s, and runs at full speed.
    assert (moved.migrations, moved.spread) == (1, Spread(2, 1))
    assert moved.ended_s == pytest.approx(10 + 20 + 5 + 90)


def test_patience_waits_for_few_leaves() -> None:
    on = cluster(leaves=2, hosts=2)
    some = jobs((0, 4, 10), (0, 4, 30), (0, 4, 10), (0, 4, 30), (1, 8, 100))
    assert starts(run_of("kueue", some, on))[4] == 10
    assert starts(run_of("kueue", some, on, patience="15s"))[4] == 16
    assert starts(run_of("kueue", some, on, patience="1h"))[4] == 30
    assert starts(run_of("first-fit", some, on, patience="1h"))[4] == 10


def test_an_urgent_job_takes_the_place_of_the_last() -> None:
    on = cluster(leaves=1, hosts=2)
    some = jobs((0, 4, 100), (5, 4, 100), (10, 4, 20, True), (11, 4, 1))
    plain = run_of("first-fit", some, on)
    assert starts(plain) == [0, 5, 100, 105]
    found = run_of("first-fit", some, on, urgent=0.5, preemption={"cost": "7s"}).records
    assert [record.preemptions for record in found] == [0, 1, 0, 0]
    assert found[2].started_s == 10
    assert found[2].ended_s == 30
    # It goes on before those that came after it, with 95 s left and the checkpoint's cost.
    assert found[1].ended_s == pytest.approx(30 + 95 + 7)
    assert found[3].started_s == 100


def test_urgent_jobs_do_not_preempt_each_other() -> None:
    on = cluster(leaves=1, hosts=1)
    found = run_of("first-fit", jobs((0, 4, 100, True), (1, 4, 1, True)), on, urgent=1, preemption={}).records
    assert [record.preemptions for record in found] == [0, 0]
    assert found[1].started_s == 100


def test_accelerators_that_no_waiting_job_can_use_are_counted() -> None:
    """One of four accelerators is free in each host: a job of a whole host waits in vain, one of one would start."""
    on = cluster(leaves=1, hosts=2)
    rows = [(0.0, 3, 10.0), (0.0, 3, 10.0), (1.0, 4, 5.0)]
    blocked = run_of("first-fit", jobs(*rows), on)
    assert [state.unusable for state in blocked.states if state.at_s == 1] == [2]
    behind = run_of("first-fit", jobs(*rows, (2, 1, 5)), on)
    assert [(state.idle, state.unusable) for state in behind.states if state.at_s == 2] == [(2, 0)]
    loose = run_of("first-fit", jobs((0, 3, 10), (0, 3, 10), (1, 2, 5)), on, consolidated=False)
    assert starts(loose)[2] == 1


def test_no_job_spans_domains_without_a_common_switch() -> None:
    names = tuple(f"h{number}" for number in range(4))
    on = Cluster(names, 1, (level_of("switch-1", ["a", "a", "b", "b"]),))
    assert on.largest_job == 2
    for policy in POLICIES:
        assert chosen(policy, [1, 0, 1, 1], 2, on) == [2, 3]
        assert chosen(policy, [1, 0, 0, 1], 2, on) == []


def test_a_fabric_is_a_cluster() -> None:
    two = cluster_of_fabric(leaf_spine(planes=2, leaves=3, spines=2, hosts_per_leaf=4), 8)
    assert [level.name for level in two.levels] == ["leaf", "cluster"]
    assert (two.accelerators, two.largest_job, two.fewest_leaves(33)) == (96, 96, 2)
    three = cluster_of_fabric(fat_tree(planes=1, pods=2, leaves_per_pod=2, hosts_per_leaf=2))
    assert [(level.name, len(level.domains)) for level in three.levels] == [("leaf", 4), ("group", 2), ("cluster", 1)]
    placement = Placement(np.array([0, 1, 2]), np.array([1, 1, 1]))
    assert placement.spread(three) == Spread(3, 2, 1)


def test_a_seed_repeats_and_another_one_does_not() -> None:
    some = section(
        jobs=60, sizes=[{"accelerators": 1}, {"accelerators": 16}], run_time={"mean": "1h", "median": "10min"}
    )
    first, again, other = (compare(cluster(), some, NoSlowdown(), seed, 2) for seed in (1, 1, 2))
    assert [each.figures for each in first.outcomes] == [each.figures for each in again.outcomes]
    assert [each.figures for each in first.outcomes] != [each.figures for each in other.outcomes]


def test_jobs_make_the_load_and_the_log_normal_times() -> None:
    keys: dict[str, Any] = {
        "jobs": 20_000,
        "load": 0.7,
        "sizes": [{"accelerators": 1, "share": 3}, {"accelerators": 8}],
    }
    found = workload_of(section(**keys, run_time={"mean": "2h", "median": "1h"}, urgent=0.25), cluster(), (1,))
    times_s = np.array([job.run_time_s for job in found.jobs])
    assert found.load == pytest.approx(0.7)
    assert times_s.mean() == pytest.approx(2 * HOUR_S, rel=0.05)
    assert np.median(times_s) == pytest.approx(HOUR_S, rel=0.05)
    assert np.mean([job.accelerators == 8 for job in found.jobs]) == pytest.approx(0.25, abs=0.01)
    assert np.mean([job.is_urgent for job in found.jobs]) == pytest.approx(0.25, abs=0.01)
    between_s = np.diff([job.arrival_s for job in found.jobs])
    assert between_s.std() == pytest.approx(between_s.mean(), rel=0.05)  # exponential


def test_one_accelerator_waits_as_the_queue_m_d_1() -> None:
    """Random arrivals and equal times at one accelerator: the mean wait is known (Pollaczek and Khinchine)."""
    on = cluster(leaves=1, hosts=1, per_host=1)
    some = section(jobs=20_000, load=0.7, sizes=[{"accelerators": 1}], run_time={"mean": "1h"}, policies=["first-fit"])
    (found,) = compare(on, some, NoSlowdown(), 1, 1).outcomes
    expected_s = 0.7 / (2 * (1 - 0.7)) * HOUR_S
    assert found.figures["wait_mean_s"].mean == pytest.approx(expected_s, rel=0.1)
    assert found.figures["utilisation"].mean == pytest.approx(0.7, rel=0.01)
