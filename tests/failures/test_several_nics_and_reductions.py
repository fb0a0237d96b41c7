"""Reductions of hosts with two NICs in a plane, when links fail."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from weft import Fabric
from weft.controller.recovery import HeldJobs, read_job_entries, recovered
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection
from weft.scenario.tenants import TenantSection
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder

US = 10**6
LINK = LinkSpec(100 * 10**9, US, 512 * 1024)
CONTROL = ControlSection(latency=10 * US, detection=5 * US)
NOTICED_PS = CONTROL.detection + 3 * CONTROL.latency // 2
ELEMENTS = 200_000


def hosts_of_two_nics(planes: int = 1, *, leaves_apart: bool = False) -> FabricSpec:
    """Four hosts on two leaves of each plane, or each NIC of a plane on its own leaves, below two spines."""
    builder = FabricBuilder()
    apart = 2 if leaves_apart else 1
    leaves = [[builder.add_switch(plane, "leaf") for _ in range(2 * apart)] for plane in range(planes)]
    for pair in range(2):
        for _ in range(2):
            builder.add_host(
                [of_plane[pair * apart + place % apart] for of_plane in leaves for place in range(2)], LINK
            )
    for plane, of_plane in enumerate(leaves):
        for spine in [builder.add_switch(plane, "spine") for _ in range(2)]:
            for leaf in of_plane:
                builder.add_link(leaf, spine, LINK)
    return builder.build({})


def inputs(dtype: str) -> list[np.ndarray]:
    draws = [np.random.default_rng(rank) for rank in range(4)]
    if dtype == "int32":
        return [draw.integers(-(2**31), 2**31, ELEMENTS, np.int32) for draw in draws]
    return [draw.standard_normal(ELEMENTS).astype(np.float32) for draw in draws]


def reduced(fabric: Fabric, dtype: str = "int32", tenant: str = "") -> np.ndarray:
    """Return the sum that all ranks have."""
    run = fabric.run(CollectiveRequest("allreduce", inputs(dtype), "in-network", tenant=tenant))
    assert run.result.ok
    assert len({buffer.tobytes() for buffer in run.buffers}) == 1
    return run.buffers[0]


def mend(fabric: Fabric) -> None:
    """Wait until all links are up."""
    while fabric.lab.controller.failures.links or fabric.lab.operations.lost_planes:
        fabric.lab.controller.call(asyncio.sleep(1e-3))


def jobs(fabric: Fabric) -> list[tuple[int, tuple[int, ...]]]:
    """Return the place of the workers among their hosts' NICs, and the planes, of each job."""
    return [(job.place, job.planes) for job in fabric.lab.controller.jobs]


def roots(fabric: Fabric) -> list[str]:
    return [planned.tree.root.switch for job in fabric.lab.controller.jobs for planned in job.trees]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("leaves_apart", [False, True], ids=["one leaf", "two leaves"])
def test_an_uplink_of_one_nics_tree_fails(leaves_apart: bool, dtype: str) -> None:
    """Both streams stop and go on, as those of two planes do."""
    with Fabric(hosts_of_two_nics(leaves_apart=leaves_apart), clock="virtual", control=CONTROL) as fabric:
        undisturbed = reduced(fabric, dtype)
        assert len(set(roots(fabric))) == 2
        fabric.schedule_link("p0l1", roots(fabric)[1], "down", 40 * US)
        fabric.schedule_link("p0l1", roots(fabric)[1], "up", 400 * US)
        np.testing.assert_array_equal(reduced(fabric, dtype), undisturbed)
        (event,) = [each for each in fabric.lab.link_events.results if each.resumed_ps is not None]
        assert event.resumed_ps is not None
        assert event.resumed_ps - event.happened_ps >= NOTICED_PS
        assert event.repeated_messages > 0
        assert jobs(fabric) == [(0, (0,)), (1, (0,))]
        mend(fabric)
        np.testing.assert_array_equal(reduced(fabric, dtype), undisturbed)
        fabric.summary()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("nic", [0, 1])
