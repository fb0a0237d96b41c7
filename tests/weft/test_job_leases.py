"""Slots of jobs whose owner is gone come back when others need them; owners that live lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Network
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals import refused
from weft import Fabric
from weft.controller.errors import JobError, NoSlotsError
from weft.controller.features.acl import AclRule
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection
from weft.scenario.tenants import TenantSection
from weft.topologies import leaf_spine

SLOTS = 3000  # of 4,096: room for one such job
TOPOLOGY = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=100 * 10**9)
MS = 10**9
FRAME_BITS = 8 * 342


def lab_fabric(slots: int = SLOTS, **options: Any) -> Fabric:
    return Fabric(TOPOLOGY, clock="virtual", slots=slots, **options)


def inputs(elements: int = 5000) -> list[NDArray[np.int32]]:
    return [np.random.default_rng(rank).integers(-99, 99, elements, np.int32) for rank in range(2)]


def jobs_of(fabric: Fabric) -> list[int]:
    return [job.job_id for job in fabric.lab.controller.jobs]


def evictions(fabric: Fabric) -> list[str]:
    return [event.element for event in fabric.lab.operations.log if event.kind == "evicted"]


def begin(fabric: Fabric, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have something happen on the controller's side while hosts reduce."""
    fabric.lab.controller.call(fabric.lab.operations.begin(work()))


def test_slots_of_a_dead_owner_are_given_to_the_next_after_a_lease() -> None:
    with lab_fabric(aggregation=AggregationSection(lease=5 * MS)) as fabric:
        blocking = fabric.lab.controller
        blocking.add_job(50, ["h0", "h2"], SLOTS)
        began_ps = fabric.hosts.now_ps()
        assert fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3])).result.ok
        assert jobs_of(fabric) == [1]
        assert evictions(fabric) == ["job 50"]
        (event,) = [event for event in fabric.lab.operations.log if event.kind == "evicted"]
        assert event.time_ps - began_ps == pytest.approx(5 * MS, rel=0.01)
        # The next reduction of the same ranks has its job still.
        assert fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3])).result.ok
        # What has been seen to be idle once is not waited for again; nobody has used job 1 since.
        blocking.call(asyncio.sleep(0.006))
        with refused(
            NoSlotsError,
            valid="at most 1096, the largest free range of 4096; taken: 3000 by job 1",
            problem="job 60 wants 3000",
        ):
            blocking.add_job(60, ["h0", "h2"], SLOTS, keep=[1])
        blocking.add_job(60, ["h0", "h2"], SLOTS)
        assert jobs_of(fabric) == [60]
        fabric.summary()


def test_without_a_shortage_nobody_goes_and_where_eviction_does_not_help_neither() -> None:
    with lab_fabric() as fabric:
        blocking = fabric.lab.controller
        blocking.add_job(50, ["h0", "h2"], 1000)
        blocking.add_job(51, ["h0", "h2"], 2000)
        blocking.call(asyncio.sleep(0.01))
        assert fabric.run(CollectiveRequest("allreduce", inputs()[:1] * 2, "ring", ranks=[0, 3])).result.ok
        blocking.add_job(52, ["h0", "h2"], 1000)
        began_ps = fabric.hosts.now_ps()
        with refused(JobError, valid="at most 4096, the largest free range of 4096", problem="job 53 wants 5000"):
            blocking.add_job(53, ["h0", "h2"], 5000)
        assert fabric.hosts.now_ps() - began_ps < MS  # at once
        assert (jobs_of(fabric), evictions(fabric)) == ([50, 51, 52], [])
        fabric.summary()


def test_an_owner_that_was_idle_between_reductions_joins_again() -> None:
    with lab_fabric() as fabric:
        first = fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3]))
        fabric.lab.controller.add_job(50, ["h0", "h2"], SLOTS)
        assert evictions(fabric) == ["job 1"]
        again = fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3]))
        assert again.result.ok
        assert again.result.time_ps == first.result.time_ps
        assert evictions(fabric) == ["job 1", "job 50"]
        fabric.summary()


def test_an_owner_that_is_idle_within_a_run_joins_again_when_it_reduces() -> None:
    """Two jobs' hosts compute while another takes their slots. The first has its ring, the second trees once more."""
    with lab_fabric(slots=SLOTS // 2) as fabric:

        async def meanwhile() -> None:
            control = fabric.lab.controller.controller
            await asyncio.sleep(1e-3)
            await control.add_job(50, ["h0", "h2"], SLOTS)
            assert [job.job_id for job in control.jobs] == [50]

        tasks = [
            fabric.tasks.collective(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3])).at(
                time_ms * MS
            )
            for time_ms in (20, 40)
        ]
        began_ps = fabric.hosts.now_ps()
        begin(fabric, meanwhile)
        results = fabric.run_together(tasks)
        assert all(result.ok for result in results)
        assert fabric.hosts.now_ps() - began_ps > 40 * MS
        assert evictions(fabric) == ["job 1", "job 2", "job 50"]
        assert jobs_of(fabric) == [2]
        fabric.summary()


