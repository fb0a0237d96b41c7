"""All-to-all-v over fabrics: results, figures, sizes from scenarios and files, and what is refused."""

import json

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario
from weft.traffic.pair_sizes import PairSizes

KIB = 1024
FABRIC = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
MATRIX = [
    [0, 64 * KIB, 4 * KIB, 0],
    [4 * KIB, 8 * KIB, 0, 64 * KIB],
    [8 * KIB, 8 * KIB, 0, 0],
    [0, 0, 128 * KIB, 0],
]
RAILS = {"kind": "rail_only", "planes": 1, "ranks_per_host": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}


def item(**keys):
    return {"collective": "alltoallv", "algorithms": ["direct"], **keys}


def run(*traffic, fabric=FABRIC, **keys):
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": list(traffic), **keys}))


@pytest.mark.parametrize(
    ("fabric", "transport"),
    [
        (FABRIC, {}),
        (FABRIC, {"retransmission": "selective-repeat"}),
        (FABRIC, {"protocol": "mrc"}),
        (FABRIC, {"protocol": "uet"}),
        (RAILS, {}),
        ({**FABRIC, "hosts_per_leaf": 1, "ranks_per_host": 2}, {}),
    ],
)
def test_a_matrix_arrives_whatever_carries_it(fabric, transport):
    keys = {"transport": transport} | ({"int": False} if "protocol" in transport else {})
    algorithms = ["direct", "pairwise"] + (["hierarchical"] if "ranks_per_host" in fabric else [])
    found = run(item(pairs={"matrix": MATRIX}, algorithms=algorithms), fabric=fabric, **keys).collectives
    assert [each.algorithm for each in found] == algorithms
    for each in found:
        assert each.ok
        assert each.verified
        assert each.size_bytes == 132 * KIB  # what comes to rank 2
        assert each.time_ps > each.pairs.ideal_ps


def test_figures_follow_from_the_largest_sum_of_a_rank():
    (found,) = run(item(pairs={"matrix": MATRIX}), fabric={**FABRIC, "host_rate": "10Gb/s"}).collectives
    pairs = found.pairs
    assert (pairs.largest_sent_bytes, pairs.largest_received_bytes) == (128 * KIB, 132 * KIB)
    assert pairs.mean_bytes == (sum(map(sum, MATRIX)) - 8 * KIB) / 4
    assert pairs.imbalance == pytest.approx(132 * KIB / pairs.mean_bytes)
    assert pairs.empty_pairs == 5
    assert pairs.ideal_ps == 132 * KIB * 8 * 10**12 // (2 * 10 * 10**9)
    assert found.algorithm_bandwidth == pytest.approx(132 * KIB / (found.time_ps * 1e-12))
    assert found.busbw_bytes_per_s == pytest.approx(found.algorithm_bandwidth)  # no rank keeps any of its largest sum
    assert found.as_dict()["pairs"]["empty_pairs"] == 5
    (other,) = run({"collective": "alltoall", "algorithms": ["direct"], "sizes": ["64KiB"]}).collectives
    assert "pairs" not in other.as_dict()


def test_equal_sizes_have_the_figures_of_an_all_to_all():
    even, plain = run(
        item(pairs={"skew": 0}, sizes=["256KiB"]),
        {"collective": "alltoall", "algorithms": ["direct"], "sizes": ["256KiB"]},
        fabric={**FABRIC, "spines": 1},
    ).collectives
    assert even.pairs.imbalance == 1
    assert even.busbw_bytes_per_s / even.algorithm_bandwidth == pytest.approx(3 / 4)
    assert even.time_ps == pytest.approx(plain.time_ps, rel=0.02)


@pytest.mark.parametrize("name", ["sizes.csv", "sizes.json"])
def test_files_are_relative_to_the_scenario(tmp_path, name):
    written = [[f"{cell // KIB}KiB" for cell in row] for row in MATRIX]
    text = json.dumps(written) if name.endswith("json") else "# KiB\n" + "\n".join(map(", ".join, written))
    (tmp_path / name).write_text(text)
    tree = {"clock": "virtual", "fabric": FABRIC, "traffic": [item(pairs={"matrix": name})]}
    (tmp_path / "scenario.yaml").write_text(json.dumps(tree))
    (from_file,) = run_scenario(load_scenario(tmp_path / "scenario.yaml")).collectives
    (inline,) = run(item(pairs={"matrix": MATRIX})).collectives
    assert from_file == inline


