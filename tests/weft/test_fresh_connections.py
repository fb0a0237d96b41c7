"""Runs of a fabric do not depend on what ran before, unless connections are kept; repetitions and warm-up."""

import dataclasses
import json

import numpy as np
import pytest

from tests.refusals import refused
from weft import topologies
from weft.errors import BadInputError
from weft.results.packet_conservation import Count
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

KIB, MIB = 1 << 10, 1 << 20
TOPOLOGY = topologies.leaf_spine(
    planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=10**11, queue_capacity_bytes=200_000
)
ITEMS = {
    "collective": lambda fabric: fabric.run(CollectiveRequest("alltoall", 256 * KIB, "direct")).result,
    "incast": lambda fabric: fabric.incast("h0", 256 * KIB),
    "in-network": lambda fabric: fabric.run(CollectiveRequest("allreduce", 64 * KIB, "in-network")).result,
    "workload": lambda fabric: fabric.workload("alibaba_storage", 0.5, 200_000_000),
    "permutation": lambda fabric: fabric.permutation(256 * KIB),
}
TRANSPORTS = {
    "hpcc": {"transport": {"congestion_control": "hpcc"}},
    "dcqcn": {
        "transport": {"congestion_control": "dcqcn"},
        "ecn": {"kmin": 5000, "kmax": 200_000, "pmax": 0.5},
    },
    "lossy-go-back-n": {"faults": {"loss": 0.002, "duplicate": 0.01}},
    "spraying-swift": {
        "transport": {"congestion_control": "swift", "path": "spray", "retransmission": "selective-repeat"},
        "faults": {"bit_error_rate": 1e-8},
    },
    "pfc": {"buffer": {"capacity": "1MiB"}, "pfc": {"classes": [3], "xoff": "20KB"}},
}


def options(name):
    scenario = parse_scenario(TRANSPORTS[name])
    return {key: getattr(scenario, key) for key in TRANSPORTS[name]}


def figures(result):
    """A result's figures without its place in the traffic."""
    if isinstance(result, tuple):
        return result
    plain = dataclasses.asdict(result)
    records = {name: column.tolist() for name, column in plain.pop("records", {}).items()}
    return plain, records


def runs(names, **given):
    with Fabric(TOPOLOGY, clock="virtual", seed=3, **given) as fabric:
        return [(name, figures(ITEMS[name](fabric))) for name in names], fabric.summary()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_item_gives_the_same_figures_wherever_it_stands(transport):
    there = [*ITEMS]
    forward, summary = runs(there, **options(transport))
    backward, _ = runs([*reversed(there), "collective", "incast"], **options(transport))
    found = dict(forward)
    for name, result in backward:
        assert result == found[name], name
    assert summary.packet_conservation.missing == Count(0, 0)


def test_kept_connections_have_learnt():
    """The preceding incast has left HPCC's senders with small windows."""
    scenario = {
        "clock": "virtual",
        "seed": 2,  # by whose hashes the flows of the incast share links with the slowest ones
        "fabric": {"planes": 1, "leaves": 4, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gbps"},
        "traffic": [
            {"collective": "alltoall", "algorithms": ["direct"], "data": "lengths", "sizes": ["256KiB"]},
            {"incast": "h0", "bytes_per_sender": "1MiB"},
            {"collective": "alltoall", "algorithms": ["direct"], "data": "lengths", "sizes": ["256KiB"]},
        ],
    }

    def times_ps(connections):
        transport = {"congestion_control": "hpcc", "connections": connections}
        return [each.time_ps for each in run_scenario(parse_scenario(scenario | {"transport": transport})).collectives]

    first, later = times_ps("fresh")
    assert first == later
    kept_first, kept_later = times_ps("kept")
    assert kept_first == first != kept_later


def test_totals_have_what_connections_counted_that_are_gone():
    given = options("lossy-go-back-n")
    found, summary = runs(["incast", "collective", "workload", "permutation"], **given)
    each = [plain["retransmissions"] for _, (plain, _) in found]
    assert all(count > 0 for count in each)
    assert summary.retransmissions == sum(each)


def test_repetitions_have_a_mean_a_least_and_a_largest_time():
    buffers = [np.full(5000, rank, np.int32) for rank in range(4)]
    with Fabric(TOPOLOGY, clock="virtual", seed=3, **options("lossy-go-back-n")) as fabric:
        once = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).result
        run = fabric.run(CollectiveRequest("allreduce", buffers, "ring", repetitions=5, warmup=2))
        phases = [phase.name for phase in fabric.phases]
        assert len({phase.run for phase in fabric.phases}) == 8
        summary = fabric.summary()
    result = run.result
    assert len(result.times_ps) == 5
    assert result.times_ps[0] == once.time_ps
    assert len(set(result.times_ps)) > 1
    assert result.least_time_ps == min(result.times_ps) < result.time_ps < max(result.times_ps)
    assert result.time_ps == round(sum(result.times_ps) / 5)
    assert (result.wrong, result.identical, result.verified) == (0, True, True)
    assert all(np.array_equal(buffer, np.full(5000, 6, np.int32)) for buffer in run.buffers)
    assert phases[1:] == [f"{phases[0]}, warm-up {number} of 2" for number in (1, 2)] + [
        f"{phases[0]}, repetition {number} of 5" for number in (1, 2, 3, 4, 5)
    ]
    plain = json.loads(json.dumps(summary.as_dict()))["collectives"][1]
    assert plain["times_ps"] == list(result.times_ps)
    assert (plain["least_time_ps"], plain["largest_time_ps"]) == (min(result.times_ps), max(result.times_ps))
    assert plain["warmup"] == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"repetitions": 0}, {"place": "repetitions", "valid": "1 to 1000"}),
        ({"warmup": -1}, {"place": "warmup", "valid": "0 to 1000"}),
        ({"repetitions": 1001}, {"place": "repetitions", "valid": "1 to 1000"}),
    ],
)
def test_numbers_of_repetitions_out_of_range_are_refused(given, message):
    with Fabric(TOPOLOGY, clock="virtual") as fabric, refused(BadInputError, **message):
        fabric.run(CollectiveRequest("allreduce", 64 * KIB, **given))


def test_connections_that_are_gone_are_freed():
    """A thousand runs do not leave a thousand times the connections."""
    with Fabric(TOPOLOGY, clock="virtual") as fabric:
        for _ in range(3):
            fabric.permutation(64 * KIB)
        assert all(len(host["connections"]) <= 2 for host in fabric.hosts.stats())
