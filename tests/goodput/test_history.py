"""Histories of clusters against published formulas, and what must hold of every one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInputError
from weft.goodput import Cluster, Spent, cluster_of, live, outcome_of
from weft.goodput.formulas import best_interval_s, effective_training_time_ratio, efficiency, young_interval_s
from weft.paths import ROOT
from weft.quantities.definitions import UNITS_REQUIRED
from weft.scenario import load_scenario
from weft.scenario.cluster import CheckpointSection, ClusterSection, FailureSection, cluster_section
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.storage_network import with_storage_network

DAY_S, HOUR_S, MINUTE_S = 86400.0, 3600.0, 60.0


def fabric() -> FabricSpec:
    return leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=100 * 10**9)


def cluster(**keys: Any) -> Cluster:
    return cluster_of(ClusterSection.model_validate(keys, context={UNITS_REQUIRED: True}), fabric())


def seconds(value: float) -> str:
    return f"{value:.6f}s"


def pure(interval_s: float, cost_s: float, restart_s: float, mtbf_s: float, duration_s: float) -> Cluster:
    """One kind of failure, which ends the job and needs no host: what the formulas know of."""
    return cluster(
        duration=seconds(duration_s),
        failures=[{"part": "cluster", "mtbf": seconds(mtbf_s), "effect": "restart"}],
        checkpoint={"interval": seconds(interval_s), "cost": seconds(cost_s)},
        restart={"detection": seconds(restart_s / 4), "start": seconds(restart_s * 3 / 4)},
    )


def points(count: int) -> list[tuple[float, float, float, float]]:
    """Intervals, costs and restarts as shares of the mean time between failures, and that time."""
    random = np.random.default_rng(1)
    found = []
    for _ in range(count):
        mtbf_s = float(10 ** random.uniform(3, 5))
        interval, restart = 10 ** random.uniform(-2, -0.3), 10 ** random.uniform(-3, -0.5)
        cost = interval * 10 ** random.uniform(-3, -0.5)
        found.append((interval * mtbf_s, cost * mtbf_s, restart * mtbf_s, mtbf_s))
    return found


def check_formula(interval_s: float, cost_s: float, restart_s: float, mtbf_s: float) -> None:
    expected = efficiency(interval_s, cost_s, restart_s, 1 / mtbf_s)
    lived = live(pure(interval_s, cost_s, restart_s, mtbf_s, min(10_000 * mtbf_s, 3650 * DAY_S)), (1,))
    assert lived.goodput == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("point", points(12), ids=str)
def test_histories_meet_daly_s_formula(point: tuple[float, float, float, float]) -> None:
    check_formula(*point)


@pytest.mark.slow
def test_histories_meet_daly_s_formula_at_two_hundred_points() -> None:
    for point in points(200):
        check_formula(*point)


def test_the_first_order_is_that_of_kokolis_et_al() -> None:
    """12,288 accelerators with 6.5 failures of a host in 1,000 days: 16 a day."""
    hosts, rate = 1536, 6.5 / 1000 / DAY_S
    ratio = effective_training_time_ratio(30 * MINUTE_S, 5 * MINUTE_S, hosts * rate)
    assert ratio == pytest.approx(1 - hosts * 6.5e-3 * (5 + 15) / (24 * 60))
    lived = live(pure(30 * MINUTE_S, 0, 5 * MINUTE_S, 1 / (hosts * rate), 3000 * DAY_S), (1,))
    assert lived.goodput == pytest.approx(ratio, rel=0.02)


def test_the_best_interval_is_young_s_where_failures_are_rare() -> None:
    cost_s = 10.0
    rare, often = 1 / (100 * DAY_S), 1 / (5 * MINUTE_S)
    assert best_interval_s(cost_s, rare) == pytest.approx(young_interval_s(cost_s, rare), rel=0.01)
    best_s = best_interval_s(cost_s, often)
    assert best_s < young_interval_s(cost_s, often)
    for other in (0.8, 1.25):
        assert efficiency(best_s, cost_s, 600, often) > efficiency(other * best_s, cost_s, 600, often)


def test_without_failures_only_checkpoints_take_time() -> None:
    lived = live(cluster(duration="10h", checkpoint={"interval": "50min", "cost": "10min"}), (1,))
    assert lived.spent_s[Spent.CHECKPOINTS] == pytest.approx(10 * 10 * MINUTE_S, abs=10 * MINUTE_S)
    assert lived.spent_s[Spent.LOST] == 0
    assert lived.interruptions == 0


EFFECTS: dict[str, dict[str, str | float]] = {
    "replace": {"repair": "5h"},
    "restart": {},
    "stall": {"stall": "20min"},
    "slow": {"speed": 0.5, "repair": "3h"},
    "corrupt": {"noticed_after": "2h", "repair": "5h"},
    "no-storage": {"repair": "4h"},
}


@given(
    effects=st.lists(st.sampled_from(sorted(EFFECTS)), min_size=1, max_size=5, unique=True),
    mtbf_h=st.floats(0.2, 50),
    interval_min=st.floats(1, 300),
    cost_s=st.sampled_from([0, 1, 600]),
    saving_s=st.sampled_from([0, 30]),
    spares=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
@settings(max_examples=150, deadline=None)
def test_all_of_the_time_goes_somewhere(
    effects: list[str], mtbf_h: float, interval_min: float, cost_s: float, saving_s: float, spares: int, seed: int
) -> None:
    failures = [
        {"part": "cluster", "name": effect, "mtbf": seconds(mtbf_h * HOUR_S), "effect": effect, **EFFECTS[effect]}
        for effect in effects
    ]
    found = live(
        cluster(
            duration="20d",
            spares=spares,
            failures=failures,
            checkpoint={
                "interval": seconds(interval_min * MINUTE_S),
                "cost": seconds(cost_s),
                "saving": seconds(saving_s),
            },
        ),
        (seed,),
    )
    assert found.duration_s == pytest.approx(20 * DAY_S, rel=1e-6)
    assert all(spent >= -1e-3 for spent in found.spent_s.values()), found.spent_s
    interrupting = sum(found.failures[each] for each in ("replace", "restart"))
    assert found.interruptions >= interrupting
    assert found.interruptions <= interrupting + found.failures["corrupt"]
    for effect, spent in (
        ("stall", Spent.STALLED),
        ("slow", Spent.SLOWED),
        ("replace", Spent.WAITING),
        ("no-storage", Spent.STORAGE),
    ):
        if effect not in effects and not (effect == "replace" and "corrupt" in effects):
            assert found.spent_s[spent] == pytest.approx(0, abs=1e-3)


def test_a_stall_costs_what_it_takes_and_a_slow_part_its_share() -> None:
    stalled = live(
        cluster(duration="3000d", failures=[{"part": "cluster", "mtbf": "10h", "effect": "stall", "stall": "6min"}]),
        (1,),
    )
    # A failure each 10 h of the wall clock takes 0.1 h.
    assert stalled.spent_s[Spent.STALLED] / stalled.duration_s == pytest.approx(0.01, rel=0.03)
    slow = {"part": "cluster", "mtbf": "1000h", "effect": "slow", "speed": 0.25, "repair": "10h"}
    slowed = live(cluster(duration="3650d", failures=[slow]), (1,))
    assert slowed.spent_s[Spent.SLOWED] / slowed.duration_s == pytest.approx(0.75 * 0.01, rel=0.3)


def test_corruption_costs_the_time_until_it_is_noticed() -> None:
    corrupt = {"part": "cluster", "mtbf": "100h", "effect": "corrupt", "noticed_after": "5h", "repair": "0"}
    lived = live(
        cluster(
            duration="3650d",
            spares=5,
            failures=[corrupt],
            checkpoint={"interval": "20min", "cost": "0"},
            restart={"detection": "0", "start": "1min"},
        ),
        (1,),
    )
    # Half an interval besides; of two at once the earlier decides.
    assert lived.spent_s[Spent.LOST] / lived.duration_s == pytest.approx((5 + 1 / 6) / 100, rel=0.1)


def test_a_job_waits_for_hosts_that_are_being_repaired() -> None:
    keys: dict[str, Any] = {
        "duration": "3000d",
        "failures": [{"part": "cluster", "mtbf": "50h", "repair": "10h"}],
        "checkpoint": {"interval": "10min", "cost": "1s"},
        "restart": {"detection": "0", "start": "1s"},
    }
    none = live(cluster(**keys), (1,))
    # Each failure takes its repair, and none comes to a job that waits, but for another one.
    assert none.spent_s[Spent.WAITING] / none.duration_s == pytest.approx(10 / 60, rel=0.15)
    enough = live(cluster(**keys, spares=6), (1,))
    assert enough.spent_s[Spent.WAITING] == 0
    assert enough.goodput > none.goodput


def test_a_checkpoint_counts_when_it_is_saved() -> None:
    keys: dict[str, Any] = {
        "duration": "3650d",
        "failures": [{"part": "cluster", "mtbf": "10h", "effect": "restart"}],
        "restart": {"detection": "0", "start": "1s"},
    }
    at_once = live(cluster(**keys, checkpoint={"interval": "10min", "cost": "0"}), (1,))
    later = live(cluster(**keys, checkpoint={"interval": "10min", "cost": "0", "saving": "8min"}), (1,))
    more_s = (later.spent_s[Spent.LOST] - at_once.spent_s[Spent.LOST]) / later.interruptions
    assert more_s == pytest.approx(8 * MINUTE_S, rel=0.05)


def test_a_seed_repeats_and_another_one_does_not() -> None:
    some = cluster(failures=[{"part": "host", "mtbf": "50d"}], spares=9)
    assert outcome_of(some, 1, 3) == outcome_of(some, 1, 3)
    assert outcome_of(some, 1, 3) != outcome_of(some, 2, 3)


def test_parts_are_those_of_the_fabric() -> None:
    parts = ["accelerator", "host", "nic", "link", "switch", "plane", "cluster"]
    found = cluster(accelerators_per_host=4, failures=[{"part": part, "mtbf": "9d"} for part in parts])
    assert (found.accelerators, found.hosts) == (32, 8)
    assert [kind.parts for kind in found.kinds] == [32, 8, 16, 20, 6, 2, 1]


def test_what_cannot_be_known_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"failures\[0\].*`count`"):
        cluster(accelerators=1024, failures=[{"part": "switch", "mtbf": "9d"}])
    assert cluster(accelerators=1024, failures=[{"part": "switch", "count": 40, "mtbf": "9d"}]).kinds[0].parts == 40
    with pytest.raises(BadInputError, match=r"cluster\.failures.*up to 200,000"):
        cluster(failures=[{"part": "accelerator", "count": 10**8, "mtbf": "1us"}])
    with pytest.raises(BadInputError, match=r"cluster\.accelerators_per_host.*a multiple"):
        ClusterSection(accelerators_per_host=3).accelerators_per_endpoint(2)
    with pytest.raises(BadInputError, match="no best interval"):
        cluster(failures=[{"mtbf": "9d"}], checkpoint={"cost": "0"})
    with pytest.raises(BadInputError, match="the next one begins"):
        cluster(failures=[{"mtbf": "9d"}], checkpoint={"interval": "1min", "saving": "5min"})


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ({"mtbf": "9d", "speed": 0.5}, "speed.*goes with effect slow"),
        ({"mtbf": "9d", "effect": "stall"}, "stall.*is missing"),
        ({"mtbf": "9d", "effect": "restart", "repair": "1h"}, "repair.*goes with effect"),
        ({}, "mtbf"),
        ({"mtbf": 9}, "has no unit"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(failure: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cluster(failures=[failure])


OUTAGE = {"part": "cluster", "name": "storage", "mtbf": "100h", "effect": "no-storage", "repair": "5h"}


def test_without_other_failures_lost_storage_costs_only_hosts_that_wait_for_it() -> None:
    background, waiting = (
        live(cluster(duration="3650d", failures=[OUTAGE], checkpoint={"interval": "1h", **keys}), (1,))
        for keys in ({"cost": "10s", "saving": "10min"}, {"cost": "10min"})
    )
    assert background.failures["storage"] == waiting.failures["storage"] > 0
    assert background.spent_s[Spent.STORAGE] == background.spent_s[Spent.LOST] == 0
    # Storage is out for 5 of 105 hours, of which hosts work for half an interval, unless it begins in a checkpoint.
    expected = 5 / 105 * (1 - 60 / 70 * 0.5 / 5)
    assert waiting.spent_s[Spent.STORAGE] / waiting.duration_s == pytest.approx(expected, rel=0.1)


def test_a_failure_without_storage_costs_the_work_since_it_was_lost() -> None:
    keys: dict[str, Any] = {
        "duration": "3650d",
        "checkpoint": {"interval": "6min", "cost": "1s", "saving": "1min"},
        "restart": {"detection": "0", "start": "1min"},
    }
    restart = {"part": "cluster", "mtbf": "100h", "effect": "restart"}
    alone = live(cluster(**keys, failures=[restart]), (1,))
    both = live(cluster(**keys, failures=[restart, OUTAGE]), (1,))
    out = 5 / 105
    # A failure comes without storage once in 21 times: half of the outage is lost then, and the other half waited for.
    for spent, more_h in ((Spent.LOST, out * 2.5), (Spent.STORAGE, out * 2.5)):
        more = (both.spent_s[spent] - alone.spent_s[spent]) / both.duration_s
        assert more == pytest.approx(more_h / 100, rel=0.35)
    assert alone.spent_s[Spent.STORAGE] == 0


def test_quiet_failures_end_no_stall() -> None:
    stall = {"part": "cluster", "mtbf": "20h", "effect": "stall", "stall": "10h"}
    quiet = OUTAGE | {"mtbf": "30min", "repair": "0"}
    alone, both = (live(cluster(duration="2000d", failures=failures), (1,)) for failures in ([stall], [stall, quiet]))
    for found in (alone, both):
        # The share of time in which one has come less than ten hours ago.
        assert found.spent_s[Spent.STALLED] / found.duration_s == pytest.approx(1 - math.exp(-10 / 20), rel=0.05)


def test_a_job_does_not_start_while_storage_is_lost_again_and_again() -> None:
    never = OUTAGE | {"mtbf": "5min", "repair": "1h"}
    restart = {"part": "cluster", "mtbf": "12h", "effect": "restart"}
    found = live(cluster(duration="100d", failures=[never, restart], checkpoint={"cost": "10s", "saving": "60s"}), (1,))
    assert found.spent_s[Spent.STORAGE] / found.duration_s > 0.95
    assert found.spent_s[Spent.KEPT] / found.duration_s < 0.01


def test_the_page_says_what_outages_cost_hosts_that_wait() -> None:
    scenario = load_scenario(ROOT / "examples" / "goodput" / "storage.yaml")
    page = (ROOT / "docs" / "goodput.md").read_text(encoding="utf-8")
    section, spec = cluster_section(scenario), scenario.fabric.build()
    background = outcome_of(cluster_of(section, spec), scenario.options.seed, 20)
    share = background.spent[Spent.STORAGE]
    assert f"waiting for storage    {share.mean:6.2%}  {share.low:6.2%}  {share.high:6.2%}" in page
    waiting = CheckpointSection.model_validate({"interval": "30min", "cost": "3min"}, context={UNITS_REQUIRED: True})
    both = section.model_copy(update={"checkpoint": waiting})
    found = outcome_of(cluster_of(both, spec), scenario.options.seed, 20).spent[Spent.STORAGE].mean
    assert f"make hosts wait for {100 * found:.2f} % of the time" in page


def test_a_storage_network_fails_as_a_part_of_its_own() -> None:
    section = ClusterSection.model_validate(
        {"failures": [{"part": "storage-network", "mtbf": "100d", "effect": "no-storage", "repair": "2h"}]},
        context={UNITS_REQUIRED: True},
    )
    found = cluster_of(section, with_storage_network(fabric()))
    assert [kind.parts for kind in found.kinds] == [1]
    with pytest.raises(BadInputError, match="no storage network"):
        cluster_of(section, fabric())
    for effect in ("replace", "corrupt"):
        failure = {"part": "storage-network", "mtbf": "100d", "effect": effect, "noticed_after": "1h"}
        with pytest.raises(ValueError, match="no host can take the place"):
            FailureSection.model_validate(
                {key: value for key, value in failure.items() if effect == "corrupt" or key != "noticed_after"},
                context={UNITS_REQUIRED: True},
            )


def test_other_parts_are_counted_without_the_storage_network() -> None:
    parts = ("nic", "link", "switch", "plane")
    failures = [{"part": part, "mtbf": "100d", "effect": "restart"} for part in parts]
    section = ClusterSection.model_validate({"failures": failures}, context={UNITS_REQUIRED: True})
    own, other = cluster_of(section, with_storage_network(fabric())), cluster_of(section, fabric())
    assert [kind.parts for kind in own.kinds] == [kind.parts for kind in other.kinds] == [16, 20, 6, 2]
