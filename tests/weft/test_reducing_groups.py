"""Reductions in the network by groups of ranks, several at once: each has its own job, trees and slots."""

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric
from weft.errors import BadInputError
from weft.results.collectives import COLLECTIVES
from weft.run.collectives import CollectiveRequest
from weft.run.jobs import PlacedJob
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies import leaf_spine
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, JobError, OperationsBuilder, RankPart

TOPOLOGY = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 4}


def reduction(*ranks, size=65536, **keys):
    return {
        "collective": "allreduce",
        "algorithms": ["in-network"],
        "sizes": [size],
        "ranks": list(ranks),
        **keys,
    }


def run(*traffic):
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": TOPOLOGY, "traffic": list(traffic)}))


def test_groups_of_any_ranks_reduce_at_the_same_time():
    """Groups that share hosts, leaves and spines with each other, in float32 and int32, beside one of all ranks."""
    everybody = {"collective": "allreduce", "algorithms": ["in-network"], "sizes": [40000]}
    result = run(
        {
            "together": [
                reduction(5, 0, 3),
                reduction(3, 4, dtype="int32", operation="max"),
                reduction(6, 7, at="3us"),
                reduction(6, 5, 4, 3, 2, 1, 7),
                reduction(2, size=4096),
                everybody,
            ]
        }
    )
    found = result.of(COLLECTIVES)
    assert [each.ranks for each in found] == [3, 2, 2, 7, 1, 8]
    assert all(each.verified and each.wrong == 0 for each in found)
    assert result.ok


def test_results_come_in_the_order_of_the_ranks_and_jobs_are_used_again():
    with Fabric(leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        controller = fabric.lab.controller
        inputs = [np.full(100, 10**rank, np.int32) for rank in range(2)]
        for _ in range(2):
            run_ = fabric.run(CollectiveRequest("allreduce", inputs, "in-network", ranks=[3, 1]))
            assert [each.tolist() for each in run_.buffers] == [[11] * 100] * 2
        (job,) = controller.jobs
        assert (job.hosts, job.epoch) == (("h3", "h1"), 1)
        fabric.run(CollectiveRequest("allgather", inputs, "ring", ranks=[1, 2]))
        assert controller.jobs == (job,)
        assert fabric.run(CollectiveRequest("allreduce", [inputs[0]] * 4, "in-network")).result.ok
        assert [each.hosts for each in controller.jobs] == [("h0", "h1", "h2", "h3")]


def test_items_beside_each_other_need_slots_for_all():
    items = {"together": [reduction(0, 1, 2), reduction(3, 4, 5)]}
    with refused(
        BadInputError,
        valid="at most 1096, the largest free range of 4096; taken: 3000 by job 1",
        problem="job 2 wants 3000 aggregation",
    ):
        run_scenario(parse_scenario({"clock": "virtual", "fabric": TOPOLOGY, "slots": 3000, "traffic": [items]}))


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (reduction(0, 1, 1), r"traffic\[0\].ranks: 3 ranks, 2 distinct"),
        (reduction(0, 8), r"traffic\[0\].ranks: rank 8 .valid: 0 to 7"),
        (reduction(0, 1) | {"algorithms": None}, r"traffic\[0\].algorithms: with ranks"),
        (
            reduction(0, 1) | {"collective": "broadcast", "algorithms": ["ring"], "root": 2},
            "traffic.0..root: 2",
        ),
        (reduction(0, 1, 2) | {"algorithms": ["hierarchical"]}, "traffic.0..algorithms.0.: hosts of 1 rank"),
    ],
)
def test_groups_that_cannot_be_are_refused(item, what):
    with pytest.raises(BadInputError, match=what):
        run(item)


def two_reductions(*, in_order):
    builder = OperationsBuilder()
    first = builder.collective(0, 0)
    builder.collective(0, 0, after=[first] if in_order else [])
    part = RankPart(builder.build(), (), (0,))
    call = CollectiveCall("allreduce", 8192, "in-network", DataType.INT32)
    return Job("two", (part, part, part), (Group("three", (2, 0, 1)),), (call,))


