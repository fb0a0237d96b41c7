"""Results of jobs: the critical path, tables and traces of operations, timelines on pages."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.recording.operations import operations_table
from weft.recording.tables import integers_of
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.results.job_traces import JOB_TRACES
from weft.results.operation_files import timelines
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.jobs import Job, OperationsBuilder, RankPart
from weft.traffic.jobs.ideal import ideal_times

RING = str(ROOT / "examples" / "traces" / "ring.goal")
FABRIC = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "run"
    scenario = {"clock": "virtual", "fabric": FABRIC, "traffic": [{"trace": RING, "ranks": [0, 1, 3]}]}
    run_scenario(parse_scenario(scenario)).save(path)
    return path


def test_the_critical_path_is_all_of_the_time(directory):
    (result,) = RunDirectory.read(directory).results.of(JOB_TRACES)
    path = result.critical_path
    assert sum(path.parts_ps.values()) == result.time_ps
    assert sum(path.ranks_ps.values()) == result.time_ps
    # Two pieces of 20 µs are added up on the way.
    assert path.parts_ps["compute"] == 40_000_000
    assert path.rank_count == 3


def test_ports_have_the_time_of_the_messages_that_use_them(directory):
    (result,) = RunDirectory.read(directory).results.of(JOB_TRACES)
    ports = result.critical_path.ports_ps
    transfers_ps = result.critical_path.parts_ps["transfer"]
    # Every message leaves its sender by both NICs, and those from one leaf to the other by one of two spines.
    assert {"h0:0", "h0:1"} <= set(ports)
    assert all(ports[port] <= transfers_ps for port in ports)
    assert ports["p0l0:3"] == pytest.approx(ports["p0l0:4"])
    assert ports["p0l0:3"] + ports["p0l0:4"] == pytest.approx(ports["h1:0"], abs=2)


def test_operations_are_read_back_as_they_were(directory):
    run = RunDirectory.read(directory)
    ((kind, (result,)),) = [item for item in run.traffic if item[0] is JOB_TRACES]
    assert len(integers_of(result.records, "rank")) == result.operations == 30
    assert integers_of(result.records, "end_ps").max() == result.time_ps
    assert (directory / kind.flow_file.of(0)).exists()


def test_a_damaged_table_is_refused_with_its_line(directory, tmp_path):
    for file in directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    table = tmp_path / "trace-0-operations.csv"
    table.write_text(table.read_text().replace("\n2,", "\n9,", 1))
    with refused(BadInputError, place="trace-0-operations.csv:22", problem="rank: 9 is no rank"):
        RunDirectory.read(tmp_path)


def test_the_trace_has_a_thread_for_each_stream_and_spans_do_not_overlap(directory):
    events = json.loads((directory / "trace-0-trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"stream 0", "send 1", "receive 1"} <= set(names.values())
    spans = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert set(spans) == set(names)
    for found in spans.values():
        found.sort()
        assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(found))


def test_time_in_which_several_phases_ran_counts_once(tmp_path):
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "traffic": [{"together": [{"trace": RING}, {"trace": RING}]}],
    }
    run_scenario(parse_scenario(scenario)).save(tmp_path)
    run = RunDirectory.read(tmp_path)
    first, second = run.phases
    assert first.start_ps == second.start_ps
    assert run.traffic_ps == max(first.end_ps, second.end_ps) - first.start_ps
    # Both rings leave h0 by both NICs, whose time they share.
    assert max(run.utilisation.values()) > 0.9


def test_the_page_has_a_timeline_and_the_path(directory):
    pytest.importorskip("plotly")
    page = report_page(RunDirectory.read(directory))
    assert "Timeline of 1 ring" in page
    assert "Critical path of 1 ring on ports" in page
    assert '"drawing":"spans"' in page


def test_of_a_large_job_the_first_ranks_are_in_the_table(monkeypatch):
    monkeypatch.setattr("weft.recording.operations.MOST_ROWS", 5)
    builder = OperationsBuilder()
    for _ in range(2):
        builder.compute(3, category="forward")
    job = Job("many", (RankPart(builder.build()),) * 4)
    table = operations_table(job, ideal_times(job))
    assert integers_of(table, "rank").tolist() == [0, 0, 1, 1]
    (figure,) = timelines("many", table)
    assert figure.rows == ["rank 0, stream 0", "rank 1, stream 0"]
    assert figure.spans["forward"].length == [pytest.approx(6e-6)] * 2


def test_a_job_without_operations_has_no_timeline():
    job = Job("none", (RankPart(OperationsBuilder().build()),))
    assert list(timelines("none", operations_table(job, ideal_times(job)))) == []
