"""Collectives over fabrics in virtual time: right results of every algorithm, and the times that bound them."""

import subprocess
import sys

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies import serialisation_ps
from weft.topologies.round_trips import path_round_trip_ps
from weft.traffic.collectives import COLLECTIVE_KINDS

ETHERNET, IPV4, UDP, BTH, AETH, ICRC, INT_SHIM = 14, 20, 8, 12, 4, 4, 46
MTU_BYTES = 1024
SMALL = {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}


def four_hosts(**arguments):
    return topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, **arguments)


def scenario(traffic, **more):
    return parse_scenario({"clock": "virtual", "fabric": SMALL, "traffic": [traffic]} | more)


def sized(collective, size):
    return {"collective": collective} | ({} if collective == "barrier" else {"sizes": [size]})


def algorithms_of(collective):
    """Algorithms for hosts of one rank on a fabric that is no scale-up domain."""
    known = COLLECTIVE_KINDS[collective].algorithms
    return [each.name for each in known if not (each.name.startswith(("hierarchical", "nvls")) or each.general_name)]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("collective", COLLECTIVE_KINDS)
def test_every_collective_gives_what_numpy_gives(collective, dtype):
    traffic = sized(collective, "40KB") | {"dtype": dtype, "root": 3}
    result = run_scenario(scenario(traffic))
    assert [run.algorithm for run in result.collectives] == algorithms_of(collective)
    assert all(run.ok and run.verified for run in result.collectives)
    size_bytes = 4 if collective == "barrier" else 40_000
    assert all(run.size_bytes == size_bytes for run in result.collectives)
    assert {run.root for run in result.collectives} == {3 if COLLECTIVE_KINDS[collective].has_root else None}


@pytest.mark.parametrize("collective", ["allreduce", "reducescatter", "reduce"])
def test_sums_beyond_float32_are_infinite_and_right(collective):
    vectors = [np.array([3e38, -3e38, 5e37, -2e37] * 16, np.float32)] * 4
    with Fabric(four_hosts(), clock="virtual") as fabric:
        for algorithm in algorithms_of(collective):
            run = fabric.run(CollectiveRequest(collective, vectors, algorithm))
            assert run.result.ok
            assert run.buffers[0][:2].tolist() == [np.inf, -np.inf]
            assert np.isfinite(run.buffers[0][2:4]).all()


@pytest.mark.parametrize("operation", ["max", "min"])
def test_maxima_and_minima(operation):
    traffic = {"collective": "allreduce", "operation": operation, "sizes": ["8KiB"]}
    result = run_scenario(scenario(traffic, faults={"loss": 0.01}))
    assert all(run.ok and run.largest_error == 0 for run in result.collectives)


def test_results_come_back_as_numpy_arrays():
    with Fabric(four_hosts(), clock="virtual") as fabric:
        inputs = [np.arange(8, dtype=np.int32).reshape(4, 2) + 100 * rank for rank in range(4)]
        gathered = fabric.run(CollectiveRequest("allgather", inputs, "ring")).buffers
        assert gathered[1].shape == (16, 2)
        np.testing.assert_array_equal(gathered[1], np.concatenate(inputs))
        scattered = fabric.run(CollectiveRequest("reducescatter", inputs, "ring")).buffers
        np.testing.assert_array_equal(scattered[2], np.sum(inputs, axis=0).ravel()[4:6])
        gathered = fabric.run(CollectiveRequest("gather", inputs, "binomial", root=1)).buffers
        assert [each.size for each in gathered] == [0, 32, 0, 0]
        np.testing.assert_array_equal(gathered[1], np.concatenate(inputs))
        scattered = fabric.run(CollectiveRequest("scatter", inputs, "direct", root=3)).buffers
        np.testing.assert_array_equal(np.concatenate(scattered), inputs[3].ravel())
        swapped = fabric.run(CollectiveRequest("alltoall", inputs, "pairwise")).buffers
        np.testing.assert_array_equal(swapped[1], [102 - 100, 3, 102, 103, 202, 203, 302, 303])
        reduced = fabric.run(CollectiveRequest("reduce", inputs, "tree", root=2)).buffers
        assert [each.size for each in reduced] == [0, 0, 8, 0]
        np.testing.assert_array_equal(reduced[2], np.sum(inputs, axis=0))


# --- lengths in place of data


@pytest.mark.parametrize("collective", COLLECTIVE_KINDS)
def test_lengths_take_the_time_that_data_takes(collective):
    times = {}
    for data in ("random", "lengths"):
        traffic = sized(collective, "64KiB") | {"dtype": "int32", "data": data}
        runs = run_scenario(scenario(traffic)).collectives
        assert {run.verified for run in runs} == {data == "random"}
        times[data] = [run.time_ps for run in runs]
    assert times["random"] == times["lengths"]


def test_what_is_not_verified_says_so():
    command = "-m weft collective alltoall --clock virtual --data lengths --sizes 4K --leaves 2 --spines 1"
    done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "not verified" in done.stdout
    assert "N/A" in done.stdout


# --- times


