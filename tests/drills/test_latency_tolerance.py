"""How much latency a job tolerates: the search, the messages that wait for each other, the command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ruamel.yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from weft.cli import weft
from weft.drills.latency_tolerance import LatencyTolerance, tolerance_procedure
from weft.errors import BadInputError
from weft.scenario.nic import NicSection

STEP = {
    "model": {
        "layers": 2,
        "hidden": 256,
        "heads": 4,
        "feed_forward": 512,
        "vocabulary": 512,
        "sequence": 128,
    },
    "parallel": {"data": 4},
    "accelerator": "H100",
}


def scenario(folder: Path, *traffic: dict[str, Any], **keys: Any) -> Path:
    tree = {
        "name": "small",
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s"},
        "transport": {"congestion_control": "swift"},
        "int": False,
        "traffic": list(traffic),
        **keys,
    }
    path = folder / "small.yaml"
    with path.open("w", encoding="utf-8") as file:
        ruamel.yaml.YAML().dump(tree, file)
    return path


def tolerance(path: Path, *arguments: str) -> dict[str, Any]:
    command = ["job", "tolerance", str(path), "--workers", "1", "--json", *arguments]
    ended = CliRunner().invoke(weft, command, standalone_mode=False, catch_exceptions=False)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def ran(time_ps: int) -> Any:
    """Return a run that took so long, of traffic without a critical path."""
    results = SimpleNamespace(ok=True, phases=[SimpleNamespace(start_ps=5, end_ps=5 + time_ps)], traffic={})
    return SimpleNamespace(failure="", results=results)


@given(
    base=st.integers(10**6, 10**12),
    messages=st.lists(st.integers(1, 1000), min_size=1, max_size=4),
    longer=st.floats(0.01, 1),
)
def test_the_search_finds_the_limit_of_convex_times(base: int, messages: list[int], longer: float) -> None:
    # Several paths, the longest of which decides; the more messages one has, the shorter it is without extra latency.
    paths = [(base * (1 - number / 10), count) for number, count in enumerate(sorted(messages))]

    def took_ps(extra_ps: int) -> int:
        return int(max(start + count * extra_ps for start, count in paths))

    procedure = tolerance_procedure({}, NicSection(), longer)
    next(procedure)
    extra_ps = 0
    try:
        while True:
            (trial,) = procedure.send([ran(took_ps(extra_ps))])
            extra_ps = 2 * int(trial.tree["nic"]["dma_latency"].removesuffix("ps"))
    except StopIteration as end:
        found = end.value
    most_ps = (1 + longer) * took_ps(0)
    assert took_ps(found.tolerated_ps // 2 * 2) <= most_ps < took_ps(found.exceeded_ps // 2 * 2)
    assert found.exceeded_ps - found.tolerated_ps <= max(2, found.exceeded_ps / 16)


@pytest.mark.slow
def test_a_step_tolerates_what_the_messages_of_its_path_and_what_hides_them_allow(tmp_path: Path) -> None:
    found = tolerance(scenario(tmp_path, STEP))
    assert found["latencies"] >= 6  # a ring of four ranks takes six steps
    assert found["formula_ps"] * found["latencies"] == pytest.approx(0.05 * found["time_ps"])
    # Large pieces hide latency.
    assert found["tolerated_ps"] > 0.9 * found["formula_ps"]
    assert found["exceeded_ps"] * 15 / 16 - 2 <= found["tolerated_ps"] < found["exceeded_ps"]


def test_ranks_of_one_host_wait_for_no_message_between_hosts(tmp_path: Path) -> None:
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 4, "host_rate": "100Gb/s"}
    path = scenario(tmp_path, STEP, fabric=fabric)
    run = ["run", str(path), "--out", str(tmp_path / "run")]
    CliRunner().invoke(weft, run, standalone_mode=False, catch_exceptions=False)
    (step,) = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["training_jobs"]
    assert step["critical_path"]["latencies"] == 0


def test_traffic_without_a_critical_path_has_no_closed_form(tmp_path: Path) -> None:
    item = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["16KiB"], "data": "lengths"}
    found = tolerance(scenario(tmp_path, item), "--longer", "50")
    assert found["latencies"] is None
    assert found["formula_ps"] is None
    # Six steps, each with the extra latency.
    assert found["tolerated_ps"] * 6 == pytest.approx(0.5 * found["time_ps"], rel=0.1)


def test_what_has_no_traffic_or_fails_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="traffic"):
        tolerance(scenario(tmp_path))
    parted = [{"link": "p0l0<->*", "state": "down"}]
    with pytest.raises(BadInputError, match="does not end well"):
        tolerance(scenario(tmp_path, STEP, events=parted))


def test_sentences_say_what_holds_and_what_bounds_it() -> None:
    found, bound = LatencyTolerance(0.05, 10**9, 10.0, 4 * 10**6, 5 * 10**6, 5).lines()
    assert "4 µs" in found
    assert "5 µs" in bound
    (alone,) = LatencyTolerance(0.05, 10**9, None, 4 * 10**6, None, 5).lines()
    assert "4 µs" in alone
