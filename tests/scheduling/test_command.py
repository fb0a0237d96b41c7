"""`weft schedule`, as a user runs it; slow-downs that packets measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import EXAMPLES_DIRECTORY
from weft.scheduling import Cluster, cluster_of_fabric
from weft.scheduling.measured import jobs_of, shapes_of
from weft.scheduling.placement import Spread
from weft.scheduling.spread import MeasuredSlowdowns
from weft.topologies import leaf_spine
from weft.topologies.kinds.fat_tree import fat_tree

SCHEDULE = """
name: small
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 4, host_rate: 100Gb/s}
schedule:
  accelerators_per_host: 4
  jobs: 80
  load: 0.9
  sizes: [{accelerators: 1, share: 3}, {accelerators: 8}]
  run_time: {mean: 2h, median: 1h}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCHEDULE, encoding="utf-8")
    return path


def schedule(*arguments: object) -> Result:
    return CliRunner().invoke(weft, ["schedule", *map(str, arguments)], standalone_mode=False, catch_exceptions=False)


def test_policies_stand_next_to_each_other(scenario: Path) -> None:
    said = schedule(scenario, "--seeds", 2).stdout
    assert "small: 80 jobs on 32 accelerators in 8 hosts (leaf: 2), load 90%, 2 draws" in said
    for policy in ("backfill", "first-fit", "kueue", "random", "slurm-tree"):
        assert f"\n{policy} " in said
    assert "the scenario has no `schedule.slowdown`" in said