def test_the_seed_varies_what_is_drawn_and_sizes_scale_it():
    def sums(seed, size):
        (found,) = run(item(pairs={"skew": 1, "spread": 1}, sizes=[size]), seed=seed).collectives
        assert found.ok
        assert found.size_bytes == size
        return found.pairs.largest_sent_bytes, found.pairs.largest_received_bytes

    assert sums(1, 64 * KIB) == sums(1, 64 * KIB) != sums(2, 64 * KIB)
    assert sums(1, 640 * KIB)[0] == pytest.approx(10 * sums(1, 64 * KIB)[0], rel=1e-3)


def test_some_ranks_exchange_a_matrix_of_theirs_and_auto_chooses():
    three = [row[:3] for row in MATRIX[:3]]
    named, chosen = run(
        item(pairs={"matrix": three}, ranks=[3, 0, 1]),
        item(pairs={"matrix": three}, ranks=[3, 0, 1], algorithms=["auto"]),
    ).collectives
    assert named.ok
    assert named.ranks == 3
    assert chosen.choice.algorithm == "direct"
    assert chosen.time_ps == named.time_ps


def test_together_with_others():
    found = run({"together": [item(pairs={"matrix": MATRIX}), item(pairs={"skew": 1}, sizes=["64KiB"])]}).collectives
    assert len(found) == 2
    assert all(each.ok for each in found)


def test_from_python():
    sizes = PairSizes(np.array(MATRIX))
    inputs = [np.arange(132 * KIB // 4, dtype=np.int32) + 1_000_000 * rank for rank in range(4)]
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        buffers = fabric.run(CollectiveRequest(f"alltoallv:{sizes.parameters}", inputs, "pairwise")).buffers
    assert [each.nbytes for each in buffers] == np.sum(MATRIX, axis=0).tolist()
    assert buffers[3][0] == 1_000_000 + (4 + 8) * KIB // 4


def changed(row, column, cell):
    return [[cell if (r, c) == (row, column) else old for c, old in enumerate(cells)] for r, cells in enumerate(MATRIX)]


@pytest.mark.parametrize(
    ("keys", "place", "problem", "valid"),
    [
        ({"pairs": {"matrix": [[0, 4], [4, 0]]}}, "pairs.matrix", "2 rows and columns", "4, one for each rank"),
        (
            {"pairs": {"matrix": changed(0, 1, 5)}},
            "pairs.matrix",
            "row 0, column 1: 5 B",
            "multiples of 4, the size of an element",
        ),
        ({"pairs": {"matrix": changed(1, 3, -4)}}, "pairs.matrix[1][3]", "-4", "0 to 64GiB"),
        (
            {"pairs": {"matrix": changed(1, 3, "x")}},
            "pairs.matrix[1][3]",
            "'x' is not a size",
            "a number with B, KiB, MiB, GiB, KB, MB or GB",
        ),
        ({"pairs": {"matrix": [[0] * 4] * 4}}, "pairs.matrix", "a matrix of zeros", "at least one pair with bytes"),
        (
            {"pairs": {"matrix": [[4] * 4] * 3}},
            "pairs.matrix",
            "a matrix of 3 x 4",
            "a row and a column for each rank, none below 0",
        ),
        ({"pairs": {"matrix": [[4] * 4, [4]]}}, "pairs.matrix", "row 1 has 1 cells", "4, as row 0"),
        (
            {"pairs": {"matrix": []}},
            "pairs.matrix",
            "no matrix of sizes",
            "a row for each sender, a column for each receiver",
        ),
        (
            {"pairs": {"matrix": changed(0, 0, "64GiB")}},
            "pairs.matrix: the largest sum of a rank",
            "out of range",
            "1B to 64GiB",
        ),
        ({"pairs": {"matrix": "none.csv"}}, "pairs.matrix", "none.csv cannot be read", ""),
        (
            {"pairs": {"matrix": MATRIX, "skew": 1}},
            "pairs",
            "matrix and skew exclude each other",
            "matrix alone, or skew and spread",
        ),
        ({"pairs": {"skew": 1}, "sizes": [4]}, "sizes[0]", "4 B leave no pair an element", "16 B or more"),
        ({"pairs": {"skew": 1}, "collective": "alltoall"}, "pairs", "alltoall has none", "with collective: alltoallv"),
    ],
)
def test_what_cannot_be_exchanged_is_refused_with_its_place(keys, place, problem, valid):
    with refused(BadInputError, place=f"scenario: traffic[0].{place}", problem=problem, valid=valid):
        run(item(**keys))
