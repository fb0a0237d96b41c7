import json
import os
import subprocess
import sys

import numpy as np
import pytest

import weft
from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.topologies import leaf_spine
from weft.traffic.extensions import flows_of

EXAMPLE = ROOT / "examples" / "shuffle.yaml"
SCENARIO = """\
clock: virtual
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}
traffic:
  - pattern: mine.py:Mine
"""


@pytest.fixture
def user(tmp_path):
    """Write a scenario and the file that it names; run it."""

    def run(code, scenario=SCENARIO):
        (tmp_path / "mine.py").write_text(code, encoding="utf-8")
        path = tmp_path / "scenario.yaml"
        path.write_text(scenario, encoding="utf-8")
        return run_scenario(load_scenario(path))

    return run


def test_the_example_moves_every_block():
    result = run_scenario(load_scenario(EXAMPLE).model_copy(update={"clock": "virtual"}))
    (flows,) = result.flows
    assert (flows.pattern, flows.flows) == ("Shuffle", 8 * 7)
    assert 56 * 32768 < flows.bytes_delivered < 56 * 98304


def test_what_is_drawn_repeats_with_the_seed():
    from examples.shuffle import Shuffle

    fabric = leaf_spine(planes=2, leaves=2, spines=1)
    first, again, other = (flows_of(Shuffle(), fabric, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_a_pattern_runs_from_python():
    class Pair(weft.TrafficPattern):
        def flows(self, fabric, rng):
            return [weft.Flow(0, np.int64(1), 4096), weft.Flow(1, 0, 4096, start_ps=10**6)]

    topology = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with weft.Fabric(topology, clock="virtual") as fabric:
        result = fabric.pattern(Pair())
    assert (result.pattern, result.flows, result.bytes_delivered) == ("Pair", 2, 8192)
    assert result.time_ps > 10**6


HEAD = "import weft\nclass Mine(weft.TrafficPattern):\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (HEAD + "  pass\n", ["mine.py:Mine lacks flows()"]),
        ("import weft\nclass Other(weft.TrafficPattern):\n  def flows(self, f, r): ...\n",
         ["mine.py has no class 'Mine'", "valid: Other"]),
        ("class Mine: pass\n", ["is no TrafficPattern", "class Mine(weft.TrafficPattern)"]),
        ("Mine = 3\n", ["is no TrafficPattern"]),
        ("import absent_module\n", ["mine.py:1: ModuleNotFoundError", "    import absent_module\n"]),
        ("def (:\n", ["mine.py:1: SyntaxError"]),
        (HEAD + "  def __init__(self): raise ValueError('no size')\n  def flows(self, f, r): ...\n",
         ["mine.py:3: ValueError: no size, raised by ", "line 3, in __init__"]),
        (HEAD + "  def flows(self, f, r):\n    yield weft.Flow(0, 1, 1)\n    1 / 0\n",
         ["mine.py:5: ZeroDivisionError: division by zero, raised by Mine.flows()\n    1 / 0\n", "line 5, in flows"]),
        (HEAD + "  def flows(self, f, r): raise SystemExit(0)\n", ["mine.py:3: SystemExit: 0, raised by "]),
        (HEAD + "  def flows(self, f, r): raise GeneratorExit\n", ["mine.py:3: GeneratorExit: , raised by "]),
        ("import asyncio\n" + HEAD + "  def flows(self, f, r): raise asyncio.CancelledError\n",
         ["mine.py:4: CancelledError: , raised by "]),
        (HEAD + "  def flows(self, f, r): return 7\n", ["Mine.flows() returned 7", "an iterable of weft.Flow"]),
        (HEAD + "  def flows(self, f, r): return []\n", ["returned 0 flows"]),
        (HEAD + "  def flows(self, f, r): return [(0, 1)]\n", ["flow 0 is (0, 1)", "a weft.Flow"]),
        (HEAD + "  def flows(self, f, r): return [weft.Flow(0, 1, 9), weft.Flow(0, 4, 9)]\n",
         ["flow 1: destination is 4", "from 0 to 3"]),
        (HEAD + "  def flows(self, f, r): return [weft.Flow(0, 1, 2.5)]\n", ["size_bytes is 2.5"]),
        (HEAD + "  def flows(self, f, r): return [weft.Flow(0, 1, 9, start_ps=-1)]\n", ["start_ps is -1"]),
        (HEAD + "  def flows(self, f, r): return [weft.Flow(2, 2, 9)]\n", ["from host 2 to itself"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_class_is_reported(user, code, words):
    with pytest.raises(BadInputError) as caught:
        user(code)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "traffic/extensions" not in message  # the traceback begins in the user's file


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pattern: mine.py", ["traffic[0].pattern", "mine.py"]),
        ("pattern: gone.py:Mine", ["gone.py", "No such file"]),
        (
            "{pattern: mine.py:Mine, parameters: {sise: 3}}",
            ["unexpected keyword argument 'sise'", "valid: size"],
        ),
        ("{pattern: mine.py:Mine, parameters: 3}", ["traffic[0].parameters"]),
    ],
)
def test_what_is_wrong_with_a_scenario_is_reported(user, line, words):
    code = HEAD + "  def __init__(self, size=1): pass\n  def flows(self, f, r): ...\n"
    with pytest.raises(BadInputError) as caught:
        user(code, SCENARIO.replace("pattern: mine.py:Mine", line))
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_pipe_is_not_waited_for(user, tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    with refused(BadInputError, problem="pipe.py: is no regular file"):
        user("", SCENARIO.replace("mine.py", "pipe.py"))


def test_a_file_that_has_changed_is_run_again(user, monkeypatch):
    """Within the same second, too, to which Python knows the age of bytecode that it has kept."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    code = HEAD + "  def flows(self, f, r): return [weft.Flow(0, 1, SIZE)]\n"
    assert [user(code.replace("SIZE", size)).flows[0].bytes_delivered for size in ("100", "200")] == [
        100,
        200,
    ]


@pytest.mark.slow
def test_a_sweep_knows_a_pattern_by_its_content(tmp_path):
    (tmp_path / "mine.py").write_text(
        HEAD + "  def __init__(self, size): self.size = size\n"
        "  def flows(self, f, r): return [weft.Flow(0, 1, self.size)]\n",
        encoding="utf-8",
    )
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.replace("mine.py:Mine", "mine.py:Mine\n    parameters: {size: 1}"), encoding="utf-8")
    sizes = {"traffic[0].parameters.size": [100, 200]}
    result = weft.sweep(path, tmp_path / "out", grid=sizes)
    assert [row["bytes_delivered"] for row in result.rows] == [100, 200]
    before = {point.identity for point in result.points}
    with (tmp_path / "mine.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    again = weft.sweep(path, tmp_path / "out", grid={"traffic[0].parameters.size": [100]})
    assert before.isdisjoint(point.identity for point in again.points)


def test_the_command_reports_it_in_one_message(tmp_path):
    (tmp_path / "mine.py").write_text(HEAD + "  def flows(self, f, r): return [None]\n", encoding="utf-8")
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        str(tmp_path / "scenario.yaml"),
        "--out",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr == "weft: Mine.flows(), flow 0 is None (valid: a weft.Flow)\n"


def test_results_name_the_pattern(user, tmp_path):
    result = user(HEAD + "  def flows(self, f, r): return [weft.Flow(0, 1, 64)]\n")
    saved = json.loads(result.save(tmp_path / "out").read_text(encoding="utf-8"))
    assert saved["flows"][0]["pattern"] == "Mine"