def test_a_page_and_data_are_written(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    schedule(scenario, "--seeds", 3, "--out", out)
    found = json.loads((out / "schedule.json").read_text(encoding="utf-8"))
    assert set(found["policies"]["kueue"]) == set(found["figures"])
    use = found["policies"]["first-fit"]["utilisation"]
    assert 0 < use["mean"] < 1
    assert use["half"] > 0
    line = found["timelines"]["first-fit"]
    assert len(line["at_s"]) == len(line["utilisation"]) == len(line["waiting"]) == 200
    page = (out / "schedule.html").read_text(encoding="utf-8")
    assert "Accelerators in use" in page
    assert 'src="http' not in page


def test_json_is_the_same_for_a_seed(scenario: Path) -> None:
    first, again = (schedule(scenario, "--seeds", 1, "--json").stdout for _ in range(2))
    other = schedule(scenario, "--seeds", 1, "--json", "--set", "seed=2").stdout
    assert first == again
    assert first != other


def test_factors_of_a_scenario_make_spread_jobs_slower(scenario: Path) -> None:
    given = ("--set", "schedule.slowdown.spread=[{leaves: 2, factor: 3}]", "--set", "schedule.consolidated=false")
    found = json.loads(schedule(scenario, "--seeds", 1, "--json", *given).stdout)["policies"]
    assert found["random"]["slowdown_mean"]["mean"] > found["slurm-tree"]["slowdown_mean"]["mean"]


def test_clusters_and_jobs_of_files(scenario: Path) -> None:
    folder = EXAMPLES_DIRECTORY / "scheduling"
    files = [f"schedule.topology={folder / 'topology.conf'}", f"schedule.trace={folder / 'jobs.csv'}"]
    without = "schedule={accelerators_per_host: 8}"
    said = schedule(scenario, *(word for each in (without, *files) for word in ("--set", each))).stdout
    assert "60 jobs on 256 accelerators in 32 hosts (switch-1: 4, switch-2: 2)" in said
    files = [f"schedule.topology={folder / 'kueue-topology.yaml'}", f"schedule.nodes={folder / 'nodes.yaml'}"]
    nodes = ("schedule.accelerators_per_host=null", *files, "schedule.level=cloud.provider.com/topology-rack")
    said = schedule(scenario, "--seeds", 1, *(word for each in nodes for word in ("--set", each))).stdout
    assert "80 jobs on 128 accelerators in 16 hosts" in said


def test_relative_files_lie_next_to_the_scenario(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (scenario.parent / "jobs.csv").write_text("arrival_s,accelerators,run_time_s\n0,8,60\n5,8,60\n", encoding="utf-8")
    scenario.write_text(SCHEDULE.split("schedule:")[0] + "schedule: {trace: jobs.csv}\n", encoding="utf-8")
    monkeypatch.chdir("/")
    assert "small: 2 jobs on 8 accelerators" in schedule(scenario, "--seeds", 1).stdout


def test_errors_name_file_and_key(scenario: Path) -> None:
    for changes, said in {
        ("schedule.size=3",): "unknown key",
        ("schedule.sizes=[]",): r"schedule\.sizes",
        ("schedule.sizes=[{accelerators: 33}]",): "up to 32",
        ("schedule.level=rack",): r"schedule\.level.*leaf, cluster",
        ("schedule.policies=[kueue, kueue]",): r"schedule\.policies\[1\].*twice",
        ("schedule.policies=[lifo]",): r"schedule\.policies",
        ("schedule.run_time.median=3h",): "is above the mean",
        ("schedule.slowdown.spread=[{leaves: 2, factor: 2}, {leaves: 2, factor: 3}]",): "two factors for 2 leaves",
        ("schedule.trace=jobs.csv",): "means nothing with `trace`",
        ("schedule.nodes=nodes.yaml",): "means nothing without `topology`",
        ("schedule.preemption={}",): "means nothing without urgent jobs",
        ("schedule.topology=none.conf",): "cannot be read",
        ("schedule=null",): "has no jobs to place",
    }.items():
        with pytest.raises(BadInputError, match=said):
            schedule(scenario, "--seeds", 1, *(word for change in changes for word in ("--set", change)))


def fabric() -> Cluster:
    return cluster_of_fabric(leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=4))


def test_shapes_are_powers_of_two_that_the_fabric_has() -> None:
    assert list(shapes_of(fabric(), 8, [1, 3, 16])) == [
        Spread(4, 1), Spread(4, 2), Spread(4, 4), Spread(8, 2), Spread(8, 4),
    ]  # fmt: skip
    three = cluster_of_fabric(fat_tree(planes=1, pods=2, leaves_per_pod=2, hosts_per_leaf=2))
    assert list(shapes_of(three, 16, [2, 4])) == [
        Spread(2, 1), Spread(2, 2), Spread(2, 2, 2), Spread(4, 2), Spread(4, 2, 2), Spread(4, 4, 2),
    ]  # fmt: skip


def test_jobs_of_a_shape_fill_its_leaves_side_by_side() -> None:
    assert jobs_of(fabric(), Spread(2, 2)) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert jobs_of(fabric(), Spread(2, 1)) == [[0, 1], [2, 3]]
    assert jobs_of(fabric(), Spread(8, 4)) == [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]


def test_shapes_that_were_not_measured_are_those_next_to_them() -> None:
    times_ps = {Spread(4, 1): 100, Spread(4, 2): 150, Spread(4, 4): 300, Spread(2, 1): 50, Spread(2, 2): 60}
    found = MeasuredSlowdowns(0.5, 8, times_ps)
    assert found.factor(8, Spread(1, 1)) == 1
    assert found.factor(16, Spread(2, 2)) == pytest.approx(1.2)
    assert found.factor(25, Spread(4, 3)) == 3
    # As many hosts on each leaf: 16 on 4 leaves as 4 on one, 16 on 8 as 4 on two.
    assert found.factor(128, Spread(16, 4)) == 1
    assert found.factor(128, Spread(16, 8)) == 1.5
    assert found.of_job(32, Spread(4, 4)) == pytest.approx(1 + 0.5 * 2)
    assert MeasuredSlowdowns(0.5, 8, {}).factor(64, Spread(8, 8)) == 1


def test_packets_measure_what_spread_costs(scenario: Path, tmp_path: Path) -> None:
    """Two hosts of a leaf share one uplink: jobs over two leaves send all of their data through it."""
    changes = ("schedule.slowdown={communication: 0.4, size: 64KiB}", "fabric.hosts_per_leaf=2")
    arguments = (scenario, "--seeds", 1, "--json", "--out", tmp_path / "out", "--workers", 1)
    arguments += tuple(word for change in changes for word in ("--set", change))
    found = json.loads(schedule(*arguments).stdout)
    shapes = {(each["hosts"], each["leaves"]): each["factor"] for each in found["spread"]}
    assert set(shapes) == {(2, 1), (2, 2)}
    assert shapes[2, 1] == 1
    assert shapes[2, 2] > 1.5
    assert json.loads(schedule(*arguments).stdout) == found


def test_jobs_within_a_host_need_no_packets(scenario: Path, tmp_path: Path) -> None:
    changes = ("--set", "schedule.slowdown={}", "--set", "schedule.sizes=[{accelerators: 4}]")
    said = schedule(scenario, "--seeds", 1, "--out", tmp_path / "out", *changes).stdout
    assert "Spread" not in said
    assert (tmp_path / "out" / "schedule.html").exists()


def test_the_example_s_policies_keep_their_order() -> None:
    """The order that docs/scheduling.md shows, at a tenth of its size and with factors in place of packets."""
    small = ("schedule.jobs=500", "schedule.slowdown.spread=[{leaves: 2, factor: 2.3}, {leaves: 4, factor: 2.9}]")
    options = [word for change in small for word in ("--set", change)]
    said = schedule(EXAMPLES_DIRECTORY / "scheduling/policies.yaml", "--seeds", 2, "--json", *options).stdout
    found = {
        policy: {figure: value["mean"] for figure, value in figures.items()}
        for policy, figures in json.loads(said)["policies"].items()
    }
    waits_s = [found[policy]["wait_mean_s"] for policy in ("kueue", "slurm-tree", "backfill", "first-fit", "random")]
    assert waits_s == sorted(waits_s)
    assert found["random"]["slowdown_mean"] > found["first-fit"]["slowdown_mean"] > found["slurm-tree"]["slowdown_mean"]
    assert found["first-fit"]["leaves_over_needed"] > found["slurm-tree"]["leaves_over_needed"]
    assert found["kueue"]["fragmentation"] > found["first-fit"]["fragmentation"]
