"""Planes that are lost and return while hosts join aggregation jobs, trees are programmed, and hosts reduce."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection

US = 10**6
CONTROL = ControlSection(latency=10 * US, detection=5 * US)
LINKS = [("p0l0", "p0s0"), ("p1l0", "p1s0")]
"""Of each plane, one without which it is lost."""
MOMENTS_US = range(0, 60, 4)
"""They cover a join from its first request on, and the first messages of the reduction."""
LONG_PS = 1000 * US


def made(trees: int = 1) -> Fabric:
    fabric = topologies.leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=100 * 10**9, delay_ps=US
    )
    return Fabric(fabric, clock="virtual", control=CONTROL, trees=trees)


def reduce(fabric: Fabric, elements: int = 1000) -> None:
    """All-reduce integers, whose sums must be exact."""
    inputs = [
        np.random.default_rng(rank).integers(-(2**31), 2**31, elements, np.int32)
        for rank in range(fabric.topology.rank_count)
    ]
    run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
    assert run.result.ok
    np.testing.assert_array_equal(run.buffers[0], np.add.reduce(inputs, dtype=np.int32))


def wait(fabric: Fabric, duration_ps: int) -> None:
    fabric.lab.controller.call(asyncio.sleep(duration_ps / 1e12))


def mend(fabric: Fabric) -> None:
    """Wait until what is scheduled has happened, all links are up, and routes have them."""
    wait(fabric, 2 * LONG_PS)
    while fabric.lab.controller.failures.links or fabric.lab.operations.lost_planes:
        wait(fabric, LONG_PS)


def lose(fabric: Fabric, plane: int) -> None:
    """Have a plane be lost, and wait until the controller has seen to it."""
    fabric.schedule_link(*LINKS[plane], "down", 0)
    wait(fabric, LONG_PS)
    assert fabric.lab.operations.lost_planes == (plane,)


def joined_planes(fabric: Fabric) -> list[tuple[int, ...]]:
    return [job.planes for job in fabric.lab.controller.jobs]


def test_a_lost_plane_returns_at_any_moment_of_a_join() -> None:
    with made() as fabric:
        for moment_us in MOMENTS_US:
            lose(fabric, 1)
            fabric.schedule_link(*LINKS[1], "up", moment_us * US)
            reduce(fabric)
            mend(fabric)
        reduce(fabric)
        assert joined_planes(fabric) == [(0, 1)]
        fabric.summary()


@pytest.mark.parametrize("trees", [1, 2])
def test_a_link_fails_at_any_moment_of_a_join(trees: int) -> None:
    """The other plane serves, whether the job has not been admitted yet, is being programmed, or is joined."""
    with made(trees=trees) as fabric:
        for moment_us in MOMENTS_US:
            lose(fabric, 0)  # so that hosts join anew
            reduce(fabric)
            fabric.schedule_link(*LINKS[0], "up", 0)
            mend(fabric)
            fabric.schedule_link(*LINKS[1], "down", moment_us * US)
            fabric.schedule_link(*LINKS[1], "up", moment_us * US + LONG_PS)
            reduce(fabric)
            mend(fabric)
        fabric.summary()


@pytest.mark.parametrize("moment_us", [20, 30, 40])
def test_the_joined_plane_is_lost_when_the_other_one_has_returned(moment_us: int) -> None:
    """Hosts have no stream for the plane that returned: it carries the one that they have."""
    with made() as fabric:
        lose(fabric, 0)
        fabric.schedule_link(*LINKS[0], "up", moment_us * US)
        fabric.schedule_link(*LINKS[1], "down", (moment_us + 40) * US)
        reduce(fabric, 200_000)
        assert joined_planes(fabric) == [(0,)]
        fabric.schedule_link(*LINKS[1], "up", 0)
        mend(fabric)
        reduce(fabric)
        assert joined_planes(fabric) == [(0, 1)]
        fabric.summary()


def test_a_stream_goes_from_plane_to_plane_and_home() -> None:
    with made() as fabric:
        for number, plane in enumerate([1, 0, 1, 0]):
            fabric.schedule_link(*LINKS[plane], "down", (60 + 100 * number) * US)
            fabric.schedule_link(*LINKS[plane], "up", (60 + 100 * number + 60) * US)
        reduce(fabric, 1_000_000)
        resumed = {each.link for each in fabric.lab.link_events.results if each.resumed_ps is not None}
        assert resumed == {"p0l0<->p0s0", "p1l0<->p1s0"}
        mend(fabric)
        fabric.summary()


def test_moved_streams_of_several_jobs_have_ids_of_their_own() -> None:
    """Hosts know a job that has lost its trees by its id until its streams have moved: no other one gets it."""
    with made(trees=2) as fabric:
        reduce(fabric)
        for plane, at_us, duration_us in ((0, 10, 30), (1, 45, 10)):
            fabric.schedule_link(*LINKS[plane], "down", at_us * US)
            fabric.schedule_link(*LINKS[plane], "up", (at_us + duration_us) * US)
        reduce(fabric, 20_000)
        mend(fabric)
        fabric.summary()


def test_no_plane_is_left_as_hosts_join() -> None:
    """The error says so, and what is down; the next reduction has planes again."""
    with made() as fabric:
        for link in LINKS:
            fabric.schedule_link(*link, "down", 0)
        wait(fabric, LONG_PS)
        with refused(CheckFailedError, problem="no plane in use has an"):
            reduce(fabric)
        for link in LINKS:
            fabric.schedule_link(*link, "up", 0)
        mend(fabric)
        reduce(fabric)
        fabric.summary()
