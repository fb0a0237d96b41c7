"""What observations record of a job names its operations, also for the messages of collectives."""

from collections import Counter

from weft import Fabric, topologies
from weft.scenario import ObserveSection
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart


def test_messages_and_steps_are_recorded_by_operation():
    builder = OperationsBuilder()
    computed = builder.compute(1000)
    builder.send(0, 5000, after=[computed])
    builder.receive(0, 5000)
    builder.collective(0, 0, after=[computed])
    operations = builder.build()
    job = Job(
        "recorded",
        tuple(RankPart(operations, (1 - rank,), (0,)) for rank in range(2)),
        (Group("both", (0, 1)),),
        (CollectiveCall("allreduce", 8000),),
    )
    spec = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(spec, clock="virtual", observe=ObserveSection(flows=True, timelines=True)) as fabric:
        fabric.run_job(job)
        tables = fabric.observations().tables
        (phase,) = fabric.summary().phases
    flows, steps = tables["flows"], tables["timeline"]
    sizes = Counter(zip(flows["step"].tolist(), flows["size_bytes"].tolist(), strict=True))
    assert sizes == {(1, 5000): 2, (3, 4000): 4}
    assert set(flows["run"].tolist()) == set(steps["run"].tolist()) == {phase.run}
    kinds = Counter(zip(steps["step"].tolist(), steps["kind"].texts(), strict=True))
    assert kinds == {(0, "delay"): 2, (1, "write"): 2, (2, "wait"): 2, (3, "write"): 4, (3, "wait"): 4}
