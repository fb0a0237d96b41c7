"""Reports: right figures, one page with everything in it, and a browser that is content with it."""

import json
import re
from html import escape
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from browser import Elements, open_page
from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.recording.unions import unions
from weft.report.figures import all_figures
from weft.report.page import report_page, write_report
from weft.report.run_directory import RunDirectory
from weft.report.series import (
    MOST_POINTS,
    PortSeries,
    distribution,
    heat_map,
    port_series,
    rate_slots,
    rates_bps,
    thinned,
)
from weft.report.sweep_page import write_sweep_report
from weft.report.utilisation import colour_of, width_of
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.sweeps import sweep as weft_sweep

pytest.importorskip("plotly")

STATES = {"state-registers", "state-counted", "state-entries"}
FIGURES = {"queues", "rates", "heat", "fct", "slowdown", "timeline", "int"} | STATES


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    scenario = parse_scenario(
        {
            "name": "a-report",
            "clock": "virtual",
            "fabric": {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
            "faults": {"loss": 0.001},
            "traffic": [
                {"collective": "allreduce", "sizes": ["64KiB"], "algorithms": ["ring", "in-network"]},
                {"incast": "h0", "bytes_per_sender": "128KiB"},
            ],
            "observe": {
                "interval": "1us", "queues": "all", "flows": True, "int": ["h3->h0"], "timelines": True,
                "drops": True, "pauses": True, "state_series": ["port_tx_bytes[0..3]", "ipv4_lpm", "ipv4_counter"],
            },
        }
    )  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "run"
    path.mkdir()
    run_scenario(scenario).save(path)
    return path


@pytest.fixture(scope="module")
def run(directory):
    return RunDirectory.read(directory)


# --- figures


def test_utilisation_is_bytes_sent_over_bytes_that_fit(run):
    names = run.names("ports", "port").texts().tolist()
    row = names.index("p0l0:1")
    sent_bits = 8 * int(run.integers("ports", "transmitted_bytes")[row])
    could_bits = 10**10 * sum(phase.end_ps - phase.start_ps for phase in run.phases) / 1e12
    assert run.utilisation["p0l0:1"] == pytest.approx(sent_bits / could_bits)
    assert all(0 <= share <= 1 for share in run.utilisation.values())
    # The incast's target is the busiest.
    assert max(run.utilisation, key=run.utilisation.__getitem__) == "p0l0:1"


def test_rates_add_up_to_what_was_sent(run):
    interval_ps = 10**6
    series = port_series(run)
    edges = rate_slots(series, interval_ps)
    for each in series:
        rates = rates_bps(each, edges)
        assert (rates * np.diff(edges)).sum() / 8e12 == pytest.approx(int(each.transmitted_bytes[-1]))


def test_figures_are_of_what_was_recorded(run):
    figures = all_figures(run)
    assert set(figures) == FIGURES
    assert figures["queues"]["curves"][0]["name"] == "p0l0:1 class 3"
    largest_kb = max(figures["queues"]["curves"][0]["y"])
    assert largest_kb == pytest.approx(int(run.integers("queues", "queue_bytes").max()) / 1e3)
    for name in ("fct", "slowdown"):
        for curve in figures[name]["curves"]:
            assert curve["y"][-1] == 1.0
            assert all(a <= b for a, b in pairwise(curve["x"]))
    assert min(figures["slowdown"]["curves"][0]["x"]) >= 1.0
    assert {bar["kind"] for bar in figures["timeline"]["bars"]} == {"write", "wait", "aggregate"}
    assert figures["timeline"]["rows"] == ["h0", "h1", "h2", "h3"]


def test_a_curve_keeps_its_extremes():
    values = np.zeros(50_000)
    values[[777, 31_111]] = [5.0, -3.0]
    times, kept = thinned(np.arange(50_000), values)
    assert len(times) <= MOST_POINTS + 2
    assert dict(zip(times.tolist(), kept.tolist(), strict=True)).items() >= {777: 5.0, 31_111: -3.0}.items()


def test_a_heat_map_has_each_slots_largest_queue():
    def of(name, *rows):
        times, depths = np.array(rows, np.int64).T
        return PortSeries(name, name, times, depths, np.zeros(len(rows), np.int64))

    large = of("large", (0, 0), (500, 300), (501, 0), (900, 100), (1000, 0))
    names, times, depths = heat_map([of("small", (0, 10), (1000, 0)), of("empty", (0, 0), (1000, 0)), large])
    assert names == ["large", "small"]
    assert depths.max(axis=1).tolist() == [300, 10]
    # It stands until the next sample.
    assert depths[0, np.searchsorted(times, 950 / 1e6)] == 100
    assert depths[1, np.searchsorted(times, 600 / 1e6)] == 10


@pytest.mark.parametrize(
    ("intervals", "gap", "expected"),
    [
        ([], 0, []),
        ([(0, 5), (3, 8), (10, 12)], 0, [(0, 8), (10, 12)]),
        ([(10, 12), (0, 9), (2, 3)], 1, [(0, 12)]),
        ([(4, 4), (6, 7)], 0, [(6, 7)]),
        ([(0, 2), (2, 4)], 0, [(0, 4)]),
    ],
)
def test_unions_of_intervals(intervals, gap, expected):
    starts, ends = (np.array([each[side] for each in intervals], np.int64) for side in (0, 1))
    assert list(zip(*(side.tolist() for side in unions(starts, ends, gap)), strict=True)) == expected


def test_a_distribution_ends_at_all_of_it():
    values, shares = distribution(np.arange(100_000)[::-1])
    assert len(values) <= MOST_POINTS
    assert (values[0], values[-1], shares[-1]) == (0, 99_999, 1.0)


def test_colours_grow_darker_and_lines_wider():
    shares = [0.0, 0.3, 0.6, 1.0, 3.0]
    assert len({colour_of(share) for share in shares}) == 4
    assert [width_of(share) for share in shares] == sorted(width_of(share) for share in shares)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour_of(share)) for share in shares)


