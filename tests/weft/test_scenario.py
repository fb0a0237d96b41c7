from collections import Counter
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import LABS_DIRECTORY
from weft.run.traffic_kinds.collective import CollectiveTraffic
from weft.run.traffic_kinds.incast import IncastTraffic
from weft.scenario import Scenario, load_scenario, parse_scenario
from weft.scenario.topology import build_topology


def load_text(tmp_path: Path, text: str) -> Scenario:
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def test_quantities_become_base_units(tmp_path):
    scenario = load_text(
        tmp_path,
        "fabric: {host_rate: 40Gbps, delay: 500ns, queue_capacity: 256KiB}\n"
        "traffic:\n  - {incast: h3, bytes_per_sender: 64K}\n  - {collective: allreduce, sizes: [4K, 8K]}\n",
    )
    assert scenario.fabric.host_rate == 40 * 10**9
    assert scenario.fabric.delay == 500_000
    assert scenario.fabric.queue_capacity == 262144
    assert scenario.traffic == [
        IncastTraffic(incast="h3", bytes_per_sender=65536),
        CollectiveTraffic(collective="allreduce", sizes=[4096, 8192]),
    ]


def test_an_empty_file_is_the_default_scenario(tmp_path):
    assert load_text(tmp_path, "") == Scenario()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nfabrik: {}\n", 2, ["unknown key 'fabrik'", "did you mean 'fabric'"]),
        ("fabric:\n  planes: 2\n  leafs: 4\n", 3, ["fabric.leafs", "did you mean 'leaves'"]),
        ("fabric:\n  planes: 999\n", 2, ["fabric.planes", "999", "valid: 1 to 256"]),
        ("fabric:\n  host_rate: fast\n", 2, ["fabric.host_rate", "fast", "Gb/s"]),
        ("faults:\n  loss: 1.5\n", 2, ["faults.loss", "1.5"]),
        ("seed: 1\nclock: sundial\n", 2, ["clock", "sundial", "'real' or 'virtual'"]),
        (
            "traffic:\n  - incast: h0\n    bytes_per_sendr: 4\n",
            3,
            ["bytes_per_sendr", "did you mean 'bytes_per_sender'"],
        ),
        (
            "traffic:\n  - {incast: h0}\n  - {collective: allreduce, algorithms: [rings]}\n",
            3,
            ["traffic[1].algorithms[0]", "rings", "ring, tree", "in-network"],
        ),
    ],
)
def test_errors_name_place_value_and_choices(tmp_path, text, line, words):
    with pytest.raises(BadInputError) as caught:
        load_text(tmp_path, text)
    message = str(caught.value)
    assert f"scenario.yaml:{line}: " in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"fabric": {"leaves": 2, "spines": 0}}, ["fabric.spines"]),
        ({"fabric": {"pods": 2, "leaves": 1, "spines": 0}}, ["fabric.spines", "1 to 509"]),
        ({"fabric": {"cores_per_spine": 2}}, ["fabric.cores_per_spine: 2", "kind: leaf_spine", "fat_tree"]),
        ({"fabric": {"core_rate": "1Gbps"}}, ["fabric.core_rate", "it is a key of fat_tree"]),
        ({"fabric": {"k": 7}}, ["fabric.k", "k=7 is odd", "such as 6 or 8"]),
        ({"fabric": {"k": 8, "leaves": 4}}, ["fabric.leaves", "follows from k: 8"]),
        ({"fabric": {"k": 8, "ranks_per_host": 3}}, ["fabric.ranks_per_host", "valid: 1, 2, 4"]),
        ({"fabric": {"kind": "fat_treee"}}, ["fabric.kind", "did you mean 'fat_tree'"]),
        ({"fabric": {"kind": "dragonfly+"}}, ["fabric.kind", "did you mean 'dragonfly_plus'"]),
        (
            {"routing": {"ugal_threshold": "5KB"}},
            ["routing.ugal_threshold: kind: shortest_paths has none (valid: dimension_order_ugal, dragonfly_ugal)"],
        ),
        ({"fabric": {"kind": ["fat_tree"]}}, ["fabric.kind", "fat_tree"]),
        ({"fabric": [2]}, ["fabric: must be a mapping"]),
        ({"traffic": [{"incast": "h99"}]}, ["h99", "h0"]),
        ({"traffic": [{"incast": "h0", "plane": 2}]}, ["plane", "0 to 1"]),
        ({"ecn": {"kmin": "100KB"}}, ["kmin, kmax and pmax"]),
        ({"ecn": {"kmin": "100KB", "kmax": "100KB", "pmax": 0.2}}, ["ecn.kmax"]),
        ({"traffic": [{"collective": "allreduce", "sizes": [6]}]}, ["6 B", "multiple of 4"]),
        (
            {"traffic": [{"collective": "allreduce", "data": "mlp-gradients", "sizes": [4]}]},
            ["sizes", "model"],
        ),
        (
            {"fabric": {"leaves": 1, "hosts_per_leaf": 1}, "traffic": [{"incast": "h0"}]},
            ["traffic[0]", "2 hosts"],
        ),
        ({"fabric": {"leaves": 1, "hosts_per_leaf": 1}, "traffic": [{"permutation": 4}]}, ["2 hosts"]),
        ({"traffic": [{"permutation": "3G"}]}, ["traffic[0].permutation", "valid: 1B to 2GiB"]),
        ({"mtu": 1500}, ["mtu", "1500", "256, 512, 1024, 2048 or 4096"]),
        ({"faults": {"extra_delay": "1us"}}, ["delay_probability", "extra_delay"]),
        ({"traffic": [{"flood": "h0"}]}, ["exactly one of", "incast"]),
        (
            {"traffic": [{"incats": "h0"}]},
            ["traffic[0].incats", "no kind of traffic", "did you mean 'incast'?"],
        ),
        ({"traffic": [{"bytes_per_sender": "1MiB"}]}, ["exactly one of", "incast"]),
        (
            {"traffic": [{"together": [{"incast": "h0"}, {"permutaton": "1MiB"}]}]},
            ["traffic[0].together[1].permutaton", "did you mean 'permutation'?"],
        ),
        ({"traffic": {"incast": "h0"}}, ["must be a list"]),
        (
            {"fabric": {"cube": 2, "shapes": {"a": [2, 2]}}},
            ["fabric.shapes.a", "from 1 to 4096, with 3 items"],
        ),
        ({"fabric": {"matchings": {"a": []}}}, ["fabric.matchings.a", "with 1 to 509 items"]),
        ({"fabric": {"matchings": {}}}, ["fabric.matchings", "with 1 to 256 items"]),
        (
            {
                "fabric": {"shape": [4096, 4096], "hosts_per_leaf": 1},
                "traffic": [{"collective": "allreduce", "sizes": ["128MiB"]}],
            },
            ["fabric: 16777216 ranks (valid: 1 to 65536)"],
        ),
    ],
)
def test_what_no_single_key_shows_is_checked_too(tree, words):
    with pytest.raises(BadInputError) as caught:
        parse_scenario(tree)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "just text", "\tx: 1"])
