"""Damaged results: a report shows what remains, or the error names the damaged file and the place in it."""

import copy
import io
import json
import random
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.report.figures import all_figures
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.report.tables import all_tables, parts_of_traffic
from weft.results.model import Results, keys_only_where_there_are_some, result_keys
from weft.results.printing import print_run
from weft.results.reference import keys_of, results_reference
from weft.results.results_file import read_results
from weft.results.training_steps import TRAINING_STEPS
from weft.results.workloads import WORKLOADS
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

OBSERVED = {
    "interval": "2us", "queues": "all", "flows": True, "int": "all", "timelines": True, "drops": True, "pauses": True,
}  # fmt: skip
SCENARIOS = {
    "failures": {
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "pfc": {"classes": [3], "xoff": "8KB"},
        "buffer": {"capacity": "2MB"},
        "control": {"detection": "5us"},
        "events": [{"at": "20us", "link": "p0l0<->p0s1", "state": "down"}],
        "traffic": [
            {"collective": "allreduce", "sizes": ["16KiB"], "algorithms": ["ring"]},
            {"incast": "h0", "bytes_per_sender": "32KiB"},
        ],
        "faults": {"loss": 0.001},
    },
    "training": {
        "fabric": {
            "planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "ranks_per_host": 2,
            "scale_up": {"rate": "1Tbps", "latency": "500ns"},
        },
        "traffic": [
            {
                "training_step": "data-parallel",
                "layers": [{"gradients": "8KiB", "forward": "5us", "backward": "10us", "count": 2}],
                "bucket": "8KiB", "optimizer": "5us", "algorithms": ["ring"], "data": "lengths",
            },
            {"workload": {"flow_sizes": "fb_hadoop", "load": 0.3, "duration": "100us"}},
        ],
    },
    "jobs": {
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "traffic": [
            {
                "model": {
                    "layers": 2, "hidden": 64, "heads": 4, "feed_forward": 64, "vocabulary": 100, "sequence": 32,
                },
                "parallel": {"tensor": 2, "pipeline": 2}, "micro_batches": 2,
            },
            {"trace": str(ROOT / "examples" / "traces" / "ring.goal")},
            {"storage": [3], "block": "4KiB", "access": {"blocks": 3, "reads": 0.5}},
            {"remote_memory": [3], "reads": 3},
        ],
    },
}  # fmt: skip
NASTY = (
    None, True, "", "x", "nan", -1, -(2**70), 0, 1, 2**31, 2**63, 10**400, 0.5, 1e308, [], {}, [None], {"a": {}},
    "h99", "p0l0:99", "<script>",
)  # fmt: skip


@pytest.fixture(scope="module", params=[(name, form) for name in SCENARIOS for form in ("csv", "parquet")])
def directory(request, tmp_path_factory):
    name, form = request.param
    if form == "parquet":
        pytest.importorskip("pyarrow")
    observe = {"observe": OBSERVED | {"format": form}}
    path = tmp_path_factory.mktemp("sound") / f"{name}-{form}"
    path.mkdir()
    run_scenario(parse_scenario({"clock": "virtual"} | SCENARIOS[name] | observe)).save(path)
    return path


# --- damage


def _truncated(chance, file):
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data) + 1)])


def _garbled(chance, file):
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 1, 3, 30])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(bytes(data))


def _binary(chance, file):
    file.write_bytes(chance.randbytes(chance.choice([1, 100, 10_000])))


def _missing(chance, file):
    file.unlink()


def _a_directory(chance, file):
    file.unlink()
    file.mkdir()


def _lines(chance, file):
    """Lines lost, duplicated, swapped or joined, or with a cell added, removed or changed."""
    lines = file.read_bytes().split(b"\n")
    row = chance.randrange(len(lines))
    cells = lines[row].split(b",")
    cell = chance.randrange(len(cells))
    match chance.randrange(6):
        case 0:
            del lines[row]
        case 1:
            lines.insert(row, chance.choice(lines))
        case 2:
            lines[row] += chance.choice([b",", b'"', b"\x00", b"\xff", b",7", b"\r"])
        case 3:
            del cells[cell]
            lines[row] = b",".join(cells)
        case _:
            cells[cell] = str(chance.choice(NASTY))[:5000].encode()
            lines[row] = b",".join(cells)
    file.write_bytes(b"\n".join(lines))


def _json(chance, file):
    """A value at a random place, changed in type, removed or duplicated."""
    tree = json.loads(file.read_text())
    parents = []
    here = tree
    while isinstance(here, dict | list) and here:
        key = chance.choice(list(here)) if isinstance(here, dict) else chance.randrange(len(here))
        parents.append((here, key))
        here = here[key]
        if chance.random() < 0.2:
            break
    parent, key = parents[-1]
    match chance.randrange(4):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        case _:
            parent[key] = copy.deepcopy(chance.choice(NASTY))
    file.write_text(json.dumps(tree))


