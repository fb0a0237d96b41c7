"""`weft compare`: what differs between two runs, and which results belong together."""

import pytest
from click.testing import CliRunner

from browser import open_page
from weft.cli import weft
from weft.report.comparison import comparison, read_runs
from weft.results.collectives import COLLECTIVES
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
TRAFFIC = [
    {"collective": "allreduce", "sizes": ["4KiB", "64KiB"], "algorithms": ["ring"]},
    {"permutation": "64KiB"},
]


def run(path, **changes):
    scenario = {"name": path.name, "clock": "virtual", "fabric": FABRIC, "traffic": TRAFFIC}
    run_scenario(parse_scenario(scenario | changes)).save(path)
    return path


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """One run, the same over links of a tenth of the rate, and one with other traffic."""
    folder = tmp_path_factory.mktemp("compare")
    slow = run(folder / "slow", fabric=FABRIC | {"host_rate": "1Gb/s", "fabric_rate": "1Gb/s"})
    other = [{"collective": "allreduce", "sizes": ["64KiB"], "algorithms": ["in-network"]}, {"incast": "h0"}]
    return run(folder / "fast"), slow, run(folder / "other", traffic=other)


def parts_of(first, second):
    runs = read_runs(first, second)
    return runs, comparison(*runs)


def test_the_same_run_differs_in_nothing(directories):
    fast, _, _ = directories
    runs, parts = parts_of(fast, fast)
    assert [each.name for each in runs] == ["A", "B"]
    assert "differences" not in parts
    assert "loads" not in parts
    assert {row[-1] for row in parts["compared-results"].rows} == {"="}


def test_parameters_and_results_stand_side_by_side(directories):
    fast, slow, _ = directories
    runs, parts = parts_of(fast, slow)
    differing = {row[0]: row[1:] for row in parts["differences"].rows}
    assert differing["scenario"] == ["fast", "slow"]
    times = [row for row in parts["compared-results"].rows if row[1] == "time (µs)"]
    assert [row[0] for row in times] == ["allreduce, 4096", "allreduce, 65536", "permutation"]
    expected = [each.run.results.of(COLLECTIVES)[1].time_ps / 1e6 for each in runs]
    assert times[1][2:4] == [pytest.approx(value, abs=0.05) for value in expected]
    assert times[1][4] == pytest.approx(expected[1] / expected[0], abs=0.001)
    assert times[1][4] > 3


def test_results_without_a_counterpart_are_shown_alone(directories):
    fast, _, other = directories
    _, parts = parts_of(fast, other)
    rows = {(row[0], row[1]): row[2:] for row in parts["compared-results"].rows}
    # One left on either side: they are compared, under both names. What only one run has stands beside a dash.
    assert any(" → " in name and "in-network" in name for name, _ in rows)
    alone = [figures for (name, figure), figures in rows.items() if figure == "time (µs)" and "–" in figures]
    assert len(alone) == 1
    assert alone[0][1:] == ["–", "–"]


def test_the_command_prints_tables_and_writes_a_page(directories, tmp_path):
    pytest.importorskip("plotly")
    fast, slow, _ = directories
    page = tmp_path / "page.html"
    outcome = CliRunner().invoke(weft, ["compare", str(fast), str(slow), "-o", str(page)])
    assert outcome.exit_code == 0, outcome.output
    for words in ("What differs", "Results", "Whole runs", "Loads that differ", f"wrote {page}"):
        assert words in outcome.output
    opened = open_page(page)
    assert opened.console == []
    assert opened.dom.count('class="drawing"') == 2


def test_a_directory_without_results_is_refused(directories, tmp_path):
    outcome = CliRunner().invoke(weft, ["compare", str(directories[0]), str(tmp_path)])
    assert outcome.exit_code != 0
    assert "results.json" in str(outcome.exception)
