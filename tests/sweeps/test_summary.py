"""What a sweep's summary shows: the axes that vary, the results that matter, one page of all points."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.report.sweep_page import write_sweep_report
from weft.sweeps import grid_axis, run_sweep
from weft.sweeps.summary import as_numbers, measures, names_of_rows, summarise

pytest.importorskip("plotly")


def row(point, **columns):
    return {"point": point, "state": "finished", "error": None, **columns}


def test_no_kind_measures_anew_what_all_results_have():
    # A column that every kind has, such as time_ps, would stand twice in the tables of all sweeps.
    of_all_kinds = row("a", time_ps=1, retransmissions=1, cnps=1, wrong=1)
    headings = [measure.heading for measure in measures() if measure.of(of_all_kinds)]
    assert headings == ["time (µs)", "retransmitted packets", "CNPs", "wrong"]


def test_only_what_varies_and_what_distinguishes_rows_is_shown():
    rows = [
        row("a", seed=1, sizes=[size], collective="allreduce", algorithm=algorithm, size_bytes=size,
            time_ps=time_ps, retransmissions=0, wrong=0)
        for size in (4096, 8192)
        for algorithm, time_ps in (("ring", 2_000_000), ("tree", 3_500_000))
    ]  # fmt: skip
    summary = summarise(rows, ["seed", "sizes"])
    # The size follows from the axis; nothing was sent again and nothing was wrong.
    assert summary.headings() == ["sizes", "algorithm", "time (µs)"]
    assert [summary.cells(each) for each in summary.rows][:2] == [
        ["4096", "ring", "2.0"],
        ["4096", "tree", "3.5"],
    ]


def test_rows_of_one_thing_have_one_name_though_a_label_follows_the_axis():
    rows = [
        row(size, bucket=size, algorithm=algorithm, buckets=buckets, step_ps=10**9)
        for size, many in (("64KiB", 7), ("256KiB", 4))
        for buckets in (many, 1)
        for algorithm in ("ring", "tree")
    ]
    summary = summarise(rows, ["bucket"])
    assert names_of_rows(summary) == ["ring", "tree", "ring, buckets 1", "tree, buckets 1"] * 2
    assert names_of_rows(summarise(rows[:3], ["bucket"])) == [
        "ring, buckets 7",
        "tree, buckets 7",
        "ring, buckets 1",
    ]
    fewer = summarise(rows[:5], ["bucket"])
    assert names_of_rows(fewer)[4] == "ring, buckets 4"


def test_each_row_says_what_it_is_of_and_a_run_without_drops_has_none():
    rows = [
        row(point, control=point, **what, **{"run.plane0.tail_drops": drops, **causes})
        for point, drops, causes in (("dcqcn", 7, {"run.drops.queue full": 7}), ("hpcc", 0, {}))
        for what in (
            {"collective": "allreduce", "algorithm": "ring", "time_ps": 10**6},
            {"collective": "allreduce", "algorithm": "tree", "time_ps": 10**6},
            {"pattern": "incast on h0", "time_ps": 10**6},
        )
    ]
    summary = summarise(rows, ["control"])
    assert summary.headings() == ["control", "collective", "algorithm", "pattern", "time (µs)", "drops"]
    assert [summary.cells(each) for each in (rows[2], rows[5])] == [
        ["dcqcn", "", "", "incast on h0", "1.0", "7"],
        ["hpcc", "", "", "incast on h0", "1.0", "0"],
    ]
    assert names_of_rows(summary)[2] == "incast on h0"
    # BMv2 does not count what its queues drop.
    unknown = row("bmv2", control="bmv2", time_ps=10**6, **{"run.plane0.tail_drops": None})
    assert summarise([*rows, unknown], ["control"]).cells(unknown)[-1] == ""


def test_rows_without_results_are_left_out():
    rows = [row("a", loss=0, time_ps=10**6), {"point": "b", "loss": 0.5, "state": "failed", "error": "lost"}]
    summary = summarise(rows, ["loss"])
    assert summary.axes == ["loss"]
    assert [each["point"] for each in summary.rows] == ["a"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5], ([1.0, 2.5], "")),
        (["4KiB", "1MiB"], ([4096.0, 1048576.0], "B")),
        (["500ns", "2us"], ([0.5, 2.0], "µs")),
        (["100Gbps", "1Tbps"], ([100.0, 1000.0], "Gb/s")),
        ([[4096], [8192]], ([4096.0, 8192.0], "")),
        (["hpcc", "dcqcn"], None),
    ],
)
def test_axes_of_quantities_are_scales(values, expected):
    assert as_numbers(values) == expected


@pytest.fixture(scope="module")
def swept(small, tmp_path_factory):
    axes = [
        grid_axis("traffic[0].bytes_per_sender", ["4KiB", "64KiB"], "grid"),
        grid_axis("transport.congestion_control", ["hpcc", "swift"], "grid"),
    ]
    result = run_sweep(small, axes, tmp_path_factory.mktemp("swept") / "out")
    assert result.ok
    return result


@pytest.mark.slow
def test_a_sweep_has_one_page_that_leads_to_its_points(swept):
    page = write_sweep_report(swept.directory, swept.directory / "report.html").read_text()
    assert "4 of 4 points finished" in page
    assert "sweep of small" in page
    links = re.findall(r'<a href="(points/[0-9a-f]{16}/report\.html)">', page)
    assert len(set(links)) == 4
    assert all((swept.directory / link).stat().st_size > 1000 for link in links)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    first = data["figures"]["axis-0"]
    assert (first["x"]["title"], first["y"]["unit"]) == ("traffic[0].bytes_per_sender (B)", "µs")
    assert "<h2>Time against traffic[0].bytes_per_sender</h2>" in page
    assert [curve["name"] for curve in first["curves"]] == [
        "congestion_control hpcc",
        "congestion_control swift",
    ]
    assert [curve["x"] for curve in first["curves"]] == [[4096, 65536]] * 2
    by_control = next(each for each in data["figures"].values() if each["x"]["title"] == "transport.congestion_control")
    assert by_control["x"]["scale"] == "category"


@pytest.mark.slow
def test_a_damaged_point_is_reported_and_the_others_are_shown(swept, tmp_path):
    copy = shutil.copytree(swept.directory, tmp_path / "copy")
    first = swept.directory_of(swept.points[0]).relative_to(swept.directory)
    (copy / first / "results.json").write_text("{")
    page = write_sweep_report(copy, copy / "report.html").read_text()
    assert "Points without results" in page
    assert "results.json: is no JSON" in page
    assert len(set(re.findall(r'<a href="points/([0-9a-f]{16})/', page))) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"sweep\.json: is no JSON"),
        ("[]", r"sweep\.json: must be an object"),
        ('{"scenario": "x", "parameters": []}', r"sweep\.json: points: is missing"),
        (
            '{"scenario": "x", "parameters": [], "points": [{"identity": "../../etc", "parameters": {},'
            ' "state": "finished", "error": ""}]}',
            r"sweep\.json: points\[0\]\.identity: is not valid, is '\.\./\.\./etc'",
        ),
        (
            '{"scenario": "x", "parameters": [], "points": [{"identity": "0123456789abcdef", "parameters": {},'
            ' "state": "done", "error": ""}]}',
            r"points\[0\]\.state: 'done' is not valid; valid: 'finished'",
        ),
    ],
)
def test_a_damaged_index_is_an_error_with_its_place(tmp_path, text, message):
    (tmp_path / "sweep.json").write_text(text)
    done = CliRunner().invoke(weft, ["report", str(tmp_path)])
    assert isinstance(done.exception, BadInputError)
    assert re.search(message, str(done.exception))


@pytest.mark.slow
def test_the_command_prints_what_varies(small, tmp_path):
    command = [sys.executable, "-m", "weft", "sweep", str(small), "--out", str(tmp_path / "out")]
    axes = ["--grid", "traffic[0].bytes_per_sender=4KiB,64KiB", "--grid", "seed=1"]
    done = subprocess.run([*command, *axes], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    head = next(line for line in lines if "traffic[0].bytes_per_sender" in line)
    assert head[:3] == ["traffic[0].bytes_per_sender", "time", "(µs)"]
    assert "seed" not in head
    assert [line[0] for line in lines[lines.index(head) + 1 :] if line][:2] == ["4KiB", "64KiB"]