def damaged(directory: Path, into: Path, seed: int) -> Path:
    """Copy a directory, one file of it damaged; returns that file."""
    shutil.copytree(directory, into)
    chance = random.Random(seed)
    read = [each for each in into.iterdir() if each.suffix in (".csv", ".parquet") or each.name == "results.json"]
    file = chance.choice([*sorted(read), *[into / "results.json"] * 6])
    kinds = [_truncated, _garbled, _binary, _missing, _a_directory]
    own = _json if file.suffix == ".json" else _lines
    chance.choice([*kinds, *[own] * 8])(chance, file)
    return file


def check_seeds(directory, tmp_path, seeds):
    outcomes = {"page": 0, "refused": 0}
    for seed in seeds:
        into = tmp_path / str(seed)
        file = damaged(directory, into, seed)
        try:
            page = report_page(RunDirectory.read(into))
        except BadInputError as error:
            # A name that the fabric does not have may be the table's fault or the fabric's: both are named.
            message = str(error)
        else:
            message = ""
        if message:
            assert file.name in message or "results.json" in message, f"seed {seed}: {message}"
        else:
            assert "</html>" in page.encode("utf-8").decode()
        outcomes["refused" if message else "page"] += 1
        shutil.rmtree(into)
    assert all(outcomes.values()), outcomes


def test_a_damaged_directory_gives_a_page_or_an_error_with_its_place(directory, tmp_path):
    check_seeds(directory, tmp_path, range(30))


@pytest.mark.slow
def test_hundreds_of_damaged_directories(directory, tmp_path):
    check_seeds(directory, tmp_path, range(1000, 1300))


# --- errors


@pytest.fixture
def copied(tmp_path, request):
    path = tmp_path / "run"
    path.mkdir()
    scenario = {"clock": "virtual"} | SCENARIOS["failures"] | {"observe": OBSERVED}
    run_scenario(parse_scenario(scenario)).save(path)
    return path


def _edited(path, edit):
    file = path / "results.json"
    tree = json.loads(file.read_text())
    edit(tree)
    file.write_text(json.dumps(tree))
    return path


def test_errors_name_the_file_and_the_key_or_line(copied, tmp_path):
    results = (copied / "results.json").read_text()
    flows = (copied / "flows.csv").read_text().splitlines(keepends=True)

    def message_of(file, text):
        before = (copied / file).read_bytes()
        (copied / file).write_text(text)
        with pytest.raises(BadInputError) as refused:
            RunDirectory.read(copied)
        (copied / file).write_bytes(before)
        return str(refused.value).replace(f"{copied}/", "")

    def results_with(edit):
        tree = json.loads(results)
        edit(tree)
        return message_of("results.json", json.dumps(tree))

    assert results_with(lambda t: t["phases"][1].pop("end_ps")).startswith("results.json: phases[1].end_ps: is missing")
    assert results_with(lambda t: t["planes"][0].update(ecn_marked_packets="x")) == (
        "results.json: planes[0].ecn_marked_packets: must be a whole number, is 'x'"
    )
    assert results_with(lambda t: t["flows"][0].update(time_ps=-1)).startswith(
        "results.json: flows[0].time_ps: '-1' is out of range (valid: 0 to "
    )
    assert results_with(lambda t: t["made_by"]["fabric"].update(leaves=0)).startswith(
        "results.json: made_by.fabric: leaves=0 is out of range"
    )
    assert results_with(lambda t: t["link_events"][0].update(link="p0l0<->p0s7")).startswith(
        "results.json: link_events[0].link: unknown link"
    )
    assert message_of("results.json", results[:200]).startswith("results.json: is no JSON: EOF while parsing")
    row = flows[2].split(",")
    assert message_of("flows.csv", "".join([*flows[:2], ",".join(["1", "h77", *row[2:]]), *flows[3:]])).startswith(
        "flows.csv:3: source: 'h77' is not a host of the run's fabric (results.json); "
    )
    assert message_of("flows.csv", "".join([*flows[:2], ",".join(["one", *row[1:]]), *flows[3:]])).startswith(
        "flows.csv:3: flow: 'one' is no whole number"
    )
    assert message_of("flows.csv", "".join([*flows[:4], "1,2\n", *flows[4:]])) == (
        "flows.csv:5: has 2 cells, the header has 12"
    )
    assert message_of("flows.csv", flows[0].replace("end_ps", "ended")).startswith("flows.csv: has no column 'end_ps'")


