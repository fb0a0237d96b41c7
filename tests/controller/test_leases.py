"""Leases: which jobs are idle, and which of them make room for another that lacks slots."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.errors import JobError, NoSlotsError
from weft.controller.failures import Failures
from weft.controller.job import Job
from weft.controller.jobs import JobTable
from weft.controller.leases import Leases, admit_in_place_of, counted
from weft.controller.queue_keys import repeatable_queue_keys
from weft.controller.tenants import Tenant, TenantSettings
from weft.topologies import leaf_spine

FABRIC = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=3)
HOSTS = [host.name for host in FABRIC.hosts]
BLUE = Tenant("blue", slots=40, bandwidth=0.5)


def table() -> JobTable:
    return JobTable(FABRIC, 100, repeatable_queue_keys(1), tenants=TenantSettings((BLUE,)))


def state(jobs: JobTable) -> tuple[tuple[Job, ...], dict[str, dict[int, range]]]:
    return jobs.jobs, {switch.name: jobs.pool(switch.name).ranges() for switch in FABRIC.switches}


def test_a_job_is_idle_when_its_packets_have_not_changed_for_a_lease() -> None:
    leases = Leases()
    assert leases.idle({(1, 1): 5, (2, 2): 0}, 10.0, lambda _: 2.0) == []
    assert leases.idle({(1, 1): 6, (2, 2): 0, (3, 3): 7}, 11.0, lambda _: 2.0) == []
    assert leases.idle({(1, 1): 6, (2, 2): 0, (3, 3): 7}, 12.0, lambda _: 2.0) == [(2, 2)]
    # Job 2 is another one in a new epoch; those that are gone are forgotten.
    assert leases.idle({(1, 1): 6, (2, 4): 0}, 13.0, lambda _: 2.0) == [(1, 1)]
    assert leases.idle({(1, 1): 6, (2, 4): 0, (3, 3): 7}, 14.5, lambda _: 2.0) == [(1, 1)]
    assert counted([{(1, 1): 2}, {(1, 1): 3, (2, 1): 0}]) == {(1, 1): 5, (2, 1): 0}


def test_the_longest_idle_make_room_and_no_more_than_need_be() -> None:
    jobs = table()
    for job_id, hosts in ((1, HOSTS[:2]), (2, HOSTS), (3, HOSTS[3:]), (4, HOSTS)):
        jobs.add(job_id, hosts, 15)
    before = {job.job_id: job for job in jobs.jobs}
    # At the second leaf jobs 2, 3 and 4 follow each other. Job 1, idle longest, has nothing there and stays.
    evicted = admit_in_place_of(jobs, [1, 3, 2, 4], lambda jobs: jobs.add(9, HOSTS[3:], 30))
    assert [job.job_id for job in evicted] == [3, 2]
    assert {job.job_id: job for job in jobs.jobs if job.job_id != 9} == {k: before[k] for k in (1, 4)}
    assert jobs.pool("p0l1").ranges() == {9: range(30), 4: range(30, 45)}


def test_where_nothing_helps_all_is_as_before() -> None:
    jobs = table()
    jobs.add(1, HOSTS, 30)
    jobs.add(2, HOSTS, 30, tenant="blue")
    before = state(jobs)
    with refused(
        NoSlotsError, valid="at most 40, the largest free range of 40", problem="job 3 wants 50"
    ):  # of blue's 40
        admit_in_place_of(jobs, [1, 2], lambda jobs: jobs.add(3, HOSTS, 50, tenant="blue", share=0.0))
    assert state(jobs) == before
    with refused(JobError, valid="0.5 together", problem="other jobs of the tenant have"):
        admit_in_place_of(jobs, [1, 2], lambda jobs: jobs.add(3, HOSTS, 20, tenant="blue"))
    assert state(jobs) == before


def test_a_refused_admission_leaves_no_trace() -> None:
    """It takes no epoch and no slots, and what is known of jobs that went is known still."""
    jobs = table()
    for job_id in range(1, 6):
        jobs.add(job_id, HOSTS, 10)
    jobs.remove(5)
    jobs.note_evicted(5)
    before = state(jobs)

    async def busy() -> dict[tuple[int, int], int]:
        return {(job.job_id, job.epoch): 1 for job in jobs.jobs}

    async def expect_refusal(slots: int) -> None:
        leases = Leases()
        with pytest.raises(NoSlotsError, match=f"job 5 wants {slots} "):
            await leases.make_room(
                lambda: jobs, lambda table: table.add(5, HOSTS, slots), busy, lambda _: 2.0, wait=False
            )

    # Others would make room for the first if they were idle, and for the second never.
    asyncio.run(expect_refusal(50))
    asyncio.run(expect_refusal(61))
    assert state(jobs) == before
    assert jobs.was_evicted(5)
    assert jobs.add(6, HOSTS, 1).epoch == 6
    assert jobs.add(5, HOSTS, 1).epoch == 7
    assert not jobs.was_evicted(5)


def test_a_job_that_has_got_the_id_of_an_idle_one_stays() -> None:
    jobs = table()
    jobs.add(1, HOSTS, 60)
    leases = Leases()
    assert leases.idle({(1, 1): 5}, 0.0, lambda _: 2.0) == []

    async def replaced() -> dict[tuple[int, int], int]:
        """Job 1 is another by the time that the counters have come."""
        jobs.remove(1)
        jobs.add(1, HOSTS, 60)
        return {(1, 1): 5}

    async def expect_refusal() -> None:
        with refused(
            NoSlotsError,
            valid="at most 0, the largest free range of 60; taken: 60 by job 1",
            problem="job 2 wants 60",
        ):
            await leases.make_room(
                lambda: jobs, lambda table: table.add(2, HOSTS, 60), replaced, lambda _: 0.0, wait=False
            )

    asyncio.run(expect_refusal())
    assert [(job.job_id, job.epoch) for job in jobs.jobs] == [(1, 2)]


def test_a_failure_that_took_trees_is_known_after_a_refusal() -> None:
    jobs = table()
    jobs.add(1, HOSTS, 30)
    jobs.rebuild(Failures(switches=frozenset({"p0s0"})))
    assert jobs.has_lost
    with pytest.raises(NoSlotsError):
        jobs.add(1, HOSTS, 61)
    jobs.copy().add(1, HOSTS, 60)
    assert jobs.why_lost(1) is not None


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["", "blue"])), min_size=1, max_size=6),
    st.integers(1, 60),
    st.sampled_from(["", "blue"]),
)
@settings(deadline=None, max_examples=60)
def test_jobs_stay_as_they_were_or_go(sizes: list[tuple[int, str]], wanted: int, tenant: str) -> None:
    jobs = table()
    for number, (size, owner) in enumerate(sizes, start=1):
        try:
            jobs.add(number, HOSTS, size, tenant=owner, share=0.1 if owner else 0.0)
        except JobError:
            continue
    before = state(jobs)
    known = {job.job_id: job for job in before[0]}
    try:
        evicted = admit_in_place_of(
            jobs, list(known), lambda jobs: jobs.add(99, HOSTS, wanted, tenant=tenant, share=0.0)
        )
    except JobError:
        assert state(jobs) == before
        return
    gone = {job.job_id for job in evicted}
    assert {job.job_id: job for job in jobs.jobs if job.job_id != 99} == {
        k: v for k, v in known.items() if k not in gone
    }
    for ranges in state(jobs)[1].values():
        taken = sorted(ranges.values(), key=lambda each: each.start)
        assert all(one.stop <= other.start for one, other in itertools.pairwise(taken))
