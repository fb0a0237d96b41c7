"""`weft.plots`: arrays equal results, and pictures have a point at each value's place."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import weft
from plotted import difference, difference_of_curves, polylines
from tests.refusals import refused
from weft.cli import weft as command
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.report.figures import FIGURES
from weft.report.plot_svg import svg_of
from weft.report.plots import _AXES
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

SCENARIO = """
name: observing
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}
clock: virtual
traffic:
  - {collective: allreduce, algorithms: [ring, in-network], sizes: [4KiB, 16KiB, 64KiB], dtype: int32}
  - {incast: h0, bytes_per_sender: 64KiB}
observe: {queues: all, flows: true, interval: 1us}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plots")
    (folder / "scenario.yaml").write_text(SCENARIO)
    out = ["--out", str(folder / "runs" / "observing")]
    done = CliRunner().invoke(command, ["run", str(folder / "scenario.yaml"), *out])
    assert done.exit_code == 0, done.output
    axis = ["--grid", "fabric.spines=1,2", "--out", str(folder / "runs" / "sweep"), "--workers", "1"]
    done = CliRunner().invoke(command, ["sweep", str(folder / "scenario.yaml"), *axis])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def run(place: Path) -> Path:
    return place / "runs" / "observing"


def arrays(curves: Sequence[weft.PlotCurve]) -> dict[str, tuple[list[float], list[float]]]:
    return {each.name: (np.asarray(each.x).tolist(), each.y.tolist()) for each in curves}


def test_times_of_collectives_are_those_of_the_results(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())["collectives"]
    expected: dict[str, tuple[list[float], list[float]]] = {}
    for each in results:
        x, y = expected.setdefault(each["algorithm"], ([], []))
        x.append(each["size_bytes"])
        y.append(each["time_ps"] / 1e6)
    plot = weft.plot(run, "Times of allreduce by size")
    assert (plot.x_title, plot.y_title) == ("size (B)", "time (µs)")
    assert arrays(plot.curves) == expected
    curves = [expected[each.name] for each in plot.curves]
    assert difference_of_curves(plot.svg(), curves, True, True, False) == ""


def test_each_protocol_has_a_curve(tmp_path: Path) -> None:
    item = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["4KiB", "64KiB"]}
    fabric = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    traffic = [{**item, "protocol": protocol} for protocol in ("ll", "ll128")]
    scenario = {"name": "protocols", "clock": "virtual", "fabric": fabric, "traffic": traffic}
    run_scenario(parse_scenario(scenario)).save(tmp_path)
    plot = weft.plot(tmp_path, "Times of allreduce by size")
    assert [(each.name, len(each.y)) for each in plot.curves] == [("ring, ll", 2), ("ring, ll128", 2)]


def test_queues_are_those_of_the_table(run: Path) -> None:
    port = "p0l0:1"
    with (run / "queues.csv").open(newline="") as file:
        rows = [each for each in csv.DictReader(file) if each["port"] == port and each["priority_class"] == "3"]
    depths = dict(weft_points(run, "Queues", f"{port} class 3"))
    assert max(depths.values()) > 0
    assert {int(each["time_ps"]) / 1e6: int(each["queue_bytes"]) / 1e3 for each in rows}.items() <= depths.items()


def weft_points(run: Path, title: str, name: str) -> list[tuple[float, float]]:
    (curve,) = [each for each in weft.plot(run, title).curves if each.name == name]
    return list(zip(np.asarray(curve.x).tolist(), curve.y.tolist(), strict=True))


def test_a_sweep_has_its_table(place: Path) -> None:
    sweep = place / "runs" / "sweep"
    with (sweep / "table.csv").open(newline="") as file:
        times = {int(each["time_ps"]) / 1e6 for each in csv.DictReader(file) if each["time_ps"]}
    found = [plot for title, plot in weft.plots(sweep).items() if title.startswith("Time against ")]
    drawn = {round(value, 6) for plot in found for curve in plot.curves for value in curve.y.tolist()}
    assert drawn == {round(each, 6) for each in times}


def test_every_picture_has_the_points_of_its_arrays(place: Path) -> None:
    seen = set()
    for directory in ("observing", "sweep"):
        for title, plot in weft.plots(place / "runs" / directory).items():
            seen.add(plot.shape)
            assert difference(plot.svg(), plot) == "", title
            assert plot._repr_svg_() == plot.svg()
    assert {"line", "step before", "step after"} <= seen


def test_the_comparison_finds_a_moved_point(run: Path) -> None:
    plot = weft.plot(run, "Times of allreduce by size")
    first, *others = plot.curves
    moved = replace(plot, curves=(replace(first, y=first.y * np.array([1, 1, 1.01])), *others))
    assert "pixels from its place" in difference(plot.svg(), moved)
    fewer = replace(plot, curves=(replace(first, x=first.x[1:], y=first.y[1:]), *others))
    assert "points, not" in difference(plot.svg(), fewer)


@pytest.mark.parametrize("shape", ["bars", "stacked bars"])
def test_bars_have_lengths_of_their_values(shape: str) -> None:
    rows = ("a", "b")
    curves = (weft.PlotCurve("one", rows, np.array([1.0, 2.5])), weft.PlotCurve("two", rows, np.array([0.5, 4.0])))
    plot = weft.Plot("t", "", "µs", curves, shape, "category")  # type: ignore[arg-type]
    assert difference(plot.svg(), plot) == ""
    longer = replace(plot, curves=(curves[0], weft.PlotCurve("two", rows, np.array([0.5, 4.1]))))
    assert "too long or too short" in difference(plot.svg(), longer)