def test_rates_stay_below_the_lines_and_lose_nothing():
    sent = np.array([0, 1500, 1500, 3000], np.int64)
    series = PortSeries("p", "p", np.arange(4) * 1000, np.zeros(4, np.int64), sent)
    edges = np.arange(6) * 1000
    line_bps = 1000 * 8e9  # 1000 bytes a slot
    rates = rates_bps(series, edges, line_bps)
    assert (rates / 8e9).round(6).tolist() == [1000, 500, 1000, 500, 0]


# --- the page


def test_the_page_is_the_same_every_time_and_needs_nothing_else(run, directory):
    page = report_page(run)
    assert page == report_page(RunDirectory.read(directory))
    elements = Elements(page)
    assert "link" in elements.tags  # the icon, which is empty
    assert not re.search(r"""<(script|img|link|iframe)[^>]*\s(src|href)=["']?(https?:)?//""", page)
    assert "default-src 'none'" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert set(data["figures"]) == FIGURES | {"collectives-0"}
    assert [phase["name"] for phase in data["phases"]] == [phase.name for phase in run.phases]


def test_names_in_a_run_are_not_taken_for_markup(directory, tmp_path):
    for file in directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    results = json.loads((tmp_path / "results.json").read_text())
    results["made_by"]["scenario"] = "<script>alert(1)</script>"
    results["phases"][0]["name"] = "</script><script>alert(2)</script>"
    (tmp_path / "results.json").write_text(json.dumps(results))
    page = report_page(RunDirectory.read(tmp_path))
    assert "<script>alert" not in page


def test_an_invalid_run_marks_every_figure(directory, tmp_path):
    for file in directory.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    results = json.loads((tmp_path / "results.json").read_text())
    late = {"largest_ps": 10**9, "percentile_99_ps": 10**8, "path_rtt_ps": 10**7, "dilation": 1.0}
    (tmp_path / "results.json").write_text(json.dumps(results | {"lateness": late}))
    page = report_page(RunDirectory.read(tmp_path))
    assert '<body class="invalid">' in page
    assert "times are INVALID" in page
    assert "No time, rate or queue on this page is to be trusted" in page
    assert '<body class="valid">' in report_page(RunDirectory.read(directory))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_it_offline_without_complaint(directory, tmp_path, scheme):
    page = write_report(directory, tmp_path / "report.html")
    opened = open_page(page, scheme)
    # The page's policy forbids every request: an attempted one would appear here, as errors do.
    assert opened.console == []
    assert f'data-theme="{scheme}"' in opened.dom
    elements = Elements(opened.dom)
    assert {f"figure-{name}" for name in FIGURES} <= set(elements.ids)
    assert all("js-plotly-plot" in elements.ids[f"figure-{name}"]["class"] for name in FIGURES)
    assert elements.classes["main-svg"] >= len(FIGURES)
    assert elements.classes["heatmaplayer"] >= 1
    for title in (
        "Topology and utilisation",
        "Queues",
        "Timeline",
        "Collectives",
        "Ports",
        "Drops",
        "Slowest messages",
    ):
        assert f"<h2>{title}</h2>" in opened.dom
    assert elements.classes["number"] > 50


