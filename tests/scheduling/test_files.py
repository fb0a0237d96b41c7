"""Files of clusters and of jobs: Slurm's topology.conf, Kueue's Topology with nodes, traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInputError
from weft.paths import EXAMPLES_DIRECTORY
from weft.scenario.schedule import ScheduleSection
from weft.scheduling import Cluster, workload_of
from weft.scheduling.imports import read_cluster
from weft.scheduling.imports.hostlists import names_of
from weft.scheduling.imports.kueue import read_kueue
from weft.scheduling.imports.slurm import read_slurm
from weft.scheduling.workload import read_trace

EXAMPLES = EXAMPLES_DIRECTORY / "scheduling"
_Found = TypeVar("_Found")
CONF, TOPOLOGY, NODES = Path("topology.conf"), Path("topology.yaml"), Path("nodes.yaml")


def read_or_refused(read: Callable[[], _Found], place: str) -> _Found | None:
    """Return what a reader finds; None if it refuses it, with an error that names the place."""
    try:
        return read()
    except BadInputError as error:
        said = str(error)
    assert place in said
    return None


def slurm(text: str) -> Cluster:
    return read_slurm(CONF, text, 8)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tux[0-3,12,18-20]", ["tux0", "tux1", "tux2", "tux3", "tux12", "tux18", "tux19", "tux20"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("login,n[1-2],x-3.site", ["login", "n1", "n2", "x-3.site"]),
        ("r[0-1]n[1-2]a", ["r0n1a", "r0n2a", "r1n1a", "r1n2a"]),
        ("n[7]", ["n7"]),
    ],
)
def test_host_lists_are_those_of_slurm(text: str, names: list[str]) -> None:
    assert names_of(text, "here") == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[0-3", "brackets without partners"),
        ("n]0[", "brackets without partners"),
        ("n[[0-1]]", "brackets without partners"),
        ("n[]", "no list of ranges"),
        ("n[a-b]", "no list of ranges"),
        ("n[3-1]", "no range"),
        ("n[0-9999999999]", "no range"),
        ("n[0-99999999]", "too many names"),
        ("n[0-999][0-999]", "too many names"),
        ("n[0-1],,m", "no name of hosts"),
        ("[0-3]", "no name of hosts"),
        ("", "no name of hosts"),
        ("a b", "no name of hosts"),
        ("n[0-3],n2", "'n2' is listed twice"),
    ],
)
def test_wrong_host_lists_are_refused(text: str, said: str) -> None:
    with pytest.raises(BadInputError, match=f"here: .*{said}"):
        names_of(text, "here")


@given(st.text("n[]0-9,-x. ", max_size=20))
@settings(max_examples=300)
def test_any_text_is_a_host_list_or_refused(text: str) -> None:
    found = read_or_refused(lambda: names_of(text, "here"), "here")
    assert found is None or len(set(found)) == len(found) > 0


def test_a_tree_of_the_manual_page_is_read() -> None:
    found = slurm(
        "# comment\nSwitchName=s0 Nodes=dev[0-5]\nswitchname=s1 nodes=dev[6-11] LinkSpeed=900  # trailing\n"
        "SwitchName=s2 Nodes=dev[12-17]\nSwitchName=s3 Switches=s[0-2]\n"
    )
    assert [(level.name, level.domains) for level in found.levels] == [
        ("switch-1", ("s0", "s1", "s2")),
        ("switch-2", ("s3",)),
    ]
    assert (len(found.hosts), found.accelerators, found.largest_job) == (18, 144, 144)
    assert found.levels[0].of_host.tolist() == [0] * 6 + [1] * 6 + [2] * 6


def test_switches_without_a_common_parent_stay_apart() -> None:
    found = slurm("SwitchName=s0 Nodes=a[0-1]\nSwitchName=s1 Nodes=a[2-4]\n")
    assert found.largest_job == 3 * 8


def test_parallel_top_switches_count_once() -> None:
    """As in the second example of Slurm's guide."""
    leaves = "".join(f"SwitchName=s{n} Nodes=tux[{4 * n}-{4 * n + 3}]\n" for n in range(4))
    found = slurm(leaves + "".join(f"SwitchName=s{n} Switches=s[0-3] LinkSpeed=1800\n" for n in range(4, 8)))
    assert [len(level.domains) for level in found.levels] == [4, 1]
    assert len(found.notes) == 3


