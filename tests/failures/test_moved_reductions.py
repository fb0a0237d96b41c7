"""Reductions in the network go on when a failure takes their trees, from where they were, and end exact."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.results.link_events import LinkEventResult
from weft.run.collectives import CollectiveRequest, random_elements
from weft.run.jobs import PlacedJob
from weft.scenario import ControlSection
from weft.scenario.tenants import TenantSection
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.training import Layer, TrainingStep

US = 10**6
ELEMENTS = 200_000
CONTROL = ControlSection(latency=10 * US, detection=5 * US)
NOTICED_PS = CONTROL.detection + 3 * CONTROL.latency // 2
"""From a link's failure until the tables of the new tree are written: a message of the switch, a write, its answer."""
WHENS = {"early": 0.02, "in the middle": 0.5, "late": 0.95}


def inputs(dtype: str, ranks: int) -> list[NDArray[np.generic]]:
    draws = [np.random.default_rng(rank) for rank in range(ranks)]
    if dtype == "int32":
        return [draw.integers(-(2**31), 2**31, ELEMENTS, np.int32) for draw in draws]
    return [draw.standard_normal(ELEMENTS).astype(np.float32) for draw in draws]


class Reductions:
    """A fabric and what its reductions give, and take, when nothing fails."""

    def __init__(self, fabric: Fabric, tenant: str = "") -> None:
        self.fabric, self._tenant = fabric, tenant
        self._known = 0
        self.undisturbed = {"float32": self.reduced("float32")}
        began_ps = fabric.hosts.now_ps()
        self.undisturbed["int32"] = self.reduced("int32")
        exact = np.add.reduce(inputs("int32", fabric.topology.rank_count), dtype=np.int32)
        np.testing.assert_array_equal(self.undisturbed["int32"], exact)
        *_, last = self.fabric.summary().phases
        self._lead_ps, self._duration_ps = last.start_ps - began_ps, last.end_ps - last.start_ps

    def reduced(self, dtype: str) -> NDArray[np.generic]:
        """Return the sum that all ranks have."""
        run = self.fabric.run(
            CollectiveRequest(
                "allreduce", inputs(dtype, self.fabric.topology.rank_count), "in-network", tenant=self._tenant
            )
        )
        assert run.result.ok
        assert len({buffer.tobytes() for buffer in run.buffers}) == 1
        return run.buffers[0]

    def fail(self, link: tuple[str, str], when: str, down_ps: int | None, after_ps: int = 0) -> None:
        """Have a link fail so far into the next reduction, for some time."""
        at_ps = self._lead_ps + int(WHENS[when] * self._duration_ps) + after_ps
        self.fabric.schedule_link(*link, "down", at_ps)
        if down_ps is not None:
            self.fabric.schedule_link(*link, "up", at_ps + down_ps)

    def root(self, plane: int = 0) -> str:
        """Return the switch at the top of the job's tree."""
        (job,) = self.fabric.lab.controller.jobs
        return next(each.tree.root.switch for each in job.trees if each.tree.plane == plane)

    def check(self, dtype: str) -> list[LinkEventResult]:
        """Reduce with what has been scheduled; returns the events that reductions went on after."""
        np.testing.assert_array_equal(self.reduced(dtype), self.undisturbed[dtype])
        return self.resumed()

    def resumed(self) -> list[LinkEventResult]:
        """Return the events since the last call that reductions went on after."""
        events = self.fabric.lab.link_events.results[self._known :]
        self._known += len(events)
        return [each for each in events if each.resumed_ps is not None]

    def mend(self) -> None:
        """Wait until all links are up, and routes have them."""
        lab = self.fabric.lab
        while lab.controller.failures.links or lab.operations.lost_planes:
            lab.controller.call(asyncio.sleep(1e-3))


@pytest.fixture(scope="module")
def one_plane() -> Iterator[Reductions]:
    fabric = topologies.leaf_spine(
        planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
    )
    with Fabric(fabric, clock="virtual", control=CONTROL) as made:
        yield Reductions(made)
        made.summary()  # raises what has gone wrong, and where packets are missing


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("when", WHENS)
def test_an_uplink_fails(one_plane: Reductions, when: str, dtype: str) -> None:
    root = one_plane.root()
    one_plane.fail(("p0l0", root), when, 500 * US)
    (event,) = one_plane.check(dtype)
    assert event.resumed_ps - event.happened_ps == NOTICED_PS
    assert event.rebuilt_jobs == [1]
    assert event.repeated_messages > 0
    assert one_plane.root() != root
    one_plane.mend()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("when", WHENS)
def test_a_spine_fails(one_plane: Reductions, when: str, dtype: str) -> None:
    root = one_plane.root()
    for leaf in ("p0l0", "p0l1"):
        one_plane.fail((leaf, root), when, 500 * US)
    first, *_ = one_plane.check(dtype)
    assert first.resumed_ps - first.happened_ps >= NOTICED_PS
    assert one_plane.root() != root
    one_plane.mend()