@pytest.mark.slow
def test_a_browser_draws_figures_of_kinds_of_results(tmp_path):
    layers = [{"gradients": "8KiB", "forward": "5us", "backward": "10us"}]
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 3},
            "traffic": [
                {"training_step": "data-parallel", "layers": layers, "algorithms": ["ring"]},
                {"workload": {"flow_sizes": "fb_hadoop", "load": 0.3, "duration": "1ms"}},
            ],
        }
    )
    run_scenario(scenario).save(tmp_path)
    opened = open_page(write_report(tmp_path, tmp_path / "report.html"))
    assert opened.console == []
    elements = Elements(opened.dom)
    drawn = {name for name, found in elements.ids.items() if "js-plotly-plot" in found.get("class", "")}
    assert drawn == {"figure-training_steps-0", "figure-workloads-0", "figure-workloads-1"}


@pytest.mark.slow
def test_a_browser_draws_a_sweep_without_complaint(tmp_path):
    pytest.importorskip("distributed")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 3}\n"
        "traffic: [{incast: h0, bytes_per_sender: 8KiB}]\n"
    )
    grid = {
        "traffic[0].bytes_per_sender": ["8KiB", "64KiB"],
        "transport.congestion_control": ["hpcc", "swift"],
    }
    out = weft_sweep(scenario, tmp_path / "out", grid=grid).directory
    opened = open_page(write_sweep_report(out, tmp_path / "sweep.html"))
    assert opened.console == []
    elements = Elements(opened.dom)
    # Sizes have a panel each where they are not the axis.
    drawn = {name for name in elements.ids if name.startswith("figure-")}
    assert {"figure-axis-0", "figure-axis-1", "figure-axis-2-0", "figure-axis-2-1"} <= drawn
    assert all("js-plotly-plot" in found["class"] for name, found in elements.ids.items() if name.startswith("figure-"))
    assert elements.tags["a"] == 4


@pytest.mark.slow
def test_a_page_fits_a_phone(directory, tmp_path):
    """Nothing is wider than 390 pixels, but what scrolls in a box of its own."""
    page = escape(report_page(RunDirectory.read(directory)), quote=True)
    frame = tmp_path / "phone.html"
    frame.write_text(
        f"""<!doctype html><body><iframe id="phone" width="390" height="800" srcdoc="{page}"></iframe><script>
        const phone = document.getElementById("phone");
        phone.onload = () => setTimeout(() => {{
          const page = phone.contentDocument.documentElement;
          const plots = [...page.querySelectorAll(".js-plotly-plot")].map((plot) => plot._fullLayout.width);
          document.body.id = `page-${{page.clientWidth}}-${{page.scrollWidth}}-${{Math.max(...plots)}}`;
        }}, 500);</script>"""
    )
    ids = Elements(open_page(frame).dom).ids
    (found,) = [each for each in ids if each.startswith("page-")]
    visible, needed, widest_plot = (float(each) for each in found.removeprefix("page-").split("-"))
    assert visible <= 390
    assert needed == visible
    assert 250 <= widest_plot <= visible


def test_a_run_that_recorded_nothing_has_a_page_all_the_same(tmp_path):
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "fabric": {"planes": 1, "leaves": 1, "spines": 0},
            "traffic": [{"incast": "h0"}],
        }
    )
    run_scenario(scenario).save(tmp_path)
    page = report_page(RunDirectory.read(tmp_path))
    assert 'class="figure"' not in page
    assert "incast on h0, plane 0" in page
    assert len(page) < 100_000


def test_the_command_writes_into_the_directory(directory):
    done = CliRunner().invoke(weft, ["report", str(directory)])
    assert done.exit_code == 0, done.output
    assert (directory / "report.html").stat().st_size > 1_000_000


def test_a_directory_that_is_none_of_a_runs_is_refused(tmp_path):
    with refused(BadInputError, place="test_a_directory_that_is_none_0", problem="no results.json"):
        write_report(tmp_path, tmp_path / "report.html")
    for text, message in (
        ("{", "is no JSON: EOF"),
        ("{}", "made_by: is missing"),
        ("[]", "must be an object"),
    ):
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(BadInputError, match=message):
            write_report(tmp_path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