def test_another_title_is_refused_with_the_valid_ones(run: Path) -> None:
    assert weft.plot(run, "queues").title == "Queues"
    titles = list(weft.plots(run))
    assert {"Queues", "Rates", "Message completion times", "Slowdown"} < set(titles)
    with refused(BadInputError, place="observing", valid=", ".join(titles), problem="has no plot 'Queue'") as refusal:
        weft.plot(run, "Queue")
    assert refusal.value.hint == "did you mean 'Queues'?"


def test_a_run_without_plots_says_what_to_observe(tmp_path: Path) -> None:
    fabric = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    traffic = [{"collective": "allreduce", "algorithms": ["ring"], "sizes": ["4KiB"]}]
    run_scenario(parse_scenario({"name": "plain", "clock": "virtual", "fabric": fabric, "traffic": traffic})).save(
        tmp_path
    )
    assert weft.plots(tmp_path) == {}
    with refused(BadInputError, place=tmp_path.name, problem="this run recorded no plots") as refusal:
        weft.plot(tmp_path, "Queues")
    assert "observe.queues" in refusal.value.hint


def test_a_console_shows_how_many_curves_a_plot_has(run: Path) -> None:
    plot = weft.plot(run, "Times of allreduce by size")
    assert repr(plot) == "<Plot 'Times of allreduce by size': 2 curves; .svg() is the picture>"
    assert repr(plot.curves[0]) == "<PlotCurve 'in-network': 3 points>"


@pytest.mark.parametrize("shape", ["line", "step after", "bars", "stacked bars"])
def test_a_plot_without_values_says_so(shape: str) -> None:
    plot = weft.Plot("t", "", "µs", (), shape)  # type: ignore[arg-type]
    assert ">no values<" in plot.svg()


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    "values", [(1.0, np.inf), (1.0, np.nan), (-1.7e308, 1.7e308, 2.0), (5e-324, 1e-323), (1e-300, 1e300)]
)
def test_values_at_the_ends_of_floats_are_drawn_or_left_out(scale: str, values: tuple[float, ...]) -> None:
    y = np.array(values)
    line = weft.Plot("t", "", "µs", (weft.PlotCurve("one", np.arange(1.0, len(y) + 1), y),), y_scale=scale)  # type: ignore[arg-type]
    rows = tuple(map(str, range(len(y))))
    bars = weft.Plot("t", "", "µs", (weft.PlotCurve("one", rows, y), weft.PlotCurve("two", rows, y)), "stacked bars")
    for svg in (line.svg(), bars.svg()):
        assert not re.search(r"[\" ,]-?(nan|inf)", svg)
    (vertices,) = polylines(line.svg())
    assert len(vertices) == sum(abs(value) <= 1e300 and (scale == "linear" or value > 0) for value in values)


def test_a_dashed_curve_has_a_dashed_sample_in_the_legend() -> None:
    curves = tuple(weft.PlotCurve(f"c{number}", np.array([0.0, 1.0]), np.array([0.0, number])) for number in range(20))
    svg = weft.Plot("t", "", "µs", curves).svg()
    assert re.findall(r'<polyline[^>]*stroke-dasharray="([^"]*)"', svg) == re.findall(
        r'<path[^>]*stroke-dasharray="([^"]*)"', svg
    )
    assert "stroke-dasharray" in svg


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with refused(BadInputError, place=tmp_path.name, problem="has no results.json"):
        weft.plots(tmp_path)


def test_names_cannot_become_elements_and_control_characters_are_replaced() -> None:
    name = "a\x00\x1b<script>&\ud800"
    plot = weft.Plot(name, name, name, (weft.PlotCurve(name, np.array([1.0, 2.0]), np.array([3.0, 4.0])),))
    root = ElementTree.fromstring(plot.svg())
    assert not [each for each in root.iter() if each.tag.endswith("script")]
    assert "a\ufffd\ufffd<script>&\ufffd" in [each.text for each in root.iter()]


@pytest.mark.parametrize(
    ("x", "y", "points"),
    [([1.0], [0.0], 1), ([0.0, 0.0], [0.0, 0.0], 2), ([1e-300, 1e300], [-5.0, 1e300], 2), ([0.0, 1.0], [2.0, 2.0], 2)],
)
def test_extreme_values_have_a_picture(x: list[float], y: list[float], points: int) -> None:
    plot = weft.Plot("t", "x", "y", (weft.PlotCurve("c", np.array(x), np.array(y)),))
    (drawn,) = polylines(svg_of(plot))
    assert drawn.shape == (points, 2)
    assert np.isfinite(drawn).all()
    log = replace(plot, x_scale="log", y_scale="log")
    assert all(np.isfinite(each).all() for each in polylines(svg_of(log)))


def test_axes_are_of_figures_that_the_page_has() -> None:
    assert set(_AXES) <= set(FIGURES)


def test_the_page_shows_what_works(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    (program,) = [each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "weft.plots" in each]
    monkeypatch.chdir(place)
    exec(compile(program, "docs/results.md", "exec"), {})
    assert "waiting (kB)" in capsys.readouterr().out
    assert polylines((place / "queues.svg").read_text(encoding="utf-8"))


def test_no_other_package_is_needed(run: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('plotly', 'cairosvg', 'IPython', 'pandas', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "import weft\n"
        "print(weft.plot(sys.argv[1], 'Queues').svg())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, run], capture_output=True, text=True, check=True)
    assert difference(done.stdout, weft.plot(run, "Queues")) == ""
