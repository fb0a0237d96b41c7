"""Algorithms that NCCL would choose, on fabrics: what runs is what was chosen, and results say so."""

import json

import pytest

from weft import BadInputError, Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.nccl import cluster_of
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.topology import build_topology
from weft.traffic.nccl import NcclSettings

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}
HOSTS = {**FABRIC, "ranks_per_host": 2}


def run(*traffic, fabric=FABRIC, **keys):
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": list(traffic), **keys}))


def item(collective="allreduce", **keys):
    return {"collective": collective, "algorithms": ["nccl"], **keys}


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "broadcast", "reduce"])
@pytest.mark.parametrize("fabric", [FABRIC, HOSTS], ids=["lone ranks", "hosts"])
def test_what_nccl_chooses_runs_in_its_protocol_and_is_right(collective, fabric):
    sizes = ["4KiB", "1MiB"]
    found = run(item(collective, sizes=sizes), fabric=fabric).collectives
    assert [each.algorithm for each in found] == ["nccl", "nccl"]
    for each in found:
        assert each.ok
        assert each.verified
        assert each.nccl.protocol == each.protocol
        named = run(
            {
                "collective": collective,
                "algorithms": [each.nccl.algorithm],
                "protocol": each.protocol,
                "sizes": [each.size_bytes],
            },
            fabric=fabric,
        ).collectives[0]
        assert each.time_ps == named.time_ps
        assert named.nccl is None
        assert f"Algo {each.nccl.algorithm.upper()} proto {each.protocol.upper()} channel{{Lo..Hi}}" in each.nccl.log
    small, large = found
    assert small.nccl.predicted_ps < large.nccl.predicted_ps


def test_the_log_counts_bytes_as_nccl_does():
    reduced, gathered = run(item(sizes=["1MiB"]), item("allgather", sizes=["1MiB"])).collectives
    assert reduced.nccl.log.startswith("AllReduce: 1048576 Bytes -> Algo ")
    assert gathered.nccl.log.startswith("AllGather: 262144 Bytes -> Algo ")


def test_results_have_the_choice(tmp_path):
    result = run(item(sizes=["64KiB"]))
    (written,) = json.loads(json.dumps(result.as_dict()))["collectives"]
    (found,) = result.collectives
    assert written["algorithm"] == "nccl"
    assert written["nccl"] == {
        "algorithm": found.nccl.algorithm,
        "protocol": found.nccl.protocol,
        "channels": found.nccl.channels,
        "predicted_ps": found.nccl.predicted_ps,
        "log": found.nccl.log,
        "version": "2.30.7",
    }
    assert "choice" not in written


def test_a_protocol_is_the_only_one_to_choose_from():
    for protocol in ("ll", "ll128", "simple"):
        (found,) = run(item(sizes=["64KiB"], protocol=protocol)).collectives
        assert found.protocol == found.nccl.protocol == protocol
        assert found.ok


def test_the_switches_of_a_scale_up_domain_reduce_where_nccl_takes_nvls():
    fabric = {"kind": "scale_up", "system": "dgx-h100"}
    small, large = run(item(sizes=["1KiB", "8MiB"], data="lengths"), fabric=fabric).collectives
    assert small.nccl.algorithm == "ring"
    assert large.nccl.algorithm == "nvls"
    assert large.packets_aggregated > 0
    assert large.protocol == ""


def test_some_ranks_are_a_cluster_of_their_own():
    (found,) = run(item(sizes=["64KiB"], ranks=[0, 1, 5]), fabric=HOSTS).collectives
    assert found.ok
    assert found.ranks == 3
    topology = build_topology(parse_scenario({"fabric": HOSTS}).fabric)
    cluster = cluster_of(topology, NcclSettings(), [0, 1, 5])
    assert (cluster.ranks, cluster.nodes, cluster.nic_rates_bps) == (3, 2, (100 * 10**9,))
    whole = cluster_of(topology, NcclSettings())
    assert (whole.ranks, whole.nodes, whole.nic_rates_bps) == (8, 4, (100 * 10**9,) * 2)


def test_from_python_and_together():
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        run_of_it = fabric.run(CollectiveRequest("allreduce", 65536, "nccl"))
    assert run_of_it.result.nccl.algorithm in ("ring", "tree")
    found = run({"together": [item(sizes=["64KiB"]), item("broadcast", sizes=["64KiB"])]}).collectives
    assert all(each.ok for each in found)


def test_the_section_changes_the_choice():
    (intel,) = run(item(sizes=["64KiB"], protocol="ll")).collectives
    channels = {"channels": 16, "channel_rate": "360Gb/s"}
    (more,) = run(item(sizes=["64KiB"], protocol="ll"), nccl={"accelerator": "blackwell", **channels}).collectives
    assert more.nccl.predicted_ps < intel.nccl.predicted_ps


@pytest.mark.parametrize(
    ("keys", "more", "place", "problem", "valid"),
    [
        ({"collective": "alltoall"}, {}, "traffic[0].algorithms", "nccl has one way for alltoall", "direct"),
        (
            {"collective": "barrier"},
            {},
            "traffic[0].algorithms",
            "nccl does not choose for barrier",
            "it does for allreduce, allgather, reducescatter, broadcast, reduce",
        ),
        (
            {"operation": "and", "dtype": "int32"},
            {},
            "traffic[0].algorithms",
            "NCCL has no and of int32",
            "sum, average, max, min; all types but int16",
        ),
        ({}, {"nccl": {"channels": 4}}, "nccl.channel_rate", "missing, with channels", "both of them, or neither"),
    ],
)
def test_what_nccl_cannot_choose_is_refused(keys, more, place, problem, valid):
    with pytest.raises(BadInputError) as error:
        run(item(**{"collective": "allreduce", **keys}), **more)
    assert f"scenario: {place}" in str(error.value)
    assert problem in str(error.value)
    assert valid in str(error.value)


def test_training_steps_name_their_algorithms():
    step = {"training_step": "data-parallel", "layers": [{"gradients": "4KiB"}], "algorithms": ["nccl"]}
    with pytest.raises(BadInputError, match="unknown algorithm 'nccl'"):
        run(step)