INCONSISTENT = [
    (lambda tree: tree["training_jobs"][0]["plan"].update(peak_flops_per_s=0), "plan.peak_flops_per_s: 0 is out of"),
    (lambda tree: tree["training_jobs"][0]["plan"].update(ranks=64), "ranks.compute: has 4 values; there are 64 ranks"),
    (lambda tree: tree["training_jobs"][0]["ranks"].pop("stall"), "ranks: has compute, exposed, bubble; there are"),
    (lambda tree: tree["training_jobs"][0].update(step_ps=7), "step_ps: is 7, but ranks.compute, ranks.exposed"),
    (lambda tree: tree["job_traces"][0]["stall_ps"].pop(), "stall_ps: has 2 values; there are 3 ranks"),
    (lambda tree: tree["job_traces"][0]["bubble_ps"].insert(0, 7), "bubble_ps: has 4 values; there are 3 ranks"),
    (
        lambda tree: tree["job_traces"][0].update(compute_ps=[], exposed_ps=[], bubble_ps=[], stall_ps=[]),
        "compute_ps: has no values; a job has a rank or more",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "run"
    path.mkdir()
    run_scenario(parse_scenario({"clock": "virtual"} | SCENARIOS["jobs"])).save(path)
    return path


@pytest.mark.parametrize(("edit", "said"), INCONSISTENT)
def test_results_of_jobs_that_contradict_themselves_are_refused_by_key(jobs, tmp_path, edit, said):
    shutil.copytree(jobs, tmp_path / "run")
    result = CliRunner().invoke(weft, ["report", str(_edited(tmp_path / "run", edit))])
    assert isinstance(result.exception, BadInputError)
    assert f"results.json: {'job_traces' if 'ps: has' in said else 'training_jobs'}[0].{said}" in str(result.exception)


@pytest.mark.parametrize("kind", ["storage", "remote_memory"])
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda each: each["latency_ps"]["percentiles"].append(7),
            "latency_ps.percentiles: has 5 values; there are 4",
        ),
        (lambda each: each.update(time_ps=0), r"time_ps: is 0 \(valid: 1 and more\)"),
    ],
)
def test_figures_of_a_service_that_cannot_be_are_refused(jobs, tmp_path, kind, edit, said):
    shutil.copytree(jobs, tmp_path / "run")
    _edited(tmp_path / "run", lambda tree: edit(tree[kind][0]))
    with pytest.raises(BadInputError, match=rf"{kind}\[0\].{said}"):
        report_page(RunDirectory.read(tmp_path / "run"))


def test_names_from_traces_are_no_markup_of_the_terminal(jobs, tmp_path):
    """A trace names its categories; here as rich's markup, which would end with an exception or vanish."""
    shutil.copytree(jobs, tmp_path / "run")
    name = "[/x][red]"

    def edit(tree):
        tree["job_traces"][0]["name"] = tree["training_jobs"][0]["name"] = name
        tree["training_jobs"][0]["compute_ps"][name] = 5
        tree["training_jobs"][0]["critical_path"]["parts_ps"][name] = 5
        tree["training_jobs"][0]["critical_path"]["ranks_ps"] = {name: 5}

    out = io.StringIO()
    print_run(Console(file=out, width=200), read_results(_edited(tmp_path / "run", edit) / "results.json"))
    assert out.getvalue().count(name) == 6


def test_the_command_exits_with_3_and_no_traceback(copied):
    (copied / "queues.csv").unlink()
    (copied / "queues.csv").mkdir()
    done = CliRunner().invoke(weft, ["report", str(copied)])
    assert isinstance(done.exception, BadInputError)
    assert done.exception.exit_code == 3
    assert "queues.csv: cannot be read: Is a directory" in str(done.exception)


def test_a_page_says_what_it_lacks(copied):
    for name in ("queues.csv", "ports.csv"):
        (copied / name).unlink()
    _edited(copied, lambda tree: [tree.pop(key) for key in ("memory", "link_events")])
    page = report_page(RunDirectory.read(copied))
    assert "Not on this page" in page
    for notice in (
        "no table &#x27;queues&#x27;, though the run recorded it",
        "no table &#x27;ports&#x27;, though the run recorded it",
        "results.json has no &#x27;memory&#x27;",
        "results.json has no &#x27;link_events&#x27;",
    ):
        assert notice in page


