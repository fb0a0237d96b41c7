"""Virtual runs in partitions: which nodes share one, and that workers show nowhere in what comes out."""

import subprocess
import sys

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks.virtual.partitioning import partition_nodes
from weft.errors import BadInputError
from weft.recording.tables import row_count
from weft.run.runner import Captures, run_scenario
from weft.scenario import parse_scenario

# Faults, marks, losses that are repaired, and a control latency: everything that draws, waits or is notified.
SCENARIO = {
    "clock": "virtual",
    "fabric": {
        "planes": 2,
        "leaves": 3,
        "spines": 2,
        "hosts_per_leaf": 2,
        "host_rate": "100Gbps",
        "delay": "500ns",
    },
    "faults": {"loss": 0.002, "duplicate": 0.01, "delay_probability": 0.01, "extra_delay": "3us"},
    "control": {"latency": "20us"},
    "traffic": [
        {"collective": "allreduce", "sizes": ["48KiB"]},
        {"permutation": "64KiB"},
        {"incast": "h0", "bytes_per_sender": "64KiB"},
    ],
}

# Queues that share a memory, pauses that cross partitions, marks that change rates, and all of it recorded.
FLOW_CONTROL = {
    "clock": "virtual",
    "fabric": SCENARIO["fabric"] | {"hosts_per_leaf": 3},
    "buffer": {"capacity": "600KB"},
    "pfc": {"classes": [3], "xoff": "20KB"},
    "scheduling": {"quantum": {3: 3000, 0: 1500}},
    "transport": {"congestion_control": "dcqcn"},
    "traffic": [
        {"incast": "h0", "bytes_per_sender": "256KiB"},
        {"workload": {"flow_sizes": "fb_hadoop", "load": 0.3, "duration": "200us"}},
    ],
    "observe": {"interval": "2us", "queues": "all", "pauses": True, "flows": True, "timelines": True},
}


def files(folder):
    """Return every result and capture by name, without wall-clock times."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "wall_times.json"
    }


def written_by_workers(scenario, directory, switches=()):
    """Return the last run's result, and the files of the runs with one, two and three workers."""
    written = []
    for workers in (1, 2, 3):
        folder = directory / str(workers)
        captures = Captures(folder / "captures", switches) if switches else None
        result = run_scenario(parse_scenario(scenario | {"workers": workers}), captures=captures)
        assert result.ok
        result.save(folder)
        written.append(files(folder))
    return result, written


@pytest.mark.parametrize("seed", [1, 2])
def test_files_of_results_are_the_same_for_every_number_of_workers(tmp_path, seed):
    _, written = written_by_workers(SCENARIO | {"seed": seed}, tmp_path, ("p0l0", "p1s1"))
    assert len(written[0]) > 10
    assert written[0] == written[1] == written[2]


def test_pauses_cross_partitions_at_the_same_times_for_every_number_of_workers(tmp_path):
    result, written = written_by_workers(FLOW_CONTROL, tmp_path)
    assert all(plane.pauses_sent > 0 for plane in result.memory[:1])
    assert row_count(result.observations.tables["pauses"]) > 0
    assert result.drops == {}
    assert written[0] == written[1] == written[2]


@pytest.mark.slow
def test_workers_are_an_option_of_the_command_and_not_in_the_results(tmp_path):
    written = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        command = ["collective", "allreduce", "--clock", "virtual", "--leaves", "2", "--sizes", "8K"]
        subprocess.run(
            [sys.executable, "-m", "weft", *command, "--workers", workers, "--out", out],
            check=True,
            capture_output=True,
        )
        written.append(files(out))
    assert written[0] == written[1]


def test_an_impossible_number_of_workers_is_reported_with_its_bounds():
    with refused(BadInputError, place="options: workers", valid="1 to 256"):
        Fabric(topologies.leaf_spine(), workers=0)


def test_switches_are_apart_and_hosts_of_the_same_leaves_together():
    fabric = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2, delay_ps=1000)
    assert partition_nodes(fabric) == [
        *([switch.name] for switch in fabric.switches),
        ["h0", "h1"],
        ["h2", "h3"],
    ]


def test_nodes_without_delay_between_them_are_one():
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1, delay_ps=0)
    assert partition_nodes(fabric) == [[*(s.name for s in fabric.switches), *(h.name for h in fabric.hosts)]]


def test_a_fabric_without_delays_runs():
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, delay_ps=0)
    with Fabric(topology, clock="virtual", workers=2) as fabric:
        assert len(fabric.lab.partitions) == 1
        assert fabric.incast("h0", 4096).bytes_delivered == 3 * 4096