def test_uneven_trees_have_a_domain_at_each_level() -> None:
    found = slurm(
        "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Switches=a\nSwitchName=top Switches=b,c\n"
    )
    assert [level.domains for level in found.levels] == [("a", "b"), ("c", "top"), ("top",)]


def test_blocks_of_the_manual_page_are_paired() -> None:
    blocks = "".join(f"BlockName=block{n + 1} Nodes=node[{32 * n + 1}-{32 * n + 32}]\n" for n in range(4))
    found = slurm(blocks + "BlockSizes=30,120\n")
    assert [(level.name, len(level.domains)) for level in found.levels] == [
        ("block", 4),
        ("block-4", 1),
        ("cluster", 1),
    ]
    assert len(found.hosts) == 128


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no switches and no blocks"),
        ("SwitchName=s0", "both or none"),
        ("SwitchName=s0 Nodes=a Switches=b", "both or none"),
        ("Nodes=a SwitchName=s0", "topology.conf:1: 'Nodes' begins no line"),
        ("SwitchName=s0 Nodes=a Speed=9", "unknown parameter 'Speed'.*LinkSpeed"),
        ("SwitchName=s0 Nodes", "'Nodes' is no parameter"),
        ("SwitchName=s0 Nodes=a Nodes=b", "Nodes is given twice"),
        (
            "SwitchName=s0 Nodes=a\nSwitchName=s0 Nodes=b",
            "topology.conf:2: s0 is described twice, first at topology.conf:1",
        ),
        ("SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=a", "node a is of s0 and of s1"),
        ("SwitchName=s0 Switches=s9", "switch s9 is not described"),
        ("SwitchName=s0 Nodes=a\nSwitchName=t Switches=s0\nSwitchName=u Switches=s0,t", "switch s0 is of t and of u"),
        ("SwitchName=s0 Nodes=a\nSwitchName=t Switches=s0,u\nSwitchName=u Switches=t", "below itself"),
        ("SwitchName=t Switches=u\nSwitchName=u Switches=t", "no switch has nodes"),
        ("SwitchName= Nodes=a", "is no name"),
        ("SwitchName=" + "s" * 65 + " Nodes=a", "is no name.*up to 64"),
        ("SwitchName=s[0-1] Nodes=a[0-3]", "is no name"),
        ("SwitchName=s0 Nodes=a\nBlockName=b Nodes=c", "do not go together"),
        ("SwitchName='s0 Nodes=a", "No closing quotation"),
        ("BlockName=b Nodes=a[0-3]\nBlockSizes=5", "below the base size"),
        ("BlockName=b Nodes=a[0-3]\nBlockSizes=4,12", "no power of two times 4"),
        ("BlockName=b Nodes=a[0-3]\nBlockSizes=4,4", "no power of two times 4"),
        ("BlockName=b Nodes=a[0-3]\nBlockSizes=x", "are no sizes"),
        ("BlockName=b Nodes=a\nBlockSizes=1\nBlockSizes=1", "given twice"),
        ("BlockName=b", "has no nodes"),
        ("RingName=r Nodes=a", "'RingName' begins no line"),
    ],
)
def test_wrong_lines_are_refused(text: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        slurm(text)


LINES = st.lists(
    st.sampled_from(
        ["SwitchName=a Nodes=n[0-3]", "SwitchName=b Nodes=n[4-5]", "SwitchName=c Switches=a,b", "SwitchName=a", "#",
         "BlockName=x Nodes=n[0-3]", "BlockSizes=2,4", "SwitchName=c Switches=c", "SwitchName=d Switches=c", "Nodes=[",
         "=", "\0"]
    ),
    max_size=6,
)  # fmt: skip


@given(LINES)
@settings(max_examples=300)
def test_any_lines_are_a_cluster_or_refused(lines: list[str]) -> None:
    found = read_or_refused(lambda: slurm("\n".join(lines)), "topology.conf")
    if found is not None:
        assert all(len(level.of_host) == len(found.hosts) for level in found.levels)
        assert found.largest_job > 0


def kueue(topology: str, nodes: str, per_host: int | None = None) -> Cluster:
    return read_kueue(TOPOLOGY, topology, NODES, nodes, per_host)


LEVELS = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nspec: {levels: [{nodeLabel: block}, {nodeLabel: rack}]}\n"


def node(name: str, labels: str, gpus: str = '"8"', spec: str = "{}") -> str:
    return (
        f"kind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec: {spec}\n"
        f"status: {{allocatable: {{nvidia.com/gpu: {gpus}}}}}\n---\n"
    )


def test_racks_of_the_same_name_in_other_blocks_are_others() -> None:
    """As in Kueue's documentation: node-1 and node-3 share a rack's label, but no rack."""
    places = ["block: b1, rack: r1", "block: b1, rack: r2", "block: b2, rack: r1", "block: b2, rack: r3"]
    found = kueue(LEVELS, "".join(node(f"node-{number}", each) for number, each in enumerate(places, 1)))
    assert [(level.name, level.domains) for level in found.levels] == [
        ("rack", ("b1/r1", "b1/r2", "b2/r1", "b2/r3")),
        ("block", ("b1", "b2")),
        ("cluster", ("cluster",)),
    ]
    assert found.accelerators_per_host == 8


def test_nodes_without_labels_take_no_jobs() -> None:
    text = (
        node("a", "block: b, rack: r")
        + node("b", "block: b")
        + node("c", "block: b, rack: r", spec="{unschedulable: true}")
    )
    found = kueue(LEVELS, text)
    assert found.hosts == ("a",)
    assert "2 nodes" in found.notes[0]


NODE = node("a", "block: b, rack: r")


@pytest.mark.parametrize(
    ("topology", "nodes", "said"),
    [
        ("kind: Node", NODE, "0 objects of kind Topology"),
        (LEVELS + "---\n" + LEVELS, NODE, "2 objects of kind Topology"),
        (LEVELS.replace("kueue.x-k8s.io", "kai.scheduler"), NODE, "is not Kueue's"),
        (LEVELS.replace("spec:", "spek:"), NODE, "spec.levels: is no list"),
        (LEVELS.replace("nodeLabel: rack", "label: rack"), NODE, r"spec.levels\[1\]: has no nodeLabel"),
        (LEVELS.replace("rack", "block"), NODE, "block is two levels"),
        (LEVELS.replace("block", "kubernetes.io/hostname"), NODE, "not the last level"),
        (LEVELS, NODE + NODE, "node a is described twice"),
        (LEVELS, node("a", "block: b"), "no node has all labels"),
        (LEVELS, NODE + node("b", "block: b, rack: r", '"4"'), "4 GPUs .* and 8"),
        (LEVELS, node("a", "block: b, rack: r", '"0"'), "no allocatable GPUs"),
        (LEVELS, node("a", "block: b, rack: 3"), "3 is no text"),
        (LEVELS, "kind: List", "has no items"),
        (LEVELS, "kind: List\nitems: [7]", r"items\[0\]: is no node"),
        (LEVELS, "kind: Node\nmetadata: {}", "metadata.name: has no name"),
        (LEVELS, "a: [", "is not YAML"),
    ],
)
def test_wrong_objects_are_refused(topology: str, nodes: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        kueue(topology, nodes)


def test_accelerators_of_a_scenario_go_before_those_of_nodes() -> None:
    assert kueue(LEVELS, NODE + node("b", "block: b, rack: r", '"4"'), 2).accelerators == 4


def test_files_of_examples_are_read(tmp_path: Path) -> None:
    tree = read_cluster(EXAMPLES / "topology.conf", None, 8)
    assert [len(level.domains) for level in tree.levels] == [4, 2, 1]
    racks = read_cluster(EXAMPLES / "kueue-topology.yaml", EXAMPLES / "nodes.yaml", None)
    assert ([len(level.domains) for level in racks.levels], racks.accelerators) == ([4, 2, 1], 128)
    with pytest.raises(BadInputError, match=r"schedule\.accelerators_per_host"):
        read_cluster(EXAMPLES / "topology.conf", None, None)
    with pytest.raises(BadInputError, match=r"schedule\.nodes: is missing"):
        read_cluster(EXAMPLES / "kueue-topology.yaml", None, None)
    with pytest.raises(BadInputError, match="goes with a Topology of Kueue"):
        read_cluster(EXAMPLES / "topology.conf", EXAMPLES / "nodes.yaml", 8)
    with pytest.raises(BadInputError, match="cannot be read"):
        read_cluster(tmp_path / "none.conf", None, 8)
    with pytest.raises(BadInputError, match="not a regular file"):
        read_cluster(tmp_path, None, 8)


def trace(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trace_is_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = trace(tmp_path, "run_time_s, accelerators,arrival_s,urgent\n60,8,5,1\n\n30.5,1,2,0\n")
    found = read_trace(path)
    assert [(job.number, job.arrival_s, job.accelerators, job.run_time_s, job.is_urgent) for job in found] == [
        (0, 2.0, 1, 30.5, False),
        (1, 5.0, 8, 60.0, True),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column arrival_s is missing"),
        ("arrival_s,accelerators,run_time_s\n", "has no jobs"),
        ("arrival_s,accelerators\n", "column run_time_s is missing"),
        ("arrival_s,accelerators,run_time_s,gpus\n", "unknown column 'gpus'.*urgent"),
        ("arrival_s,accelerators,run_time_s,urgent,urgent\n", "there twice"),
        ("arrival_s,accelerators,run_time_s\n1,2\n", "jobs.csv:2: 2 cells"),
        ("arrival_s,accelerators,run_time_s\n1,2.5,3\n", "jobs.csv:2: accelerators: '2.5'.*whole numbers"),
        ("arrival_s,accelerators,run_time_s\n1,0,3\n", "accelerators: '0'"),
        ("arrival_s,accelerators,run_time_s\n-1,1,3\n", "arrival_s: '-1'"),
        ("arrival_s,accelerators,run_time_s\n1,1,nan\n", "run_time_s: 'nan'"),
        ("arrival_s,accelerators,run_time_s\n1,1,0\n", "run_time_s: '0'"),
        ("arrival_s,accelerators,run_time_s\n1,1," + "9" * 5000 + "\n", "run_time_s"),
        ("arrival_s,accelerators,run_time_s,urgent\n1,1,3,yes\n", "urgent: 'yes'"),
    ],
)
def test_wrong_traces_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        read_trace(trace(tmp_path, text))


@given(st.text('arivl_scetosnum,0123456789.\n\r"-', max_size=60))
@settings(max_examples=200)
def test_any_rows_are_jobs_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = trace(tmp_path_factory.mktemp("trace"), "arrival_s,accelerators,run_time_s\n" + text)
    found = read_or_refused(lambda: read_trace(path), "jobs.csv")
    assert found is None or found[0].accelerators > 0


def test_a_job_that_never_starts_is_refused(tmp_path: Path) -> None:
    cluster = slurm("SwitchName=s0 Nodes=a[0-1]\nSwitchName=s1 Nodes=a[2-3]\n")
    with pytest.raises(BadInputError, match=r"a job of 17 accelerators never starts.*up to 16"):
        workload_of(ScheduleSection.model_validate({"sizes": [{"accelerators": 17}]}), cluster, (1,))
    path = trace(tmp_path, "arrival_s,accelerators,run_time_s\n1,32,3\n")
    with pytest.raises(BadInputError, match=r"jobs\.csv: a job of 32 accelerators never starts"):
        workload_of(ScheduleSection(trace=path), cluster, (1,))
    with pytest.raises(BadInputError, match=r"schedule\.sizes.*or a trace"):
        workload_of(ScheduleSection(), cluster, (1,))