def test_a_page_has_training_workloads_failures_memory_and_conservation(directory):
    run = RunDirectory.read(directory)
    figures, tables, page = all_figures(run), all_tables(run), report_page(run)
    if "training" in directory.name:
        parts = parts_of_traffic(run)
        of_workload = [f"workloads-{number}" for number in range(3)]
        assert list(parts) == [*of_workload, "training_steps-0", "training_steps-1"]
        assert "packet_conservation" in tables
        bars, (slowdowns, times, by_size) = parts["training_steps-0"], [parts[name] for name in of_workload]
        (step,), (workload,) = run.results.of(TRAINING_STEPS), run.results.of(WORKLOADS)
        assert sum(part[0] for part in bars.parts.values()) == pytest.approx(step.step_ps / 1e6)
        assert len(slowdowns.points.x) == workload.flows == by_size.rows[-1][1]
        assert [curve.name for curve in times.curves] == ["p50", "p95", "p99"]
        assert times.curves[2].y[-1] == workload.bins[-1].completion_ps[2] / 1e6
        assert ">host 0<" in page  # both of its ranks
    elif "jobs" in directory.name:
        assert {"training_jobs", "job_traces"} <= {name.rpartition("-")[0] for name in parts_of_traffic(run)}
    else:
        assert {"link_events", "memory", "pauses", "packet_conservation"} <= set(tables)
        assert "memory" in figures
        (event,) = run.results.link_events
        assert tables["link_events"].rows[0][:2] == ["p0l0<->p0s1", "down"]
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        assert data["events"] == [{"x": event.happened_ps / 1e6, "state": "down", "text": "p0l0<->p0s1 down"}]
        assert "failed during the run" in page


def test_conservation_adds_up_for_a_reader(directory):
    rows = all_tables(RunDirectory.read(directory))["packet_conservation"].rows
    whole = {group: (packets, size) for group, what, packets, size in rows if what in ("in all", "")}
    ends = [whole[group] for group in ("left", "absorbed and dropped", "under way", "missing")]
    assert whole["entered"][0] == sum(packets for packets, _ in ends)
    resized = next((size for group, _, _, size in rows if group == "resized"), 0)
    assert whole["entered"][1] + resized == sum(size for _, size in ends)


def test_a_program_s_own_counters_and_registers_are_shown(copied):
    counter = {"switch": "p0l0", "counter": "mine", "index": 3, "entry": "", "packets": 7, "bytes": 700}
    register = {"switch": "p0l1", "register": "wide", "index": 0, "value": 1 << 100}
    _edited(copied, lambda tree: tree.update(counters=[counter], registers=[register]))
    tables = all_tables(RunDirectory.read(copied))
    assert tables["counters"].rows == [["p0l0", "mine", 3, 7, 700]]
    assert tables["registers"].rows == [["p0l1", "wide", 0, str(1 << 100)]]
    _edited(copied, lambda tree: tree["counters"][0].pop("packets"))
    with refused(BadInputError, problem="results.json"):
        RunDirectory.read(copied)


def test_an_infinite_error_is_no_damage(copied):
    _edited(copied, lambda tree: tree["collectives"][0].update(largest_error=None, wrong=3))
    with refused(BadInputError, place="results.json", problem="must be false"):
        RunDirectory.read(copied)
    _edited(copied, lambda tree: tree.update(ok=False))
    page = report_page(RunDirectory.read(copied))
    assert "allreduce, ring" in page


def test_the_reader_knows_every_key_that_a_run_writes(copied):
    tree = json.loads((copied / "results.json").read_text())
    left_out = {*keys_only_where_there_are_some()} - {"controller_events"}  # the run has a link that fails
    assert set(tree) == {*result_keys(), "ok"} - left_out
    assert read_results(copied / "results.json").absent == ()


def test_the_reference_has_every_key_that_a_run_writes(directory):
    """Of the file, of its items, and of what these consist of."""
    tree = json.loads((directory / "results.json").read_text())
    page = results_reference()
    asked_for = {"choice", "protocol", "clear_to_send", "pairs", "nccl"}
    for places, text in re.findall(r"^## (`.*)\n((?:.*\n)*?)(?=^## |\Z)", page, re.MULTILINE):
        documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        for place in re.findall(r"`(.+?)`", places):
            for item in items_at(tree, place):
                assert set(documented) - set(item) <= asked_for, place
                assert set(item) <= set(documented), place
    assert set(tree) <= set(keys_of(Results))


def items_at(tree, place):
    """The objects of results.json at a place of the reference."""
    found = [tree]
    for part in place.replace("[]", ".[]").split("."):
        if part == "[]":
            found = [each for items in found for each in items]
        elif part == "NAME":
            found = [each for items in found for each in items.values()]
        else:
            found = [items[part] for items in found if items.get(part) is not None]
    return found


def test_results_that_have_packet_conservation_by_its_old_name_are_read_without_it(copied):
    _edited(copied, lambda tree: tree.update(ledger=tree.pop("packet_conservation")))
    run = RunDirectory.read(copied)
    assert run.results.packet_conservation is None
    assert run.missing == ["results.json has no 'packet_conservation'"]
    assert "packet_conservation" not in all_tables(run)
