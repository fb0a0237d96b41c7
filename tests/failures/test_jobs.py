"""Jobs while links and hosts fail: over other planes, or again with a spare, with right results."""

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.run.jobs import JobRun
from weft.scenario import ControlSection, EventSection
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart

US = 10**6
RANKS = 4


def exchanging_job() -> Job:
    """Return a job whose ranks pass a message around beside all-reduces of all and of pairs, twice."""
    builder = OperationsBuilder()
    after: list[int] = []
    for tag in range(2):
        sent = builder.send(0, 300_000, tag, after=after)
        received = builder.receive(1, 300_000, tag, after=after)
        sums = [builder.collective(group, group, after=after) for group in (0, 1)]
        after = [builder.compute(5 * US, after=[sent, received, *sums])]
    operations = builder.build()
    parts = tuple(
        RankPart(operations, ((rank + 1) % RANKS, (rank - 1) % RANKS), (0, 1 + rank // 2)) for rank in range(RANKS)
    )
    groups = (Group("all", tuple(range(RANKS))), Group("first", (0, 1)), Group("last", (2, 3)))
    calls = tuple(CollectiveCall("allreduce", size, "ring", DataType.INT32) for size in (200_000, 90_000))
    return Job("exchanges", parts, groups, calls)


def run(events: list[EventSection] | None = None, spares: int = 0, workers: int = 1) -> list[JobRun]:
    """Run the job twice."""
    network = topologies.leaf_spine(planes=3, leaves=2, spines=1, hosts_per_leaf=(RANKS + spares) // 2)
    with Fabric(
        topologies.with_spares(network, spares) if spares else network,
        clock="virtual",
        workers=workers,
        events=events or [],
        control=ControlSection(latency=2 * US, detection=US),
    ) as fabric:
        runs = [fabric.run_job(exchanging_job(), data="random") for _ in range(2)]
        fabric.packet_conservation()
    assert all(each.verdict is not None and each.verdict.ok for each in runs)
    return runs


@pytest.fixture(scope="module")
def undisturbed() -> JobRun:
    return run()[0]


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7])
def test_a_job_goes_on_over_the_other_planes(undisturbed: JobRun, share: float) -> None:
    at_ps = undisturbed.started_ps + int(undisturbed.duration_ps * share)
    found, after = run([EventSection(plane=1, state="down", at=at_ps)])
    assert undisturbed.duration_ps < found.duration_ps < 2 * undisturbed.duration_ps
    assert undisturbed.duration_ps < after.duration_ps


def test_a_job_whose_host_dies_runs_again_with_a_spare() -> None:
    whole = run(spares=2)[0]
    at_ps = whole.started_ps + whole.duration_ps // 2
    found, after = run([EventSection(host="h1", state="down", at=at_ps)], spares=2)
    assert found.started_ps > whole.started_ps
    assert after.started_ps > found.started_ps


def test_workers_change_nothing(undisturbed: JobRun) -> None:
    found = run(workers=2)[0]
    assert found.duration_ps == undisturbed.duration_ps
    for one, other in zip(found.times, undisturbed.times, strict=True):
        assert np.array_equal(one.started_ps, other.started_ps)
        assert np.array_equal(one.finished_ps, other.finished_ps)
