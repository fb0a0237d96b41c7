"""A collective by one file of a user's: from Python, in a scenario, on the command line; docs/howto/collective.md."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import BadInputError, Fabric
from weft.cli import weft
from weft.paths import ROOT
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.topologies import leaf_spine

EXAMPLE = ROOT / "examples" / "scan.py"
SCAN = f"{EXAMPLE}:Scan"
SCENARIO = """\
clock: virtual
fabric: {planes: 2, leaves: 2, spines: 1, hosts_per_leaf: 2}
traffic:
  - {collective: mine.py:Scan, sizes: [40KB], algorithms: [chain]}
"""


@pytest.fixture
def user(tmp_path):
    """Write a scenario and the file that it names, the example with some text replaced."""

    def write(old="", new="", scenario=SCENARIO):
        (tmp_path / "mine.py").write_text(EXAMPLE.read_text(encoding="utf-8").replace(old, new, 1))
        path = tmp_path / "scenario.yaml"
        path.write_text(scenario, encoding="utf-8")
        return path

    return write


def test_the_page_shows_the_example():
    page = (ROOT / "docs" / "howto" / "collective.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert (ROOT / "examples" / "scan.yaml").read_text(encoding="utf-8") in page


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_python_gets_every_ranks_result(dtype):
    inputs = [np.arange(1000, dtype=dtype).reshape(10, 100) * (rank + 1) for rank in range(4)]
    with Fabric(leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        run = fabric.run(CollectiveRequest(SCAN, inputs, "chain"))
        lengths = fabric.run(CollectiveRequest(SCAN, 4000, "chain")).result
        made_by = fabric.summary().made_by.parameters
    assert run.result.ok
    assert (run.result.collective, run.result.root, run.result.count) == ("scan", None, 1000)
    for rank, result in enumerate(run.buffers):
        np.testing.assert_array_equal(result, np.sum(inputs[: rank + 1], axis=0))
    assert lengths.time_ps == run.result.time_ps
    assert list(made_by["extensions"]) == ["scan.py"]


def test_a_scenario_runs_it_verified(user):
    (run,) = run_scenario(load_scenario(user())).collectives
    assert run.ok
    assert run.verified
    assert run.size_bytes == 40_000
    assert run.busbw_bytes_per_s == run.algorithm_bandwidth > 0


def test_a_wrong_one_is_found_out(user):
    """Ranks that forward their own data before they have added the data that they receive."""
    (run,) = run_scenario(load_scenario(user("after=[summed]", "after=[]"))).collectives
    assert run.wrong > 0
    assert not run.ok


def test_the_command_runs_it(user, tmp_path):
    command = [
        "collective",
        SCAN,
        "--clock",
        "virtual",
        "--sizes",
        "4K",
        "--leaves",
        "2",
        "--out",
        tmp_path / "out",
    ]
    done = CliRunner().invoke(weft, [str(each) for each in command])
    assert done.exit_code == 0, done.output
    assert "scan over 4 ranks" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("    chain")]
    assert row[1:5] == ["4096", "1024", "float32", "sum"]
    (saved,) = json.loads((tmp_path / "out" / "results.json").read_text())["collectives"]
    assert saved["collective"] == "scan"
    report = CliRunner().invoke(weft, ["report", str(tmp_path / "out")])
    assert report.exit_code == 0, report.output
    assert "scan, chain" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "chain]",
            "ring]",
            ["scenario.yaml:4", "traffic[0].algorithms[0]", "scan has no algorithm 'ring'", "chain"],
        ),
        ("mine.py:Scan", "mine.py:Scam", ["traffic[0].collective", "no class 'Scam'", "valid: Scan"]),
        ("mine.py:Scan", "other.py:Scan", ["traffic[0].collective", "other.py: cannot be read"]),
        ("mine.py:Scan", "scan", ["traffic[0].collective", "no collective 'scan'"]),
    ],
)
def test_a_scenario_that_does_not_fit_is_refused(user, old, new, words):
    path = user(scenario=SCENARIO.replace(old, new))
    with pytest.raises(BadInputError) as refused:
        load_scenario(path)
    assert all(word in str(refused.value) for word in words), refused.value


def test_an_exception_of_the_file_is_reported_with_its_line(user):
    path = user("    for plane, stripe", "    1 // 0\n    for plane, stripe")
    with refused(BadInputError, problem=": ZeroDivisionError"):
        run_scenario(load_scenario(path))