def test_groups_of_jobs_reduce_in_the_network_in_one_order():
    with Fabric(leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2), clock="virtual") as fabric:
        job = two_reductions(in_order=True)
        for data in ("random", "lengths"):
            runs = fabric.run_jobs([PlacedJob(job, (3, 0, 1), data=data), PlacedJob(job, (0, 1, 2), data=data)])
            for each in runs:
                assert all((times.finished_ps > 0).all() for times in each.times)
                assert data == "lengths" or (each.verdict.wrong, each.verdict.identical) == (0, True)
        hosts = [each.hosts for each in fabric.lab.controller.jobs]
        assert hosts == [("h1", "h3", "h0"), ("h2", "h0", "h1")]
        with refused(
            (JobError, BadInputError),
            valid="each depends on the one before",
            problem="operations 0 and 1, which may",
        ):
            fabric.run_job(two_reductions(in_order=False), (0, 1, 2))


TENANTS = {
    "blue": {"hosts": ["h0", "h1", "h4"], "slots": 512, "bandwidth": 0.5},
    "red": {"slots": 256, "bandwidth": 0.25},
}


def test_items_of_tenants_have_their_quotas():
    items = [
        reduction(0, 4, tenant="blue"),
        reduction(1, 4, tenant="blue"),
        reduction(2, 3, 5, tenant="red"),
        {"collective": "allreduce", "algorithms": ["in-network"], "sizes": [4096]},
    ]
    scenario = {"clock": "virtual", "fabric": TOPOLOGY, "slots": 128, "tenants": TENANTS}
    run_ = run_scenario(parse_scenario(scenario | {"traffic": [{"together": items}]}))
    assert run_.ok
    assert [each.wrong for each in run_.of(COLLECTIVES)] == [0, 0, 0, 0]
    with refused(BadInputError, valid="h0, h1, h4", problem="job 1 of blue: host h2 is not"):
        run_scenario(parse_scenario(scenario | {"traffic": [reduction(0, 2, tenant="blue")]}))
    red = [reduction(rank, 7, tenant="red") for rank in (0, 1, 2)]
    with refused(
        BadInputError,
        valid="at most 0, the largest free range of 256; taken: 128 by job 1, 128 by job 2",
        problem="job 3 wants 128",
    ):
        run_scenario(parse_scenario(scenario | {"traffic": [{"together": red}]}))


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"tenants": {"blue": {"hosts": ["h9"]}}}, r"tenants.blue.hosts\[0\]: no host 'h9'"),
        ({"tenants": {"blue": {"hosts": ["h1", "h1"]}}}, r"tenants.blue.hosts\[1\]: h1 twice"),
        ({"tenants": {"Blue": {}}}, "Blue"),
        (
            {"tenants": {"blue": {"slots": 3000}, "red": {"slots": 2000}}},
            "tenants: .* 5000 slots at each switch",
        ),
        (
            {"tenants": {"blue": {"bandwidth": 0.8}, "red": {"bandwidth": 0.3}}},
            "tenants: .* 1.1 of each link",
        ),
        ({"tenants": {"blue": {"bandwidth": 0}}}, "tenants.blue.bandwidth"),
        (
            {"tenants": {"blue": {"bandwidth": 1e-9}}},
            "tenants.blue.bandwidth: 1e-09 of links of .* is too little",
        ),
        (
            {"tenants": TENANTS, "traffic": [reduction(0, 1, tenant="blu")]},
            "no tenant 'blu'; did you mean 'blue'",
        ),
        (
            {
                "traffic": [{"together": [reduction(0, 1) | {"algorithms": ["ring"], "tenant": "red"}]}],
                "tenants": TENANTS,
            },
            r"traffic\[0\].together\[0\].tenant: red has quotas of reductions in the network, and this item has none",
        ),
    ],
)
def test_tenants_that_cannot_be_are_refused(keys, what):
    with pytest.raises(BadInputError, match=what):
        run_scenario(parse_scenario({"clock": "virtual", "fabric": TOPOLOGY, "traffic": [reduction(0, 1)]} | keys))


def test_arrays_that_do_not_divide_among_a_group_are_refused():
    with Fabric(leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        inputs = [np.ones(1000, np.int32)] * 3
        for algorithm in ("ring", "in-network"):
            with refused(BadInputError, place="reducescatter", valid="a multiple of 3"):
                fabric.run(CollectiveRequest("reducescatter", inputs, algorithm, ranks=[0, 2, 3]))
            assert fabric.run(CollectiveRequest("allgather", inputs, algorithm, ranks=[0, 2, 3])).result.ok
