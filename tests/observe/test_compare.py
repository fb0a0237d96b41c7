"""`weft compare`: what differs between runs, which results belong together, and which run is the best."""

import csv
import json
import math
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

import weft as weft_package
from browser import open_page
from devtools import Page
from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.report.compared_runs import MOST_RUNS, read_runs
from weft.report.comparison import comparison
from weft.report.comparison_page import write_comparison
from weft.report.matching import matches
from weft.results.collectives import COLLECTIVES
from weft.results.model import Lateness
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


def compared(*paths, by=None):
    runs = read_runs(paths)
    return runs, comparison(runs, by)


def compare_command(*arguments):
    outcome = CliRunner().invoke(weft, ["compare", *map(str, arguments)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_the_same_run_differs_in_nothing(directories):
    fast, _, _ = directories
    runs, found = compared(fast, fast)
    assert [each.name for each in runs] == ["A", "B"]
    tables = found.tables()
    assert "differences" not in tables
    assert "loads" not in tables
    count = len(found.results)
    assert count > 3
    assert tables["compared-results"].rows == []
    assert tables["compared-results"].note == f"all {count} figures are equal in all runs"
    assert {row[-1] for row in found.tables(whole=True)["compared-results"].rows} == {"="}
    assert found.counters == []


def test_a_few_loads_are_printed_and_it_is_said_which_option_shows_more(directories):
    fast, slow, _ = directories
    _, found = compared(fast, slow)
    loads = found.tables()["loads"].rows
    assert len(loads) > 5
    few = found.tables(ports=5)["loads"]
    assert few.rows == loads[:5]
    assert few.note == f"5 of {len(loads)}: those that differ most"
    assert f"Loads that differ ({few.note}; --all shows more)" in compare_command(fast, slow)
    assert "Loads that differ\n" in compare_command(fast, slow, "--all")


def test_runs_that_are_equal_have_no_order(directories):
    fast, _, _ = directories
    _, found = compared(fast, fast)
    assert found.ranking.table().note.startswith("all are equal")


def test_parameters_and_results_stand_side_by_side(directories):
    fast, slow, _ = directories
    runs, found = compared(fast, slow)
    tables = found.tables()
    differing = {row[0]: row[1:] for row in tables["differences"].rows}
    assert differing["scenario"] == ["fast", "slow"]
    assert not any(key.startswith("effective.") for key in differing)
    assert any(each.name.startswith("effective.") for each in found.derived)
    times = [row for row in tables["compared-results"].rows if row[1] == "time (µs)"]
    assert [row[0] for row in times] == ["allreduce, 4096", "allreduce, 65536", "permutation"]
    expected = [each.run.results.of(COLLECTIVES)[1].time_ps / 1e6 for each in runs]
    assert times[1][2:4] == [pytest.approx(value, abs=0.05) for value in expected]
    assert times[1][4] == pytest.approx(expected[1] / expected[0], abs=0.001)
    assert times[1][4] > 3


def test_results_without_a_counterpart_are_shown_alone(directories):
    fast, _, other = directories
    _, found = compared(fast, other)
    rows = {(row[0], row[1]): row[2:] for row in found.tables()["compared-results"].rows}
    # Only their algorithms differ: they are compared, under both names. The smaller size has a dash.
    assert ("allreduce, ring, 65536 → allreduce, in-network, 65536", "time (µs)") in rows
    alone = [figures for (name, figure), figures in rows.items() if figure == "time (µs)" and "–" in figures]
    assert len(alone) == 1
    assert alone[0][1:] == ["–", "–"]


def test_parameters_of_scenarios_come_before_programs_and_the_seed(directories, tmp_path):
    fast, _, _ = directories
    runs = read_runs([fast, run(tmp_path / "other", seed=5, mtu=4096, ip_version=6)])
    made_by = {**runs[1].results["made_by"], "p4_hash": "0123456789abcdef" * 4}
    found = comparison([runs[0], replace(runs[1], results={**runs[1].results, "made_by": made_by})])
    hashes = next(each for each in found.parameters if each.name == "p4_hash")
    assert hashes.values[1] == "0123456789abcdef" * 4
    assert [len(str(cell)) for cell in hashes.cells()] == [12, 12]
    assert hashes.cells()[1] == "0123456789ab"
    names = [each.name for each in found.parameters]
    assert names.index("mtu_bytes") < names.index("p4_hash") < names.index("seed")
    assert names[-1] == "seed"
    assert {"mtu_bytes", "ip_version", "scenario"} <= set(names)


def test_three_runs_have_a_column_each_and_are_ranked(directories, tmp_path):
    fast, slow, _ = directories
    middle = run(tmp_path / "middle", fabric=FABRIC | {"host_rate": "5Gb/s", "fabric_rate": "5Gb/s"})
    runs, found = compared(slow, fast, middle)
    table = found.tables()["compared-results"]
    assert table.columns == ["result", "figure", "slow", "fast", "middle", "fast ratio", "middle ratio"]
    times = [[each.run.results.of(COLLECTIVES)[number].time_ps for number in (0, 1)] for each in runs]
    row = next(row for row in table.rows if row[:2] == ["allreduce, 65536", "time (µs)"])
    assert row[5] == pytest.approx(times[1][1] / times[0][1], abs=0.001)
    assert row[6] == pytest.approx(times[2][1] / times[0][1], abs=0.001)
    assert [each.name for each, _ in found.ranking.ranked] == ["fast", "middle", "slow"]
    # The score is the geometric mean of all three results' ratios to the first run, by hand.
    permutations = [each.results["flows"][0]["time_ps"] for each in runs]
    ratios = [
        *(mine / theirs for mine, theirs in zip(times[1], times[0], strict=True)),
        permutations[1] / permutations[0],
    ]
    assert found.ranking.ranked[0][1] == pytest.approx(math.prod(ratios) ** (1 / 3))


def test_readers_choose_what_ranks(directories):
    fast, slow, _ = directories
    # Bandwidth: the larger the better.
    _, found = compared(slow, fast, by="busbw")
    assert [each.name for each, _ in found.ranking.ranked] == ["fast", "slow"]
    assert "the largest first" in found.ranking.table().note
    _, found = compared(slow, fast, by="run.retransmissions")
    assert found.ranking.measure.name == "run.retransmissions"
    assert [place for place, _, _ in found.ranking.places()] == [1, 1]
    with refused(BadInputError, place="--by", problem="did you mean 'busbw'"):
        compared(slow, fast, by="busbv")


def test_a_run_with_invalid_times_is_named_and_not_ranked(directories):
    fast, slow, _ = directories
    runs = read_runs([fast, slow, fast.parent / "other"])
    late = Lateness(10**9, 10**9, 10**6, 1.0)
    runs[1] = replace(runs[1], run=replace(runs[1].run, results=replace(runs[1].run.results, lateness=late)))
    found = comparison(runs)
    assert "slow" not in [each.name for each, _ in found.ranking.ranked]
    (row,) = [row for row in found.ranking.table().rows if row[1] == "slow"]
    assert row[0] == "–"
    assert "INVALID" in row[2]


def test_results_of_more_runs_are_matched_by_labels_first():
    def row(algorithm, time):
        return {"measured": "collective", "collective": "allreduce", "algorithm": algorithm, "time_ps": time}

    found = list(matches([[row("ring", 1), row("tree", 2)], [row("tree", 3)], [row("ring", 4), row("own", 5)]]))
    times = {each.name: [None if row is None else row["time_ps"] for row in each.rows] for each in found}
    assert times == {
        "allreduce, ring": [1, None, 4],
        "allreduce, tree": [2, 3, None],
        "allreduce, own": [None, None, 5],
    }


def collective_row(algorithm, size_bytes, time_ps, **labels):
    head = {"measured": "collective", "collective": "allreduce", "algorithm": algorithm}
    return head | {"size_bytes": size_bytes, "time_ps": time_ps} | labels


def times_of(runs):
    return [[None if row is None else row["time_ps"] for row in each.rows] for each in matches(runs)]


def test_results_that_differ_in_more_than_one_label_have_no_counterpart():
    ours = [collective_row("ring", 4096, 1), collective_row("ring", 65536, 2)]
    theirs = [collective_row("tree", 65536, 3), collective_row("own", 1048576, 4)]
    assert times_of([ours, theirs]) == [[1, None], [2, 3], [None, 4]]


def test_of_three_runs_counterparts_differ_in_the_same_label():
    runs = [collective_row("ring", 4096, 1)], [collective_row("tree", 4096, 2)], [collective_row("tree", 65536, 3)]
    assert times_of(runs) == [[1, 2, None], [None, None, 3]]


def test_results_of_two_protocols_are_matched_with_their_own():
    ours = [collective_row("ring", 4096, 1, protocol="simple"), collective_row("ring", 4096, 2, protocol="ll")]
    theirs = [collective_row("ring", 4096, 3, protocol="ll"), collective_row("ring", 4096, 4, protocol="simple")]
    assert times_of([ours, theirs]) == [[1, 4], [2, 3]]
    names = [each.name for each in matches([ours, theirs])]
    assert names == ["allreduce, simple", "allreduce, ll"]


def test_a_result_of_a_protocol_is_compared_with_one_without():
    found = list(matches([[collective_row("ring", 4096, 1)], [collective_row("ring", 4096, 2, protocol="ll")]]))
    assert [each.name for each in found] == ["allreduce → allreduce, ll"]


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A sweep of eight points, two of which differ in their seed alone."""
    folder = tmp_path_factory.mktemp("eight")
    scenario = folder / "scenario.yaml"
    scenario.write_text(
        "clock: virtual\nfaults: {loss: 0.01}\nobserve: {queues: all, interval: 1us}\n"
        "fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 3, host_rate: 100Gbps}\n"
        "traffic: [{incast: h0, bytes_per_sender: 64KiB}]\n"
    )
    grid = {"transport.congestion_control": ["hpcc", "swift"], "traffic[0].bytes_per_sender": ["16KiB", "64KiB"]}
    result = weft_package.sweep(scenario, folder / "out", grid=grid, repeat=2)
    assert result.ok
    return result.directory


@pytest.mark.slow
def test_a_sweep_stands_for_its_points(repeated, tmp_path):
    runs, found = compared(repeated)
    assert [each.name for each in runs][:3] == [
        "hpcc, bytes_per_sender=16KiB, seed=1",
        "hpcc, bytes_per_sender=16KiB, seed=2",
        "hpcc, bytes_per_sender=64KiB, seed=1",
    ]
    assert len(runs) == 8
    # Points keep their scenario, of which results say only what is not the traffic.
    names = [each.name for each in found.parameters]
    assert "traffic[0].bytes_per_sender" in names
    assert names[-1] == "seed"
    text = compare_command(repeated)
    # Eight runs are more than a terminal has room for: the first stands in both tables.
    assert text.count("\nparameter") == 2
    assert len(re.findall(r"^[1-8]  ", text, re.MULTILINE)) == 8


@pytest.mark.slow
def test_exports_parse_back(repeated, tmp_path):
    _, found = compared(repeated)
    files = tmp_path / "runs.csv", tmp_path / "runs.md"
    compare_command(repeated, "--csv", files[0], "--markdown", files[1])
    with files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = found.names
    time = next(row for row in rows if row["section"] == "result" and row["figure"] == "time (µs)")
    (expected,) = [each for each in found.results if each.name == "time (µs)"]
    assert [float(time[name]) for name in names] == list(expected.values)
    assert float(time[f"{names[3]} ratio"]) == expected.values[3] / expected.values[0]
    rank = next(row for row in rows if row["section"] == "rank")
    assert sorted(int(rank[name]) for name in names) == list(range(1, 9))
    assert not any(row["section"] == "counter" for row in rows)
    lines = files[1].read_text().splitlines()
    begin = lines.index("## What differs") + 2
    header = [cell.strip().replace("\\", "") for cell in lines[begin].strip("|").split("|")]
    assert header == ["parameter", *names]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines[begin : lines.index("## Results") - 1]}
    assert widths == {len(names) + 2}
    compare_command(repeated, "--csv", files[0], "--all")
    assert "\ncounter," in files[0].read_text()


def test_names_in_exports_are_no_markup(directories, tmp_path):
    fast, slow, _ = directories
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "results.json").write_bytes((fast / "results.json").read_bytes())
    target = odd.rename(tmp_path / "a|b *c* <script>x")
    compare_command(target, slow, "--markdown", tmp_path / "runs.md", "-o", tmp_path / "runs.html")
    text = (tmp_path / "runs.md").read_text()
    assert "| a\\|b \\*c\\* \\<script\\>x |" in text
    assert "<script>x" not in (tmp_path / "runs.html").read_text()


@pytest.mark.slow
def test_a_page_has_one_cursor_over_all_curves(repeated, tmp_path):
    _, found = compared(repeated)
    page = write_comparison(found, tmp_path / "page.html")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])["figures"]
    curves = data["compared-queues"]["curves"]
    # The same ports of all runs, a colour for each run.
    assert {each["colour"] for each in curves} == set(range(8))
    assert [each["name"].split(": ")[1] for each in curves[:8]] == [curves[0]["name"].split(": ")[1]] * 8
    with Page(page.as_uri(), tmp_path, 1300, 3000) as opened:
        assert opened.console == []
        opened.value(
            """(() => { const plot = place("compared-queues"), axis = plot._fullLayout.xaxis;
            const left = plot.getBoundingClientRect().left + axis._offset + axis.d2p(2);
            plot.dispatchEvent(new PointerEvent("pointermove", { clientX: left, bubbles: true })); })()"""
        )
        ranges = "timed.map((name) => String(place(name)._fullLayout.xaxis.range))"
        assert len(set(opened.value(ranges))) == 1
        lines = "timed.map((name) => place(name).querySelector('.cursor').style.left).join()"
        assert opened.value(lines).count("px") == 2
        # The value in a curve's button is its last sample until then.
        first = curves[0]
        expected = [y for x, y in zip(first["x"], first["y"], strict=True) if x <= 2.0000001][-1]
        shown = opened.value("document.querySelector('#chips-compared-queues output').textContent")
        assert float(shown.split()[0]) == pytest.approx(expected, rel=1e-3)
        opened.value("void Plotly.relayout(place('compared-queues'), {'xaxis.range': [1, 3]})")
        opened.wait_for("String(place('compared-rates')._fullLayout.xaxis.range) === '1,3'")
        assert opened.value("document.querySelectorAll('details').length") >= 1
        assert opened.console == []


def test_the_command_prints_tables_and_writes_a_page(directories, tmp_path):
    pytest.importorskip("plotly")
    fast, slow, _ = directories
    page = tmp_path / "page.html"
    text = compare_command(fast, slow, "-o", page)
    for words in ("What differs", "Results", "Whole runs", "Ranking by time", "Loads that differ", f"wrote {page}"):
        assert words in text
    assert "--all shows them" in text
    assert "Counters that differ" not in text
    assert "Counters that differ" in compare_command(fast, slow, "--all")
    opened = open_page(page)
    assert opened.console == []
    assert opened.dom.count('class="drawing"') == 2


def test_a_directory_without_results_is_refused(directories, tmp_path):
    outcome = CliRunner().invoke(weft, ["compare", str(directories[0]), str(tmp_path)])
    assert outcome.exit_code != 0
    assert "results.json" in str(outcome.exception)


def test_one_run_or_too_many_are_refused(directories):
    with refused(BadInputError, problem="1 run to compare", valid=f"2 to {MOST_RUNS}"):
        read_runs([directories[0]])
    with refused(BadInputError, problem="65 runs to compare", valid=f"2 to {MOST_RUNS}"):
        read_runs([directories[0]] * 65)
