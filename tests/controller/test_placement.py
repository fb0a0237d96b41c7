"""Where trees go by each placement: room and quotas come before it, and a failure moves only the trees it hits."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.refusals import refused
from weft.controller.errors import SettingError
from weft.controller.failures import Failures
from weft.controller.jobs import JobTable
from weft.controller.placement import PLACEMENTS
from weft.controller.tenants import Tenant, TenantSettings
from weft.topologies import leaf_spine
from weft.topologies.kinds.torus import torus

FABRIC = leaf_spine(planes=1, leaves=2, spines=4, hosts_per_leaf=4)
PAIRS = [["h0", "h4"], ["h1", "h5"], ["h2", "h6"], ["h3", "h7"]]


def table(placement: str, jobs: int = 8, slots: int = 10, **arguments: object) -> JobTable:
    made = JobTable(FABRIC, 1000, placement=placement, **arguments)  # type: ignore[arg-type]
    for number in range(jobs):
        made.add(number + 1, PAIRS[number % 4], slots)
    return made


def roots(jobs: JobTable) -> list[str]:
    return [job.trees[0].tree.root.switch for job in jobs.jobs]


def test_each_placement_has_its_spines() -> None:
    assert Counter(roots(table("load"))) == {"p0s0": 2, "p0s1": 2, "p0s2": 2, "p0s3": 2}
    assert Counter(roots(table("first"))) == {"p0s0": 8}
    # By chance: neither all on one nor the same on each.
    assert sorted(Counter(roots(table("hash"))).values()) not in ([8], [2, 2, 2, 2])


def test_a_hash_depends_on_the_job_alone() -> None:
    whole = table("hash", jobs=8)
    alone = JobTable(FABRIC, 1000, placement="hash")
    alone.add(5, PAIRS[1], 10)
    assert roots(alone) == [roots(whole)[4]]
    # Of many jobs each spine has about a quarter: 150 and four standard deviations.
    many = JobTable(FABRIC, 6000, placement="hash")
    for number in range(600):
        many.add(number + 1, PAIRS[number % 4], 10)
    assert all(abs(count - 150) < 43 for count in Counter(roots(many)).values())


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_failure_moves_the_trees_it_hits(placement: str) -> None:
    jobs = table(placement)
    before = roots(jobs)
    dead = before[0]
    _, lost = jobs.rebuild(Failures(switches=frozenset({dead})))
    assert not lost
    after = roots(jobs)
    assert dead not in after
    assert [new for new, old in zip(after, before, strict=True) if old != dead] == [
        old for old in before if old != dead
    ]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_room_and_quotas_come_first(placement: str) -> None:
    blue = TenantSettings((Tenant("blue", bandwidth=0.5),))
    jobs = table(placement, jobs=0, tenants=blue)
    for number in range(4):
        jobs.add(number + 1, ["h0", "h4"], 1, tenant="blue", share=0.1)
    taken = roots(jobs)[0]
    slots = 1000 - 4
    jobs.pool(taken).allocate(99, jobs.pool(taken).free)
    jobs.add(5, ["h1", "h5"], min(slots, 10))
    assert roots(jobs)[4] != taken


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_trees_without_tiers(placement: str) -> None:
    fabric = torus(shape=(4,))
    jobs = JobTable(fabric, 100, placement=placement)
    for number in range(3):
        jobs.add(number + 1, [host.name for host in fabric.hosts], 10)
    assert len(set(roots(jobs))) == {"load": 3, "first": 1}.get(placement, len(set(roots(jobs))))


def test_an_unknown_placement_is_refused() -> None:
    with refused(SettingError, valid="load, first, hash", problem="unknown placement of trees"):
        table("best")
