"""A congestion control is one file: in engine/congestion/, or a Python class of a user's."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.refusals import refused
from weft.engine import congestion_control_kind, congestion_control_names, congestion_controls
from weft.errors import BadInputError
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.traffic.extensions import congestion_needs
from weft.traffic.transport_settings import TransportSettings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "engine" / "congestion"
HOWTO = ROOT / "docs" / "howto" / "congestion-control.md"
REGISTRATION = re.compile(r"^const CongestionRegistration \w+\((\w+)\);", re.MULTILINE)

MAIN = """
#include <cstdio>

#include "congestion/registry.hpp"

int main() {
  for (const weft::CongestionControlKind* kind : weft::congestion_controls()) {
    const auto control = weft::make_congestion_control(std::string(kind->name), {1'000'000'000, 8'000'000, 100}, {});
    const auto window_bytes = [&] { return static_cast<unsigned long long>(control->window_bytes()); };
    std::printf("%s %llu", std::string(control->name()).c_str(), window_bytes());
    control->on_acknowledgement({.acknowledged_bytes = 1000, .sequence = 1, .next_sequence = 2});
    std::printf(" %llu", window_bytes());
    control->on_acknowledgement({.sequence = 2, .next_sequence = 3, .congestion_experienced = true});
    std::printf(" %llu\\n", window_bytes());
  }
}
"""

PYTHON_CONTROL = """
import weft

class OnePath(weft.CongestionControl):
    needs = weft.CongestionNeeds(telemetry=True, one_path=True)

    def window_bytes(self):
        return self.path.bandwidth_delay_product_bytes

    def on_acknowledgement(self, event):
        pass
"""


def test_every_file_with_a_control_registers_it_once() -> None:
    registered = []
    for file in sorted(FOLDER.glob("*.cpp")):
        text = file.read_text(encoding="utf-8")
        kinds = re.findall(r'CongestionControlKind (\w+) = \{\s+\.name = "([^"]+)"', text)
        assert REGISTRATION.findall(text) == [variable for variable, _ in kinds], file.name
        assert len(kinds) == ("public CongestionControl {" in text), file.name
        registered += [name for _, name in kinds]
    assert sorted(registered) == congestion_control_names() == [kind.name for kind in congestion_controls()]


@pytest.mark.parametrize("name", congestion_control_names())
def test_what_a_control_declares_is_complete(name: str) -> None:
    kind = congestion_control_kind(name)
    assert kind.name == name
    assert kind.summary
    assert kind.source
    names = [parameter.name for parameter in kind.parameters]
    assert names
    assert len(set(names)) == len(names)
    for parameter in kind.parameters:
        assert parameter.meaning, parameter.name
        assert parameter.source, parameter.name
        assert parameter.least < parameter.most, parameter.name
        assert (parameter.default is None) == bool(parameter.default_rule), parameter.name
        if parameter.default is not None:
            assert parameter.least <= parameter.default <= parameter.most, parameter.name
    assert all(preset.name and preset.source for preset in kind.presets)


def test_what_controls_need_is_theirs_to_say() -> None:
    assert congestion_control_kind("hpcc").needs.telemetry
    assert congestion_control_kind("hpcc").needs.every_acknowledgement
    assert not congestion_control_kind("swift").needs.telemetry
    intervals = {
        name: TransportSettings(congestion_control=name).ack_interval_in_force
        for name in ("dcqcn", "fixed-window", "hpcc", "swift")
    }
    assert intervals == {"dcqcn": 8, "fixed-window": 8, "hpcc": 1, "swift": 1}


def test_scenarios_are_checked_by_what_a_control_needs() -> None:
    spray = {"congestion_control": "hpcc", "path": "spray", "retransmission": "selective-repeat"}
    parse_scenario({"transport": spray, "int": True})
    with refused(
        BadInputError, place="scenario: transport.congestion_control", problem="hpcc follows what INT reports"
    ):
        parse_scenario({"transport": {"congestion_control": "hpcc"}, "int": False})
    parse_scenario({"transport": {"congestion_control": "hpcc"}, "int": True})
    parse_scenario({"transport": spray | {"congestion_control": "swift"}, "int": False})


def test_the_guides_control_is_one_file(tmp_path: Path) -> None:
    """Registering needs neither a list nor another file: the registry finds what is linked."""
    (code,) = re.findall(r"```cpp\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "halving.cpp").write_text(code, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(MAIN, encoding="utf-8")
    sources = [*tmp_path.glob("*.cpp"), FOLDER / "registry.cpp", FOLDER / "parameters.cpp"]
    program = tmp_path / "program"
    command = ["g++", "-std=c++20", f"-I{ROOT / 'engine'}", "-o", program, *sources]
    # Without the sanitizers that this process may run under: a compiler's leaks are its own.
    subprocess.run(command, check=True, env={**os.environ, "LD_PRELOAD": ""})
    ran = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ran.stdout == "halving 1000 1100 550\n"


def test_a_python_control_states_its_needs_as_well(tmp_path: Path) -> None:
    (tmp_path / "one_path.py").write_text(PYTHON_CONTROL, encoding="utf-8")
    reference = f"{tmp_path / 'one_path.py'}:OnePath"
    needs = congestion_needs(reference)
    assert needs.telemetry
    assert needs.one_path
    assert not needs.marks
    assert TransportSettings(congestion_control=reference).ack_interval_in_force == 8
    transport = {"congestion_control": reference, "retransmission": "selective-repeat"}
    for sections in ({"path": "spray"}, {}), ({}, {"load_balancing": "random"}), ({}, {"kind": "dragonfly_ugal"}):
        scenario = {"transport": transport | sections[0], "routing": sections[1], "int": True, "clock": "virtual"}
        with pytest.raises(BadInputError, match=r"does not go with .*OnePath"):
            run_spec(parse_scenario(scenario))