def wire_ps(size_bytes, rate_bps):
    """Return picoseconds on the wire in full frames: of the data alone, and with all acknowledgements."""
    outer = ETHERNET + INT_SHIM + IPV4 + UDP + BTH + ICRC
    packets = -(-size_bytes // MTU_BYTES)
    data = serialisation_ps(packets * (outer + MTU_BYTES), rate_bps)
    return data, data + serialisation_ps(packets * (outer + AETH + 24), rate_bps)


@pytest.mark.parametrize(
    ("collective", "algorithm", "sent_share", "steps"),
    [
        ("allreduce", "halving-doubling", 2 * 3 / 4, 4),
        ("allreduce", "recursive-doubling", 2, 2),
        ("reducescatter", "ring", 3 / 4, 3),
        ("reducescatter", "halving-doubling", 3 / 4, 2),
        ("allgather", "ring", 3 / 4, 3),
        ("allgather", "halving-doubling", 3 / 4, 2),
        ("reducescatter", "pat", 3 / 4, 2),
        ("allgather", "pat", 3 / 4, 2),
        ("alltoall", "pairwise", 3 / 4, 3),
        ("broadcast", "ring", 1, 3),
        ("gather", "direct", 3 / 4, 1),
        ("gather", "binomial", 3 / 4, 2),
        ("scatter", "direct", 3 / 4, 1),
        ("scatter", "binomial", 3 / 4, 2),
        ("reduce", "ring", 1, 3),
    ],
)
def test_times_are_bound_by_bytes_and_steps(collective, algorithm, sent_share, steps):
    """S·share through the busiest link, one ACK per packet, and a round trip per step."""
    topology = four_hosts(fabric_rate_bps=40e9)
    size_bytes = 1 << 20
    rate_bps = topology.hosts[0].nics[0].link.rate_bps
    least_ps, with_acknowledgements_ps = wire_ps(int(size_bytes * sent_share), rate_bps)
    with Fabric(topology, clock="virtual") as fabric:
        time_ps = fabric.run(CollectiveRequest(collective, size_bytes, algorithm)).result.time_ps
        round_trip_ps = path_round_trip_ps(topology, fabric.lab.frame_bytes)
    piece_ps, _ = wire_ps(16384, rate_bps)
    assert least_ps < time_ps < with_acknowledgements_ps + steps * (round_trip_ps + piece_ps)


def test_recursive_doubling_takes_a_message_a_step():
    """Every doubling of the ranks adds one way of a message, all of the same length here; a tree adds two."""
    times, trees = {}, {}
    for leaves in (2, 4, 8):
        topology = topologies.leaf_spine(planes=1, leaves=leaves, spines=1, hosts_per_leaf=1)
        with Fabric(topology, clock="virtual") as fabric:
            times[leaves], trees[leaves] = (
                fabric.run(CollectiveRequest("allreduce", 64, algorithm)).result.time_ps
                for algorithm in ("recursive-doubling", "tree")
            )
    step_ps = times[4] - times[2]
    assert times[8] - times[4] == pytest.approx(step_ps, rel=0.02)
    assert step_ps < times[2] < 2.2 * step_ps  # its one message is acknowledged
    assert trees[8] - trees[4] > 1.5 * step_ps


def test_two_trees_take_the_time_of_twice_the_data():
    """No link carries more than 2S, and pieces fill the pipeline of log2(n) levels up and down."""
    topology = four_hosts(fabric_rate_bps=40e9)
    size_bytes = 1 << 20
    rate_bps = topology.hosts[0].nics[0].link.rate_bps
    with Fabric(topology, clock="virtual") as fabric:
        time_ps = fabric.run(CollectiveRequest("allreduce", size_bytes, "tree")).result.time_ps
        round_trip_ps = path_round_trip_ps(topology, fabric.lab.frame_bytes)
    most_ps = wire_ps(2 * size_bytes, rate_bps)[1]
    piece_ps, _ = wire_ps(16384, rate_bps)
    assert wire_ps(size_bytes, rate_bps)[0] < time_ps < most_ps + 2 * 3 * (round_trip_ps + 2 * piece_ps)


# --- refusals


@pytest.mark.parametrize(
    ("traffic", "words"),
    [
        ({"collective": "all_gather"}, ["collective", "did you mean 'allgather'"]),
        (
            {"collective": "allgather", "algorithms": ["tree"]},
            ["traffic[0]", "allgather has no algorithm 'tree'"],
        ),
        ({"collective": "allreduce", "algorithms": ["hierarchical"]}, ["hosts of 1 rank"]),
        ({"collective": "reduce", "root": 4}, ["root: 4", "0 to 3"]),
        ({"collective": "alltoall", "sizes": [12]}, ["12 B", "16 B or more"]),
        ({"collective": "reduce", "data": "mlp-gradients"}, ["mlp-gradients", "allreduce"]),
    ],
)
def test_what_makes_no_sense_is_refused(traffic, words):
    with pytest.raises(BadInputError) as refused:
        scenario(traffic)
    assert all(word in str(refused.value) for word in words), refused.value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"collective": "scan"}, {"problem": "unknown collective 'scan'"}),
        ({"algorithm": "rings"}, {"problem": "did you mean 'ring'"}),
        ({"operation": "product"}, {"problem": "unknown operation 'product'"}),
        ({"collective": "broadcast", "root": 9}, {"place": "broadcast by ring", "valid": "0 to 3"}),
        (
            {"inputs": 6.5},
            {"valid": "every rank's array, or a size in bytes such as 65536", "problem": "inputs: 6"},
        ),
        (
            {"inputs": None},
            {"valid": "every rank's array, or a size in bytes such as 65536", "problem": "inputs: None"},
        ),
    ],
)
def test_the_python_interface_refuses_by_name(arguments, words):
    given = {"collective": "allreduce", "algorithm": "ring", "inputs": 64} | arguments
    with Fabric(four_hosts(), clock="virtual") as fabric, refused(BadInputError, **words):
        fabric.run(CollectiveRequest(**given))


def test_a_size_may_be_numpys():
    with Fabric(four_hosts(), clock="virtual") as fabric:
        run = fabric.run(CollectiveRequest("allreduce", np.int64(64 * 1024)))
    assert run.result.size_bytes == 64 * 1024
    assert run.buffers == []


def test_requests_with_arrays_can_be_compared():
    first, second = (CollectiveRequest("allreduce", [np.ones(4)] * 4) for _ in range(2))
    assert first == first
    assert first != second