@pytest.mark.parametrize("when", WHENS)
def test_a_link_that_flaps_costs_one_new_epoch(one_plane: Reductions, when: str) -> None:
    root = one_plane.root()
    epoch = one_plane.fabric.lab.controller.job_epoch(1)
    for number in range(4):
        one_plane.fail(("p0l0", root), when, 3 * US, after_ps=6 * number * US)
    one_plane.check("int32")
    one_plane.mend()
    assert one_plane.fabric.lab.controller.job_epoch(1) == epoch + 1


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("when", WHENS)
def test_a_leaf_without_links_for_a_while(one_plane: Reductions, when: str, dtype: str) -> None:
    """There is no tree until it has a link again; the reduction waits, and goes on."""
    peers = ["h2", "h3", "p0s0", "p0s1"]
    for peer in peers:
        one_plane.fail((peer, "p0l1") if peer.startswith("h") else ("p0l1", peer), when, 300 * US)
    events = one_plane.check(dtype)
    assert {event.state for event in events} >= {"down"}
    one_plane.mend()


@pytest.mark.parametrize("when", WHENS)
def test_a_worker_that_dies_ends_the_run_with_its_name(one_plane: Reductions, when: str) -> None:
    one_plane.fail(("h3", "p0l1"), when, None)
    with refused(CheckFailedError, problem="nothing joins h3 to the other"):
        one_plane.check("int32")
    event = one_plane.fabric.lab.link_events.results[-1]
    assert one_plane.fabric.hosts.now_ps() - event.happened_ps <= NOTICED_PS
    one_plane.fabric.schedule_link("h3", "p0l1", "up", 0)
    one_plane.mend()
    one_plane.check("int32")


@pytest.fixture(scope="module")
def two_planes() -> Iterator[Reductions]:
    fabric = topologies.leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
    )
    with Fabric(fabric, clock="virtual", control=CONTROL) as made:
        yield Reductions(made)
        made.summary()  # raises what has gone wrong, and where packets are missing


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("when", WHENS)
def test_the_stream_of_a_lost_plane_goes_on_in_the_other_one(two_planes: Reductions, when: str, dtype: str) -> None:
    two_planes.fail(("p1l0", "p1s0"), when, 500 * US)
    events = two_planes.check(dtype)
    assert [event.link for event in events] == ["p1l0<->p1s0"]
    assert [job.planes for job in two_planes.fabric.lab.controller.jobs] == [(0,), (0,)]
    two_planes.mend()
    two_planes.check(dtype)
    assert [job.planes for job in two_planes.fabric.lab.controller.jobs] == [(0, 1)]


@pytest.mark.parametrize(("planes", "lost", "share"), [(2, 1, 0.3), (3, 1, 0.3), (3, 2, 0.2)])
def test_the_streams_of_a_plane_share_a_promise(planes: int, lost: int, share: float) -> None:
    """Of a link, the jobs of a tenant have no more together than before."""
    topology = topologies.leaf_spine(
        planes=planes, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=100 * 10**9, delay_ps=US
    )
    tenants = {"blue": TenantSection(bandwidth=0.6)}
    with Fabric(topology, clock="virtual", control=CONTROL, tenants=tenants) as fabric:
        reductions = Reductions(fabric, "blue")
        for plane in range(lost):
            reductions.fail((f"p{plane}l0", f"p{plane}s0"), "in the middle", 500 * US)
        assert reductions.check("int32")
        jobs = fabric.lab.controller.jobs
        assert [job.tenant for job in jobs] == ["blue"] * (1 + lost)
        assert [job.share for job in jobs] == pytest.approx([share] * (1 + lost))
        reductions.mend()
        reductions.check("int32")
        (job,) = fabric.lab.controller.jobs
        assert (job.planes, job.share) == (tuple(range(planes)), 0.6)
        fabric.summary()


@pytest.fixture(scope="module")
def full_switches() -> Iterator[Reductions]:
    """Two planes whose switches have no slots for more than one job."""
    fabric = topologies.leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
    )
    with Fabric(fabric, clock="virtual", control=CONTROL, slots=4096) as made:
        yield Reductions(made)
        made.summary()  # raises what has gone wrong, and where packets are missing


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("when", WHENS)
def test_the_ring_takes_over_where_there_is_no_tree(full_switches: Reductions, when: str, dtype: str) -> None:
    full_switches.fail(("p1l0", "p1s0"), when, 5000 * US)
    (event,) = full_switches.check(dtype)
    assert list(event.lost_jobs) == [1]
    assert not full_switches.fabric.lab.controller.jobs
    full_switches.mend()
    full_switches.check(dtype)
    assert full_switches.fabric.lab.controller.jobs


@pytest.mark.parametrize(
    ("dtype", "operation"),
    [
        (DataType.INT16, "sum"),
        (DataType.INT8, "xor"),
        (DataType.FLOAT16, "max"),
        (DataType.BFLOAT16, "average"),
    ],
)
def test_the_ring_takes_over_packed_elements(full_switches: Reductions, dtype: DataType, operation: str) -> None:
    ranks = full_switches.fabric.topology.rank_count
    buffers = [random_elements(np.random.default_rng(rank), dtype, 2 * ELEMENTS) for rank in range(ranks)]
    full_switches.fail(("p1l0", "p1s0"), "early", 5000 * US)
    run = full_switches.fabric.run(CollectiveRequest("allreduce", buffers, "in-network", operation=operation))
    assert run.result.ok
    assert run.result.wrong == 0
    (event,) = full_switches.resumed()
    assert list(event.lost_jobs) == [1]
    full_switches.mend()