def test_what_is_no_mapping_in_yaml_is_refused(tmp_path, text):
    with pytest.raises(BadInputError, match=r"scenario\.yaml"):
        load_text(tmp_path, text)


def test_a_missing_file_and_wrong_bytes_are_reported(tmp_path):
    with refused(BadInputError, place="none.yaml", problem="cannot be read"):
        load_scenario(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe\n")
    with refused(BadInputError, place="bytes.yaml", problem="UTF-8"):
        load_scenario(tmp_path / "bytes.yaml")


def test_a_program_is_found_relative_to_its_scenario(tmp_path):
    assert load_text(tmp_path, "p4: mine.p4\n").p4 == tmp_path / "mine.p4"


# A sweep's file has keys of its own; tests/sweeps looks at those.
SCENARIOS_OF_LABS = sorted(path for path in LABS_DIRECTORY.glob("*/*.yaml") if path.stem != "sweep")


@pytest.mark.parametrize("path", SCENARIOS_OF_LABS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_lab_s_scenarios_are_valid(path):
    # Some only describe a fabric, to be drawn or priced.
    assert load_scenario(path).fabric.host_count > 1


@pytest.mark.parametrize("lab", sorted({path.parent for path in SCENARIOS_OF_LABS}), ids=lambda lab: lab.name)
def test_every_lab_runs_something(lab):
    assert any(load_scenario(path).traffic for path in SCENARIOS_OF_LABS if path.parent == lab)


def test_pods_make_a_fabric_of_three_tiers():
    scenario = parse_scenario(
        {
            "fabric": {
                "planes": 1, "pods": 2, "leaves": 2, "spines": 2, "cores_per_spine": 3, "hosts_per_leaf": 1,
                "fabric_rate": "40Gbps", "core_rate": "100Gbps",
            },
            "traffic": [{"incast": "h3"}],
        }
    )  # fmt: skip
    fabric = build_topology(scenario.fabric)
    assert len(fabric.hosts) == scenario.fabric.host_count == 4
    assert Counter(each.role for each in fabric.switches) == {"leaf": 4, "spine": 4, "core": 6}
    assert fabric.link_between("p0s1", "p0c3").link.rate_bps == 100 * 10**9
