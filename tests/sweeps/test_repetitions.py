"""Points that differ only in their seed: their statistics in tables, files and `weft run --repeat`."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from devtools import Page
from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.report.sweep_page import sweep_page, write_sweep_report
from weft.sweeps import SweepPlan
from weft.sweeps.index import index_of
from weft.sweeps.repetitions import repetitions_of
from weft.sweeps.store import Outcome, State

LOSSY = """\
name: lossy
seed: 3
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 3, host_rate: 100Gbps}
faults: {loss: 0.01}
traffic:
  - {incast: h0, bytes_per_sender: 64KiB}
"""


def row(seed, time_us, state="finished", **columns):
    base = {"point": f"{seed}-{columns.get('spines')}", "seed": seed, "state": state, "error": None}
    return base | ({"time_ps": time_us * 10**6} if time_us is not None else {}) | columns


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def weft_command(*arguments, check=True):
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=check)


@pytest.fixture
def lossy(tmp_path):
    path = tmp_path / "lossy.yaml"
    path.write_text(LOSSY, encoding="utf-8")
    return path


def test_points_that_differ_only_in_their_seed_are_one_row():
    rows = [row(seed, time, spines=spines) for spines, times in ((1, (4, 6)), (2, (1, 3))) for seed, time in
            enumerate(times, 1)]  # fmt: skip
    found = repetitions_of(rows, ["spines", "seed"])
    assert found.headings() == ["spines", "figure", "runs", "mean", "± 95 %", "std. dev.", "min", "max"]
    # t of one degree of freedom is 12.706, and both deviations are the square root of 2.
    assert list(found.cells()) == [
        ["1", "time (µs)", "2", "5.00", "12.71", "1.41", "4.0", "6.0"],
        ["2", "time (µs)", "2", "2.00", "12.71", "1.41", "1.0", "3.0"],
    ]


@pytest.mark.parametrize(
    ("rows", "parameters"),
    [
        ([row(1, 4, spines=1), row(1, 5, spines=2)], ["spines", "seed"]),
        ([row(1, 4, spines=1), row(2, 5, spines=2)], ["spines", "seed"]),
        ([row(1, 4, spines=1), row(1, 5, spines=2)], ["spines"]),
        ([], ["seed"]),
    ],
)
def test_other_points_are_no_repetitions(rows, parameters):
    assert repetitions_of(rows, parameters) is None


def test_runs_without_results_and_with_invalid_times_are_named_and_left_out():
    rows = [
        row(1, 4),
        row(2, 6),
        row(3, None, state="failed"),
        row(4, None, state="not run"),
        row(5, 900, **{"run.lateness.valid": False}),
    ]
    found = repetitions_of(rows, ["seed"])
    (cells,) = found.cells()
    assert cells[1:3] == ["2 of 5", "5.00"]
    assert found.remarks() == [
        "3 runs left out of the statistics: seed=3 (failed); seed=4 (not run); seed=5 (INVALID: events were served "
        "late)"
    ]
    nothing = repetitions_of([row(1, None, state="failed"), row(2, None, state="failed")], ["seed"])
    assert list(nothing.cells()) == []
    assert not nothing.is_without_chance
    assert len(nothing.left_out) == 2


def test_runs_with_other_drops_than_the_rest_are_named():
    lost = [row(seed, 4, **{"run.plane0.tail_drops": drops, "run.drops.queue full": drops})
            for seed, drops in ((1, 0), (2, 7), (3, 0), (4, 1))]  # fmt: skip
    assert repetitions_of(lost, ["seed"]).remarks() == ["2 of 4 runs dropped packets: seeds 2, 4"]


def test_results_are_matched_by_place_or_by_labels():
    def of(seed, *algorithms):
        return [row(seed, time, collective="allreduce", algorithm=name) for name, time in algorithms]

    same = repetitions_of([*of(1, ("ring", 1), ("tree", 10)), *of(2, ("ring", 3), ("tree", 30))], ["seed"])
    assert [(each[0], each[3]) for each in same.cells()] == [("ring", "2.00"), ("tree", "20.00")]
    fewer = repetitions_of([*of(1, ("ring", 1), ("tree", 10)), *of(2, ("tree", 30))], ["seed"])
    assert [(each[0], each[2], each[3]) for each in fewer.cells()] == [
        ("ring", "1 of 2", "1.0"),
        ("tree", "2", "20.00"),
    ]


def test_results_have_their_labels_in_one_column_without_those_that_all_share():
    names = ({"algorithm": "ring", "size_bytes": 4096}, {"algorithm": "ring", "size_bytes": 8192})
    collectives = [row(seed, 4, collective="allreduce", **name) for seed in (1, 2) for name in names]
    found = repetitions_of(collectives, ["seed"])
    assert found.headings()[:2] == ["result", "figure"]
    assert [each[0] for each in found.cells()] == ["4096 B", "8192 B"]
    mixed = [
        each for seed in (1, 2) for each in (*collectives[2 * seed - 2 : 2 * seed], row(seed, 1, pattern="incast"))
    ]
    found = repetitions_of(mixed, ["seed"])
    assert found.shared == {"collective": "allreduce"}
    assert [each[0] for each in found.cells()] == ["4096 B", "8192 B", "incast"]
    assert found.sortable_headings()[:4] == ["collective", "size_bytes", "pattern", "figure"]


def test_a_label_that_tells_a_result_from_others_stays():
    rows = [row(seed, 4, **name) for seed in (1, 2) for name in ({"collective": "allreduce", "algorithm": "ring"},
                                                                 {"algorithm": "ring"})]  # fmt: skip
    found = repetitions_of(rows, ["seed"])
    assert "collective" not in found.shared


@pytest.mark.parametrize("count", [1, 0, -3, 10_001, True, "5"])
def test_a_wrong_count_is_refused(tmp_path, count):
    file = tmp_path / "sweep.yaml"
    file.write_text("scenario: {fabric: {planes: 1, leaves: 1, spines: 0}}\nrepeat: " + json.dumps(count))
    with refused(BadInputError, place="sweep.yaml: repeat", valid="2 to 10000", problem="number of repetitions"):
        SweepPlan.read(file)


def test_seeds_begin_with_the_scenario_s_and_end_with_the_largest(lossy):
    plan = SweepPlan.read(lossy, repeat=3)
    assert [each["seed"] for each in plan.axes[-1].assignments] == [3, 4, 5]
    with refused(BadInputError, place="--repeat", problem="beyond the largest seed", valid="0 to 9223372036854775807"):
        SweepPlan.read(lossy.with_name("lossy.yaml"), changes=weft_seed(2**63 - 1), repeat=2)


def weft_seed(seed):
    from weft.scenario import Change

    return [Change("seed", seed, "--seed")]


@pytest.mark.slow
def test_a_sweep_writes_statistics_of_all_columns(lossy, tmp_path):
    result = weft.sweep(lossy, tmp_path / "out", grid={"traffic[0].bytes_per_sender": ["16KiB", "64KiB"]}, repeat=4)
    assert result.ok
    long, found = read(result.table), read(result.statistics)
    assert len(long) == 8
    for size in ("16KiB", "64KiB"):
        for figure in ("time_ps", "retransmissions", "run.plane0.largest_queue_bytes"):
            values = [float(each[figure]) for each in long if each["traffic[0].bytes_per_sender"] == size]
            (each,) = [
                each for each in found if each["traffic[0].bytes_per_sender"] == size and each["figure"] == figure
            ]
            assert (each["runs"], each["count"]) == ("4", "4")
            assert float(each["mean"]) == pytest.approx(np.mean(values))
            assert float(each["standard_deviation"]) == pytest.approx(np.std(values, ddof=1))
            assert float(each["ci95_high"]) - float(each["ci95_low"]) == pytest.approx(2 * float(each["half_width"]))
            assert (float(each["minimum"]), float(each["maximum"])) == (min(values), max(values))
    # A sweep without repetitions in the same directory has no statistics.
    assert weft.sweep(lossy, tmp_path / "out").statistics is None
    assert not (tmp_path / "out" / "statistics.csv").exists()


@pytest.mark.slow
def test_a_repeated_run_is_the_runs_with_these_seeds(lossy, tmp_path):
    out = tmp_path / "out"
    done = weft_command("run", lossy, "--repeat", 3, "--seed", 11, "--out", out)
    assert "1 result, each over 3 seeds" in done.stdout
    assert "3 of 3 runs finished" in done.stdout
    assert sorted(each.name for each in (out / "points").iterdir()) == ["seed-11", "seed-12", "seed-13"]
    weft_command("run", lossy, "--seed", 12, "--out", tmp_path / "alone")
    again = out / "points" / "seed-12" / "results.json"
    assert again.read_bytes() == (tmp_path / "alone" / "results.json").read_bytes()
    times = [json.loads((out / f"points/seed-{seed}/results.json").read_text())["flows"][0]["time_ps"]
             for seed in (11, 12, 13)]  # fmt: skip
    assert len(set(times)) > 1
    # The same command runs again, also what has finished, and says the same.
    done = weft_command("run", lossy, "--repeat", 3, "--seed", 11, "--out", out, "--json")
    statistics = {each["figure"]: each for each in json.loads(done.stdout)["statistics"]}
    assert statistics["time_ps"]["mean"] == pytest.approx(np.mean(times))
    assert statistics["time_ps"]["standard_deviation"] == pytest.approx(np.std(times, ddof=1))


@pytest.mark.slow
def test_runs_in_which_nothing_is_left_to_chance_are_said_to_be_identical(small, tmp_path):
    done = weft_command("run", small, "--clock", "virtual", "--repeat", 3, "--out", tmp_path / "out")
    assert "every seed gave identical figures: nothing in this scenario is left to chance" in done.stdout


@pytest.mark.slow
def test_a_seed_that_fails_is_named_and_the_others_are_counted(lossy, tmp_path):
    done = weft_command(
        "run", lossy, "--set", "faults.loss=0.3", "--set", "traffic[0].bytes_per_sender=128KiB", "--repeat", 4,
        "--out", tmp_path / "out", check=False,
    )  # fmt: skip
    states = {each["seed"]: each["state"] for each in read(tmp_path / "out" / "table.csv")}
    failed = [seed for seed, state in states.items() if state == "failed"]
    assert 0 < len(failed) < 4, "the scenario must lose some runs for this test"
    assert done.returncode == 1
    assert (
        f"{len(failed)} run{'s' if len(failed) > 1 else ''} left out of the statistics: seed={failed[0]}" in done.stdout
    )
    assert f"{4 - len(failed)} of 4 " in done.stdout
    assert f"failed: seed={failed[0]}: " in done.stdout


def test_what_a_single_run_has_is_refused_with_repetitions(small, tmp_path):
    done = weft_command("run", small, "--repeat", 3, "--pcap", tmp_path, "--metrics", check=False)
    assert done.returncode == 2
    assert "--repeat: not together with --pcap, --metrics" in done.stderr
    (tmp_path / "results.json").write_text("{}")
    done = weft_command("run", small, "--repeat", 3, "--out", tmp_path, check=False)
    assert done.returncode == 3
    assert "has the results of a single run" in done.stderr


def page_data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["figures"]


def page_of(rows, *parameters):
    """The page of a sweep with these rows, each of which names its point."""
    points = {each["point"]: {key: each[key] for key in parameters} for each in rows}
    ended = [(identity, values, Outcome(State.FINISHED)) for identity, values in points.items()]
    index = index_of("x", parameters, ended)
    return sweep_page(index, rows, [point.outcome for point in index.points], Path("points"))


def test_a_page_has_means_with_error_bars_and_a_panel_for_each_size():
    rows = [
        {**row(seed, time * size // 4096, spines=spines), "point": f"seed-{10 * spines + seed}",
         "collective": "allreduce", "algorithm": algorithm, "size_bytes": size}
        for spines in (1, 2) for seed, time in ((1, 4), (2, 6))
        for algorithm in ("ring", "tree") for size in (4096, 8192)
    ]  # fmt: skip
    page = page_of(rows, "spines", "seed")
    assert "<h3>size 4 KiB</h3>" in page
    assert "<h3>size 8 KiB</h3>" in page
    figures = page_data(page)
    assert set(figures) == {"axis-0-0", "axis-0-1"}
    for key, scale in (("axis-0-0", 1), ("axis-0-1", 2)):
        curves = figures[key]["curves"]
        assert [each["name"] for each in curves] == ["ring", "tree"]
        assert curves[0]["x"] == [1, 2]
        assert curves[0]["y"] == [5 * scale] * 2
        assert curves[0]["error"] == pytest.approx([12.706 * scale] * 2, rel=1e-4)


def test_all_curves_are_on_the_page_and_the_first_are_drawn():
    rows = [
        {**row(1, 4 + leaves, spines=spines, leaves=leaves), "point": f"seed-{100 * leaves + spines}"}
        for leaves in range(20) for spines in range(30)
    ]  # fmt: skip
    figure = page_data(page_of(rows, "spines", "leaves"))["axis-0"]
    assert (len(figure["curves"]), figure["drawn"]) == (20, 12)


@pytest.mark.slow
def test_a_browser_draws_error_bars_and_lets_readers_choose_curves(lossy, tmp_path):
    grid = {"traffic[0].bytes_per_sender": ["16KiB", "64KiB"], "fabric.hosts_per_leaf": [3, 4, 5, 6]}
    out = weft.sweep(lossy, tmp_path / "out", grid=grid, repeat=2).directory
    page = write_sweep_report(out, out / "report.html")
    with Page(page.as_uri(), tmp_path) as opened:
        assert opened.value("document.querySelectorAll('.errorbar').length") >= 8
        assert opened.value("document.querySelectorAll('.panels .js-plotly-plot').length") >= 2
        # The second chart has no panels, and a curve for each number of hosts.
        visible = "place('axis-0-0').data.map((each) => each.visible !== false)"
        assert all(opened.value(visible))
        opened.value("document.querySelector('#chips-axis-0-0 button').click()")
        assert opened.value(visible)[0] is False
        # The choice outlives a change of the theme.
        opened.value("document.getElementById('theme').click()")
        assert opened.value(visible)[0] is False
        assert opened.console == []


@pytest.mark.slow
def test_the_page_of_a_repeated_run_leads_to_each_run(lossy, tmp_path):
    out = tmp_path / "out"
    weft_command("run", lossy, "--repeat", 2, "--out", out)
    weft_command("report", out)
    page = (out / "report.html").read_text()
    assert 'href="points/seed-3/report.html"' in page
    assert "1 result, each over 2 seeds" in page
    assert page_data(page)["axis-0"]["x"] == {"title": "seed", "unit": "", "scale": "category"}