def test_the_stream_of_a_nic_without_its_link_goes_over_the_other_one(nic: int, dtype: str) -> None:
    topology = hosts_of_two_nics(leaves_apart=True)
    with Fabric(topology, clock="virtual", control=CONTROL) as fabric:
        undisturbed = reduced(fabric, dtype)
        leaf = topology.hosts[2].nic(nic).switch
        fabric.schedule_link("h2", leaf, "down", 40 * US)
        np.testing.assert_array_equal(reduced(fabric, dtype), undisturbed)
        (event,) = [each for each in fabric.lab.link_events.results if each.resumed_ps is not None]
        assert event.link == f"h2<->{leaf}"
        assert jobs(fabric) == [(1 - nic, (0,))] * 2
        # Hosts that join now use the NIC that all have.
        np.testing.assert_array_equal(reduced(fabric, dtype), undisturbed)
        assert jobs(fabric) == [(1 - nic, (0,))]
        fabric.schedule_link("h2", leaf, "up", 0)
        mend(fabric)
        np.testing.assert_array_equal(reduced(fabric, dtype), undisturbed)
        assert jobs(fabric) == [(0, (0,)), (1, (0,))]
        fabric.summary()


def test_the_streams_of_a_lost_plane_go_over_both_nics_of_the_other() -> None:
    with Fabric(hosts_of_two_nics(2), clock="virtual", control=CONTROL) as fabric:
        undisturbed = reduced(fabric)
        assert jobs(fabric) == [(0, (0, 1)), (1, (0, 1))]
        for spine in fabric.topology.switches_with_role(1, "spine"):
            fabric.schedule_link("p1l0", spine.name, "down", 12 * US)
            fabric.schedule_link("p1l0", spine.name, "up", 400 * US)
        np.testing.assert_array_equal(reduced(fabric), undisturbed)
        assert sorted(jobs(fabric)) == [(0, (0,)), (0, (0,)), (1, (0,)), (1, (0,))]
        mend(fabric)
        np.testing.assert_array_equal(reduced(fabric), undisturbed)
        assert jobs(fabric) == [(0, (0, 1)), (1, (0, 1))]
        fabric.summary()


def test_the_nics_of_a_plane_share_a_promise() -> None:
    """Their trees may meet on links, which carry no more of the tenant than it is promised."""
    tenants = {"blue": TenantSection(bandwidth=0.5)}
    with Fabric(hosts_of_two_nics(), clock="virtual", control=CONTROL, tenants=tenants) as fabric:
        reduced(fabric, tenant="blue")
        assert [(job.tenant, job.share) for job in fabric.lab.controller.jobs] == [("blue", 0.25)] * 2


def test_another_controller_finds_the_jobs_of_each_nic() -> None:
    """Ports say which NICs take part."""
    with Fabric(hosts_of_two_nics(2, leaves_apart=True), clock="virtual", control=CONTROL) as fabric:
        reduced(fabric)
        controller = fabric.lab.controller
        held = {
            switch.name: HeldJobs(controller.call(read_job_entries(controller.session(switch.name))))
            for switch in fabric.topology.switches
        }
        found = recovered(fabric.topology, held)
        assert not found.lost
        # Switches' entries do not say how wide a program's packets are.
        assert tuple(replace(each, lane_count=fabric.options.aggregation.lane_count) for each in found.jobs) == (
            controller.jobs
        )

    first = next(each.jobs[1].parameters for each in held.values() if 1 in each.jobs)
    same = {name: first[name] for name in ("queue_key", "epoch")}
    mixed = {}
    for switch in fabric.topology.switches:
        if (of_job := held[switch.name].jobs.get(1 + switch.plane)) is not None:
            mixed[switch.name] = HeldJobs({1: replace(of_job, parameters={**of_job.parameters, **same})})
    assert recovered(fabric.topology, mixed).lost == {
        1: "its workers are NICs of different places in their planes: [0, 1]"
    }
