"""Users' congestion controls in C++: compiled when first used, at the speed of Weft's own."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.extensions import native
from weft.traffic.extensions.native import engine_name

HOWTO = ROOT / "docs" / "howto" / "congestion-control.md"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    native._controls_of.cache_clear()
    yield
    native._controls_of.cache_clear()


@pytest.fixture
def halving(tmp_path: Path) -> Path:
    (code,) = re.findall(r"```cpp\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "halving.cpp"
    path.write_text(code, encoding="utf-8")
    return path


def run(control: str, **options: Any) -> RunResult:
    tree = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 1, "spines": 1, "hosts_per_leaf": 4, "queue_capacity": "1MiB"},
        "transport": {"congestion_control": control} | options,
        "traffic": [{"incast": "h0", "bytes_per_sender": 256 * 1024}],
    }
    return run_scenario(parse_scenario(tree))


def test_a_copy_of_weft_s_own_control_does_the_same(tmp_path: Path) -> None:
    """Every completion at the same picosecond."""
    copy = tmp_path / "swift.cpp"
    shutil.copy(ROOT / "engine" / "congestion" / "swift.cpp", copy)
    parameters = {"parameters": {"base_target": "20us"}}
    own, built_in = run(f"{copy}:swift", **parameters), run("swift", **parameters)
    assert own.flows == built_in.flows
    assert own.flows != run("fixed-window").flows


def test_the_guide_s_control_runs_and_its_parameters_are_read(halving: Path) -> None:
    slow = run(f"{halving}:halving", parameters={"initial_window": "2KiB", "increase": 0.1})
    fast = run(f"{halving}:halving")
    assert slow.flows != fast.flows
    with refused(BadInputError, place="scenario: transport.parameters", problem="halving has no parameter 'colour'"):
        run(f"{halving}:halving", parameters={"colour": 1})


def test_a_file_is_compiled_once_and_again_when_it_changes(halving: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    run_compiler = subprocess.run

    def counting(command: list[str], **options: Any) -> Any:
        if "-shared" in command:
            compiled.append(command)
        return run_compiler(command, **options)

    monkeypatch.setattr("weft.traffic.extensions.native.subprocess.run", counting)
    first = engine_name(f"{halving}:halving")
    native._controls_of.cache_clear()  # as another process
    assert engine_name(f"{halving}:halving") == first
    assert len(compiled) == 1
    halving.write_text(halving.read_text(encoding="utf-8").replace("/ 2)", "/ 4)"), encoding="utf-8")
    assert engine_name(f"{halving}:halving") != first
    assert len(compiled) == 2
    # A header of the user's is as much of the control.
    header = halving.with_name("half.hpp")
    header.write_text("constexpr double kHalf = 2;\n", encoding="utf-8")
    text = halving.read_text(encoding="utf-8").replace("/ 4)", "/ kHalf)")
    halving.write_text(f'#include "half.hpp"\n{text}', encoding="utf-8")
    with_header = engine_name(f"{halving}:halving")
    header.write_text("constexpr double kHalf = 3;\n", encoding="utf-8")
    native._controls_of.cache_clear()
    assert engine_name(f"{halving}:halving") != with_header
    assert len(compiled) == 4


def test_parsing_a_scenario_runs_nothing_of_a_user_s(halving: Path) -> None:
    with halving.open("a", encoding="utf-8") as file:
        file.write("#include <cstdlib>\nnamespace { const int kCrash = (std::abort(), 0); }\n")
    parse_scenario({"transport": {"congestion_control": f"{halving}:halving", "parameters": {"colour": 1}}})


def test_a_parameter_that_is_read_and_not_declared_is_named(halving: Path) -> None:
    text = halving.read_text(encoding="utf-8")
    halving.write_text(text.replace('read("increase_packets"', 'read("increase_packet"'), encoding="utf-8")
    with refused(
        BadInputError,
        place="scenario: transport.parameters",
        problem="halving reads 'increase_packet', which it does not declare (declared: 'increase_packets', ",
    ):
        run(f"{halving}:halving")


def test_what_cannot_be_used_is_refused(halving: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(
        BadInputError,
        place="scenario: transport.congestion_control",
        problem=f"{halving.name} registers no congestion control 'thirding'",
    ):
        run(f"{halving}:thirding")
    with refused(BadInputError, place="scenario: transport.congestion_control", problem="cannot be read: No such file"):
        run(f"{tmp_path / 'none.cpp'}:halving")
    broken = tmp_path / "broken.cpp"
    broken.write_text("#include <vector>\nstd::vector<int> x = 5 +;\n", encoding="utf-8")
    with refused(BadInputError, place="scenario: transport.congestion_control", problem=f"{broken}:2:"):
        run(f"{broken}:broken")
    empty = tmp_path / "empty.cpp"
    empty.write_text("", encoding="utf-8")
    with refused(BadInputError, place="scenario: transport.congestion_control", problem="it registers none"):
        run(f"{empty}:empty")
    native._controls_of.cache_clear()
    monkeypatch.setenv("WEFT_CACHE_DIR", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(BadInputError, place="scenario: transport.congestion_control", problem="needs a compiler"):
        run(f"{halving}:halving")


def test_needs_of_a_control_are_checked(halving: Path) -> None:
    text = halving.read_text(encoding="utf-8")
    halving.write_text(text.replace(".marks = true", ".telemetry = true, .marks = true"), encoding="utf-8")
    tree = {"int": False, "transport": {"congestion_control": f"{halving}:halving"}}
    with refused(BadInputError, place="scenario: transport.congestion_control", problem="follows what INT reports"):
        run_scenario(parse_scenario({"clock": "virtual", **tree, "traffic": [{"permutation": 4096}]}))
