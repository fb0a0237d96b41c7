"""A kind of traffic is one file of a folder: the one of docs/howto/traffic.md, added and run."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import BadInputError
from weft.cli import weft
from weft.paths import ROOT
from weft.results.kinds import result_kinds
from weft.results.results_file import read_results
from weft.run import traffic_kinds as folder
from weft.run.runner import run_scenario
from weft.scenario import TRAFFIC_KINDS, parse_scenario
from weft.sweeps.store import Outcome, State
from weft.sweeps.summary import summarise
from weft.sweeps.table import table_rows

PAGE = ROOT / "docs" / "howto" / "traffic.md"
FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}


def of_page(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


@pytest.fixture
def neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of kinds."""
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "neighbours.py").write_text(of_page("python"), encoding="utf-8")
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(kinds)])
    TRAFFIC_KINDS.look_again()
    yield
    TRAFFIC_KINDS.look_again()
    sys.modules.pop("weft.run.traffic_kinds.neighbours", None)


def test_the_kinds_are_those_of_the_folder() -> None:
    files = {path.stem for path in Path(folder.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert set(TRAFFIC_KINDS) == files
    assert all(kind in section.model_fields for kind, section in TRAFFIC_KINDS.items())


@pytest.mark.usefixtures("neighbours")
def test_a_new_kind_is_one_file(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"clock: virtual\nfabric: {json.dumps(FABRIC)}\n{of_page('yaml')}", encoding="utf-8")
    out = tmp_path / "out"
    done = CliRunner().invoke(weft, ["run", str(scenario), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "neighbours: 8 flows, 524288 B" in done.output
    (flows,) = json.loads((out / "results.json").read_text())["flows"]
    assert (flows["pattern"], flows["bytes_delivered"]) == ("neighbours", 8 * 65536)
    assert len((out / "pattern-0-flows.csv").read_text().splitlines()) == 9
    assert "2 neighbours: the slowest flow took" in done.output
    tree = json.loads((out / "results.json").read_text())
    assert list(tree)[:6] == ["made_by", "collectives", "flows", "workloads", "training_steps", "neighbours"]
    (spread,) = tree["neighbours"]
    assert spread["distance"] == 2
    assert spread["spread"] >= 1
    reported = CliRunner().invoke(weft, ["report", str(out)])
    assert reported.exit_code == 0, reported.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<h2>Neighbours</h2>" in page
    assert page.index("<h2>Patterns</h2>") < page.index("<h2>Neighbours</h2>") < page.index('id="figure-neighbours-1"')
    drawn = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["figures"]["neighbours-1"]
    assert (drawn["drawing"], drawn["curves"][0]["x"]) == ("curves", [2])
    assert drawn["curves"][0]["y"] == [spread["spread"]]
    reference = CliRunner().invoke(weft, ["schema", "--markdown"]).output
    assert "## traffic[] (neighbours)" in reference
    assert "What each host writes to each of them." in reference
    of_results = CliRunner().invoke(weft, ["schema", "--results"]).output
    assert "| `neighbours` | list of object | Of each item of neighbours. |" in of_results
    assert "## `neighbours[]`" in of_results
    items = json.loads(CliRunner().invoke(weft, ["schema"]).output)["properties"]["traffic"]["items"]["anyOf"]
    assert any("neighbours" in item["properties"] for item in items)


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            {"neighbours": "64KiB", "distance": 4},
            {"place": "scenario: traffic[0].distance", "problem": "4 of 4 hosts"},
        ),
        (
            {"neighbours": "64KiB", "distances": 2},
            {"place": "scenario", "problem": "distances'; did you mean"},
        ),
        (
            {"neighbour": "64KiB"},
            {"place": "scenario: traffic[0].neighbour", "problem": "is no kind of traffic; did you"},
        ),
        ({"flood": "64KiB"}, {"place": "scenario: traffic[0]", "problem": "needs exactly one of"}),
        (
            {"neighbours": "64KiB", "incast": "h0"},
            {"place": "scenario: traffic[0]", "problem": "needs exactly one of"},
        ),
    ],
)
def test_its_items_are_checked(item: dict[str, object], words: dict[str, str]) -> None:
    with refused(BadInputError, **words):
        parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [item]})


@pytest.mark.usefixtures("neighbours")
def test_its_results_are_read_back_and_checked(tmp_path: Path) -> None:
    items = [{"neighbours": "64KiB"}, {"incast": "h0"}]
    result = run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": items}))
    path = result.save(tmp_path)
    kind = next(kind for kind in result_kinds() if kind.key == "neighbours")
    assert read_results(path).of(kind) == result.of(kind) != []
    tree = json.loads(path.read_text())
    tree["neighbours"][0]["distance"] = "far"
    path.write_text(json.dumps(tree))
    with refused(BadInputError, problem="distance: must be a whole number"):
        read_results(path)


@pytest.mark.usefixtures("neighbours")
def test_sweeps_compare_its_figures() -> None:
    results = {
        "neighbours": [{"distance": 2, "spread": 1.5}],
        "flows": [{"pattern": "neighbours", "time_ps": 10**6}],
    }
    point = SimpleNamespace(identity="a", parameters={})
    rows = table_rows([(point, Outcome(State.FINISHED), results)], [])
    assert [row["measured"] for row in rows] == ["flow", "neighbour"]
    summary = summarise(rows, [])
    assert "spread" in summary.headings()
    assert "1.50" in summary.cells(rows[1])