@pytest.mark.parametrize("name", ["reduce", "broadcast", "reducescatter", "allgather"])
def test_every_collective_goes_on(one_plane: Reductions, name: str) -> None:
    """Results go to some workers alone, and workers have other numbers in the other tree."""
    found = COLLECTIVE_KINDS[name]
    ranks = one_plane.fabric.topology.rank_count
    parts = [each[: found.input_elements(ELEMENTS, ranks)] for each in inputs("int32", ranks)]
    root = one_plane.root()
    one_plane.fail(("p0l0", root), "in the middle", 500 * US)
    run = one_plane.fabric.run(CollectiveRequest(name, parts, "in-network"))
    assert run.result.ok
    (event,) = one_plane.resumed()
    assert event.rebuilt_jobs == [1]
    one_plane.mend()


@pytest.mark.parametrize("name", ["one_plane", "two_planes", "full_switches"])
def test_the_reductions_of_a_training_step_go_on(name: str, request: pytest.FixtureRequest) -> None:
    """Buckets that are ready after the failure take the other tree, or the ring, too."""
    reductions: Reductions = request.getfixturevalue(name)
    layers = [Layer(ELEMENTS // 8, forward_ps=10 * US, backward_ps=20 * US)] * 8
    step = TrainingStep(tuple(layers), bucket_bytes=ELEMENTS)
    ranks = reductions.fabric.topology.rank_count
    link = ("p1l0", "p1s0") if name != "one_plane" else ("p0l0", reductions.root())
    reductions.fail(link, "in the middle", 50_000 * US, after_ps=100 * US)
    assert reductions.fabric.training_step(step, "in-network", inputs("float32", ranks)).ok
    assert reductions.resumed()
    reductions.mend()
    reductions.check("float32")


@pytest.fixture(scope="module")
def full_of_groups() -> Iterator[Fabric]:
    """Two planes whose switches have slots for two jobs: of two groups, or of two streams of one in the same plane."""
    fabric = topologies.leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=100 * 10**9, delay_ps=US
    )
    scheduling = {"classes": [2, 3]}
    with Fabric(fabric, clock="virtual", control=CONTROL, slots=2048, scheduling=scheduling) as made:
        yield made
        made.summary()  # raises what has gone wrong, and where packets are missing


def two_groups(dtype: str, data_class: int) -> Job:
    """Two all-reduces, one after the other, in each of two groups that cross leaves; none is in order of its ranks."""
    builder = OperationsBuilder()
    first = builder.collective(0, 0)
    builder.collective(0, 1, after=[first])
    operations = builder.build()
    groups = (Group("three", (4, 0, 2)), Group("four", (1, 7, 3, 5)))
    numbers = {rank: number for number, group in enumerate(groups) for rank in group.ranks}
    idle = RankPart(OperationsBuilder().build())
    parts = [RankPart(operations, (), (numbers[rank],)) if rank in numbers else idle for rank in range(8)]
    sizes = (4 * ELEMENTS, ELEMENTS)
    calls = tuple(CollectiveCall("allreduce", size, "in-network", DataType(dtype)) for size in sizes)
    return Job("groups", tuple(parts), groups, calls, {"allreduce": data_class})


@pytest.mark.parametrize(("dtype", "data_class"), [("int32", 3), ("float32", 2)])
@pytest.mark.parametrize("when", ["early", "in the middle"])
def test_a_ring_takes_over_from_the_trees_of_a_group(
    full_of_groups: Fabric, when: str, dtype: str, data_class: int
) -> None:
    """One group gets the other plane's trees, the other its ring, from the message that it has reached."""
    fabric, job = full_of_groups, two_groups(dtype, data_class)
    known = len(fabric.lab.link_events.results)
    (undisturbed,) = fabric.run_jobs([PlacedJob(job, data="random")])
    assert undisturbed.verdict.wrong == 0
    fabric.schedule_link("p1l0", "p1s0", "down", int(WHENS[when] * undisturbed.duration_ps) + 5 * US)
    (ran,) = fabric.run_jobs([PlacedJob(job, data="random")])
    assert (ran.verdict.wrong, ran.verdict.identical) == (0, True)
    event, *_ = fabric.lab.link_events.results[known:]
    assert sorted(event.lost_jobs) == [1, 2]
    assert event.resumed_ps is not None
    assert len({each.hosts for each in fabric.lab.controller.jobs}) == 1
    assert ran.duration_ps > undisturbed.duration_ps
    fabric.schedule_link("p1l0", "p1s0", "up", 0)
    while fabric.lab.controller.failures.links or fabric.lab.operations.lost_planes:
        fabric.lab.controller.call(asyncio.sleep(1e-3))
