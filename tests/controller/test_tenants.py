"""Tenants: quotas of slots and of links, whose hosts take part, where trees go, and what a refusal says to whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import JobError, SettingError
from weft.controller.failures import Failures
from weft.controller.features.aggregation import aggregation_entities
from weft.controller.jobs import JobTable
from weft.controller.slots import SlotPool
from weft.controller.tenants import Tenant, TenantSettings
from weft.topologies import Endpoint, leaf_spine

FABRIC = leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=4)
HOSTS = [host.name for host in FABRIC.hosts]
BLUE = Tenant("blue", frozenset(HOSTS[0::2]), slots=60, bandwidth=0.5)
RED = Tenant("red", frozenset(HOSTS[1::2]), slots=30, bandwidth=0.25)


def table(*tenants: Tenant, capacity: int = 100) -> JobTable:
    return JobTable(FABRIC, capacity, tenants=TenantSettings(tenants))


def test_a_tenant_has_its_slots_whatever_others_take() -> None:
    jobs = table(BLUE, RED)
    jobs.add(1, HOSTS, 10)
    jobs.add(2, HOSTS[0::2], 60, tenant="blue")
    ranges = jobs.pool("p0l0").ranges()
    assert (ranges[1], ranges[2]) == (range(10), range(10, 70))
    red = jobs.add(3, HOSTS[1::2], 30, tenant="red")
    assert set(red.trees[0].slot_base.values()) == {70}
    with refused(JobError, valid="at most 0, the largest free range of 10; taken: 10 by job 1", problem="job"):
        jobs.add(4, HOSTS, 1)


def test_workers_have_meters_of_what_their_job_is_promised() -> None:
    """Twice the share of 10 Gb/s in bytes, a burst of a frame for each slot and 16 more; others have none."""
    jobs = JobTable(FABRIC, 200, tenants=TenantSettings((BLUE, RED)), lane_count=256)
    jobs.add(1, HOSTS[0::2], 20, tenant="blue", share=0.3)
    jobs.add(2, HOSTS, 20, tenant="", ip_version=6)
    jobs.add(3, HOSTS[1:4:2], 20, tenant="red", share=1.25e-5, ip_version=6)
    assert {each[0].rate_bps for each in jobs.memberships(1).values()} == {3 * 10**9}
    assert jobs.memberships(2)["h0"][0].rate_bps == 0
    members = [
        each
        for entities in aggregation_entities(FABRIC, jobs.jobs).values()
        for each in entities
        if isinstance(each, finsy.P4TableEntry) and each.table_id == "aggregation_member"
    ]
    meters = {}
    for each in members:
        of_host = each.action.name == "child" and not each.action.args["is_switch"]
        meters.setdefault((each.match["job_id"], of_host), set()).add(each.meter_config and astuple(each.meter_config))
    burst, small = (20 + 16) * (86 + 1024), (20 + 16) * (106 + 1024)
    assert meters == {
        (1, True): {(375_000_000, burst, 375_000_000, burst, 0)},
        (1, False): {None},
        (2, True): {None},
        (2, False): {None},
        (3, True): {(15_625, small, 15_625, small, 0)},
    }


def test_a_promise_that_no_meter_holds_is_refused() -> None:
    """125 kb/s is the least, of links of 10 Gb/s 1.25e-5."""
    with refused(SettingError, place="blue.bandwidth", problem="valid: 1.25e-05 or more, 125"):
        table(Tenant("blue", bandwidth=1e-9))
    jobs = table(Tenant("blue", bandwidth=1.25e-5))
    with refused(JobError, problem="job 1 of blue: 6e-06 of links"):
        jobs.add(1, HOSTS[:2], 4, tenant="blue", share=6e-6)
    assert jobs.add(1, HOSTS[:2], 4, tenant="blue").epoch == 1
    jobs.add(2, HOSTS[:2], 4, tenant="blue", share=0.0)


def test_a_refusal_names_no_jobs_of_others() -> None:
    jobs = table(Tenant("blue"), Tenant("red", slots=20), capacity=100)
    jobs.add(1, HOSTS, 50)
    jobs.add(2, HOSTS, 20, tenant="blue")
    jobs.add(3, HOSTS, 15, tenant="red")
    with refused(
        JobError,
        valid="at most 10, the largest free range of 80; taken: 20 by job 2, 50 by others",
        problem="job",
    ):
        jobs.add(4, HOSTS, 30, tenant="blue")
    with refused(JobError, valid="at most 5, the largest free range of 20; taken: 15 by job 3", problem="job"):
        jobs.add(4, HOSTS, 6, tenant="red")
    with refused(
        JobError,
        valid="at most 10, the largest free range of 80; taken: 50 by job 1, 20 by job 2",
        problem="job",
    ):
        jobs.add(4, HOSTS, 30)
    with refused(JobError, valid="an id that no job has", problem="job 1 exists already"):
        jobs.add(1, HOSTS, 6, tenant="red")


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        (
            {"hosts": ["h0", "h1"], "tenant": "blue"},
            {"valid": "h0, h10, h12, h14, h2, h4, h6, h8", "problem": "host h1 is not one of its hosts"},
        ),
        ({"hosts": ["h0"], "tenant": "green"}, {"valid": "blue, red", "problem": "unknown tenant 'green'"}),
        (
            {"hosts": ["h0"], "tenant": "blue", "share": 0.6},
            {"valid": "0 to 0.5", "problem": "6 of each link"},
        ),
        ({"hosts": ["h0"], "share": -0.1}, {"valid": "0 to 0", "problem": "1 of each link"}),
        ({"hosts": ["h0"], "share": 0.1}, {"valid": "0 to 0", "problem": "1 of each link"}),
    ],
)
def test_what_a_tenant_has_not_is_refused(wanted: dict, what: dict[str, str]) -> None:
    jobs = table(BLUE, RED)
    with refused(JobError, **what):
        jobs.add(1, slot_count=4, **wanted)
    assert not jobs.jobs
    assert jobs.pool("p0l0").free == 100


def test_jobs_of_a_tenant_share_its_part_of_each_link() -> None:
    jobs = table(BLUE)
    jobs.add(1, ["h0", "h4"], 4, tenant="blue", share=0.3)
    jobs.add(2, ["h2", "h6"], 4, tenant="blue", share=0.3)  # other hosts' links, and another spine
    with refused(JobError, valid="0.5 together", problem="3 of the link at p0l0:1, other"):
        jobs.add(3, ["h0", "h8"], 4, tenant="blue", share=0.3)
    jobs.add(3, ["h0", "h8"], 4, tenant="blue", share=0.2)
    jobs.remove(1)
    jobs.add(4, ["h0", "h4"], 4, tenant="blue", share=0.3)


@pytest.mark.parametrize(
    ("tenants", "what"),
    [
        ((BLUE, Tenant("red", slots=41)), {"valid": "up to 100", "problem": "101 slots at each switch"}),
        ((BLUE, Tenant("red", bandwidth=0.6)), {"valid": "up to 1", "problem": "1 of each link together"}),
        ((BLUE, BLUE), {"valid": "names, each once"}),
        ((Tenant(""),), {"valid": "names, each once"}),
    ],
)
def test_quotas_beyond_what_there_is_are_refused(tenants: tuple[Tenant, ...], what: dict[str, str]) -> None:
    with refused(SettingError, **what):
        table(*tenants)


def test_trees_go_where_links_and_slots_are_free() -> None:
    jobs = table(capacity=100)
    everywhere = [HOSTS[leaf * 4 : leaf * 4 + 4] for leaf in range(4)]
    # Ten jobs of one host a leaf: each uplink carries two or three of them.
    for number in range(1, 11):
        jobs.add(number, [hosts[number % 4] for hosts in everywhere], 4)
    roots = Counter(job.trees[0].tree.root.switch for job in jobs.jobs)
    assert sorted(roots.values()) == [2, 2, 3, 3]
    loads = Counter(port for job in jobs.jobs for port in job.trees[0].tree.ports() if port.node.startswith("p0s"))
    assert max(loads.values()) == 3


def test_a_spine_without_slots_is_passed_over() -> None:
    jobs = table(capacity=100)
    for number in range(1, 5):
        jobs.add(number, ["h0", "h4"], 20)
    jobs.remove(2)
    for number in (5, 6):  # below other leaves
        jobs.add(number, ["h8", "h12"], 50)
    full = {name for name in ("p0s0", "p0s1", "p0s2", "p0s3") if jobs.pool(name).free < 60}
    assert len(full) == 2
    # Job 2's spine has no trees of these leaves, but job 5.
    jobs.remove(1)
    jobs.remove(3)
    assert jobs.add(7, ["h1", "h5"], 60).trees[0].tree.root.switch not in full


def test_a_heavy_job_weighs_more_than_light_ones() -> None:
    jobs = table(Tenant("blue", bandwidth=0.9))
    heavy = jobs.add(1, ["h0", "h4"], 4, tenant="blue", share=0.6).trees[0].tree.root.switch
    others = [
        jobs.add(number, [f"h{number - 1}", f"h{number + 3}"], 4, tenant="blue", share=0.2) for number in (2, 3, 4)
    ]
    assert heavy not in {job.trees[0].tree.root.switch for job in others}


def test_rebuilt_jobs_keep_tenant_and_share() -> None:
    jobs = table(BLUE)
    before = jobs.add(1, ["h0", "h4"], 4, tenant="blue", share=0.3)
    [after], lost = jobs.rebuild(Failures(switches=frozenset({before.trees[0].tree.root.switch})))
    assert (after.tenant, after.share, lost) == ("blue", 0.3, {})
    assert after.trees[0].tree.root.switch != before.trees[0].tree.root.switch
    assert Endpoint("p0l0", 1) in set(after.trees[0].tree.ports())


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 40), st.sampled_from(["", "blue", "red"])), max_size=40))
@settings(max_examples=60)
def test_tenants_never_get_slots_of_others(steps: list[tuple[int, int, str]]) -> None:
    pool = SlotPool("s", 100, {"blue": 30, "red": 20})
    regions = {"": range(50), "blue": range(50, 80), "red": range(80, 100)}
    owners: dict[int, str] = {}
    for job_id, count, tenant in steps:
        if job_id in owners:
            pool.release(job_id)
            del owners[job_id]
            continue
        had_room = pool.has_room(count, tenant)
        try:
            pool.allocate(job_id, count, tenant)
            owners[job_id] = tenant
        except JobError:
            assert not had_room
        else:
            assert had_room
        taken = [slot for slots in pool.ranges().values() for slot in slots]
        assert len(taken) == len(set(taken))
        for job, slots in pool.ranges().items():
            assert set(slots) <= set(regions[owners[job]])