def test_a_reduction_does_not_wait_for_leases_of_others() -> None:
    """Job 1 loses its slots while its hosts compute. Its ring takes over at once, though a lease is 200 ms."""
    with lab_fabric(aggregation=AggregationSection(lease=200 * MS)) as fabric:

        async def meanwhile() -> None:
            await asyncio.sleep(1e-3)
            await fabric.lab.controller.controller.add_job(50, ["h0", "h2"], SLOTS)

        task = fabric.tasks.collective(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3])).at(
            300 * MS
        )
        began_ps = fabric.hosts.now_ps()
        begin(fabric, meanwhile)
        (result,) = fabric.run_together([task])
        assert result.ok
        assert fabric.hosts.now_ps() - began_ps < 320 * MS
        assert evictions(fabric) == ["job 1"]
        assert jobs_of(fabric) == [50]
        fabric.summary()


def test_a_job_in_the_middle_of_a_reduction_is_never_evicted() -> None:
    """One worker's packets are lost for two leases: the other repeats its own, and that is no idleness."""
    with lab_fabric() as fabric:
        control = fabric.lab.controller.controller
        lease_s = control.lease_s
        assert lease_s is not None
        refused: list[str] = []

        async def meanwhile() -> None:
            await asyncio.sleep(5e-6)
            await control.set_acl([AclRule(1, "deny", source=IPv4Network(f"{TOPOLOGY.host('h3').nic(0).ipv4.ip}/32"))])
            await asyncio.sleep(1e-3)
            try:
                await control.add_job(50, ["h0", "h2"], SLOTS)
            except NoSlotsError as error:
                refused.append(str(error))
            await control.set_acl([])

        assert fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 3])).result.ok
        (epoch,) = [job.epoch for job in control.jobs]
        began_ps = fabric.hosts.now_ps()
        begin(fabric, meanwhile)
        run = fabric.run(CollectiveRequest("allreduce", inputs(200_000), "in-network", ranks=[0, 3]))
        assert run.result.ok
        assert fabric.hosts.now_ps() - began_ps > lease_s * 10**12
        assert len(refused) == 1
        assert [(job.job_id, job.epoch) for job in control.jobs] == [(1, epoch)]
        assert evictions(fabric) == []
        fabric.summary()


def test_a_job_whose_promise_lets_packets_through_seldom_is_not_idle() -> None:
    """At 200 kb/s its workers send a packet in 13.7 ms, and a lease is 2.2 ms otherwise."""
    with lab_fabric(tenants={"blue": TenantSection(bandwidth=2e-6)}) as fabric:
        control = fabric.lab.controller.controller
        assert control.lease_s is not None
        gap_s = FRAME_BITS / 200_000
        assert control.lease_s < gap_s / 4
        refused: list[str] = []

        async def meanwhile() -> None:
            await asyncio.sleep(2e-3)
            try:
                await control.add_job(50, ["h0", "h2"], SLOTS)
            except NoSlotsError as error:
                refused.append(str(error))

        begin(fabric, meanwhile)
        run = fabric.run(CollectiveRequest("allreduce", inputs(64 * 24), "in-network", ranks=[0, 3], tenant="blue"))
        assert run.result.ok
        assert run.result.time_ps > 10 * gap_s * 10**12
        assert len(refused) == 1
        assert evictions(fabric) == []
        fabric.summary()


def test_admission_waits_for_no_longer_lease_than_it_needs() -> None:
    """At 200 kb/s a lease is 27 ms longer. The job that has it goes only if the other's slots are not enough."""
    with lab_fabric(tenants={"blue": TenantSection(bandwidth=2e-6)}) as fabric:
        blocking = fabric.lab.controller
        lease_s = blocking.lease_s
        assert lease_s is not None
        blocking.add_job(50, ["h0", "h2"], 1000, tenant="blue")
        blocking.add_job(51, ["h0", "h2"], SLOTS)
        began_ps = fabric.hosts.now_ps()
        blocking.add_job(52, ["h0", "h2"], SLOTS)
        assert jobs_of(fabric) == [50, 52]
        assert (fabric.hosts.now_ps() - began_ps) / 10**12 == pytest.approx(lease_s, rel=0.01)
        blocking.add_job(53, ["h0", "h2"], 4000)
        assert jobs_of(fabric) == [53]
        waited_s = (fabric.hosts.now_ps() - began_ps) / 10**12
        assert waited_s == pytest.approx(lease_s + 2 * FRAME_BITS / 200_000, rel=0.01)
        fabric.summary()


def test_leases_begin_anew_when_a_controller_takes_jobs_over() -> None:
    with lab_fabric() as fabric:
        blocking = fabric.lab.controller
        lease_s = blocking.lease_s
        assert lease_s is not None
        blocking.add_job(50, ["h0", "h2"], SLOTS)
        with pytest.raises(NoSlotsError):
            blocking.add_job(51, ["h0", "h2"], SLOTS, keep=[50])
        blocking.call(asyncio.sleep(2 * lease_s))
        blocking.recover()
        began_ps = fabric.hosts.now_ps()
        blocking.add_job(51, ["h0", "h2"], SLOTS)
        assert jobs_of(fabric) == [51]
        assert fabric.hosts.now_ps() - began_ps >= lease_s * 10**12
        fabric.summary()


def test_a_lease_that_a_waiting_worker_would_outlast_is_refused() -> None:
    with (
        refused(
            BadInputError,
            place="aggregation.lease",
            valid="2.23609 ms or more, twice the longest time after which a worker repeats itself",
        ),
        lab_fabric(aggregation=AggregationSection(lease=MS)),
    ):
        pass
