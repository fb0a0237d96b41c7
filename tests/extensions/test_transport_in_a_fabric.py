"""Users' congestion controls in a fabric, by scenario and from Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import TransportSection, load_scenario, parse_scenario
from weft.topologies import leaf_spine

EXAMPLE = ROOT / "examples" / "timely.yaml"
MINE = """\
import weft

class Mine(weft.CongestionControl):
    def __init__(self, path, window=20000, fail_at=None):
        super().__init__(path)
        self.window, self.fail_at, self.count = window, fail_at, 0

    def window_bytes(self):
        return self.window

    def on_acknowledgement(self, event):
        self.count += 1
        if self.count == self.fail_at:
            raise RuntimeError(f"acknowledgement {self.count}")
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def scenario_of(mine: Path, **parameters: object) -> dict[str, Any]:
    return {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "transport": {"congestion_control": f"{mine}:Mine", "parameters": parameters},
        "traffic": [{"incast": "h0", "bytes_per_sender": 100_000}],
    }


def test_timely_shortens_the_queue_at_line_rate() -> None:
    scenario = load_scenario(EXAMPLE).model_copy(update={"clock": "virtual"})
    timely = run_scenario(scenario)
    fixed = run_scenario(scenario.model_copy(update={"transport": TransportSection()}))
    (flows,), (fixed_flows,) = timely.flows, fixed.flows
    assert flows.retransmissions == 0
    assert flows.time_ps < 1.15 * fixed_flows.time_ps  # which is line rate
    assert timely.planes[0].ecn_marked_packets < fixed.planes[0].ecn_marked_packets / 3


def test_a_fixed_window_is_the_native_one(mine: Path) -> None:
    own, native = scenario_of(mine, window=20000), scenario_of(mine)
    own["transport"] |= {"ack_interval": 4}
    native["transport"] = {
        "congestion_control": "fixed-window",
        "parameters": {"window": 20000},
        "ack_interval": 4,
    }
    python = run_scenario(parse_scenario(own))
    assert python.flows == run_scenario(parse_scenario(native)).flows


def test_results_name_the_class(mine: Path) -> None:
    made_by = run_scenario(parse_scenario(scenario_of(mine))).as_dict()["made_by"]
    assert made_by["transport"]["congestion_control"] == "mine.py:Mine"
    assert list(made_by["extensions"]) == ["mine.py"]
    assert len(made_by["extensions"]["mine.py"]) == 64
    json.dumps(made_by)


def test_what_it_raises_ends_the_run_with_its_traceback(mine: Path, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(json.dumps(scenario_of(mine, fail_at=7)), encoding="utf-8")
    command = [sys.executable, "-m", "weft", "run", str(path), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    lines = done.stderr[done.stderr.index("weft: ") :].splitlines()
    assert lines[0] == f"weft: {mine}:14: RuntimeError: acknowledgement 7, raised by a class of yours"
    assert lines[1].startswith("    raise RuntimeError(")
    assert lines[2] == "Traceback (most recent call last):"
    assert not any(str(ROOT / "weft") in line for line in lines), "no frames of Weft's"
    assert f'  File "{mine}", line 14, in on_acknowledgement' in lines
    assert lines[-1] == "RuntimeError: acknowledgement 7"


@pytest.mark.parametrize(
    ("reference", "parameters", "words"),
    [
        ("{}:Mine", {"window": -3}, ["Mine.window_bytes() returned -3", "whole numbers from 0"]),
        ("{}:Mine", {"size": 3}, ["unexpected keyword argument 'size'", "valid: window=20000, fail_at=None"]),
        ("{}:Other", {}, ["has no class 'Other' (valid: Mine)"]),
        ("absent.py:Mine", {}, ["absent.py", "No such file"]),
        ("cubic", {}, ["no congestion control 'cubic'", "valid: bolt, dcqcn", "path/to/file.py:Class"]),
    ],
)
def test_what_cannot_be_used_is_reported_before_anything_is_built(
    mine: Path, reference: str, parameters: dict[str, object], words: list[str]
) -> None:
    tree = scenario_of(mine) | {"transport": {"congestion_control": reference.format(mine), "parameters": parameters}}
    built: list[str] = []
    with pytest.raises(BadInputError) as caught:
        run_scenario(parse_scenario(tree), built.append)
    assert all(word in str(caught.value) for word in words), caught.value
    assert built == []


def test_it_is_chosen_from_python_too(mine: Path) -> None:
    transport = TransportSection(congestion_control=f"{mine}:Mine", parameters={"window": 3000})
    topology = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with weft.Fabric(topology, clock="virtual", transport=transport) as fabric:
        slow = fabric.incast("h0", 100_000).time_ps
    with weft.Fabric(topology, clock="virtual") as fabric:
        assert fabric.incast("h0", 100_000).time_ps < slow


def test_it_does_not_matter_how_many_workers_serve_it(mine: Path) -> None:
    topology = leaf_spine(planes=2, leaves=4, spines=2, hosts_per_leaf=2)
    transport = TransportSection(congestion_control=f"{mine}:Mine", parameters={"window": 9000})
    results = []
    for workers in (1, 2, 3):
        with weft.Fabric(topology, clock="virtual", transport=transport, workers=workers) as fabric:
            fabric.permutation(60_000)
            fabric.incast("h3", 30_000)
            results.append(fabric.summary().as_dict())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_in_a_worker_is_reported(mine: Path, workers: int) -> None:
    transport = TransportSection(congestion_control=f"{mine}:Mine", parameters={"fail_at": 9})
    topology = leaf_spine(planes=2, leaves=4, spines=2, hosts_per_leaf=2)
    with (
        weft.Fabric(topology, clock="virtual", transport=transport, workers=workers) as fabric,
        refused(BadInputError, problem="RuntimeError: acknowledgement 9"),
    ):
        fabric.permutation(60_000)
