"""The reference switch loads what the compiler writes and does what the scripts say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from p4c import P4c
from reference_switch import AVAILABLE
from simple_switch import command_lines, differences

from weft.compiler import compile_file
from weft.switch.bmv2json import load_program
from weft.switch.stf.cases import Case, architecture, find_cases
from weft.switch.stf.parser import parse_file

OWN = Path(__file__).parents[1] / "stf" / "cases"
# simple_switch is busy with its packet for ever.
ENDLESS = "loop_without_end"
# A sample over the language out of p4c's cases: expressions, stacks, unions, side effects, exits, tables, parsers,
# checksums, clones, loops.
SAMPLE = (
    "arith5-bmv2", "saturated-bmv2", "concat-bmv2", "slice-def-use1", "runtime-index-bmv2", "forloop-bmv2",
    "subparser-with-header-stack-bmv2", "stack_complex-bmv2", "header-stack-ops-bmv2", "union4-bmv2",
    "gauntlet_exit_combination_22-bmv2", "gauntlet_side_effects_in_mux-bmv2", "gauntlet_copy_out-bmv2",
    "table-entries-range-bmv2", "table-entries-priority-bmv2", "ternary2-bmv2", "checksum1-bmv2",
    "issue1755-1-bmv2", "parser_error-bmv2", "v1model-special-ops-bmv2", "equality-varbit-bmv2",
)  # fmt: skip

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH"),
]


def own_cases() -> list[Case]:
    """Our own cases but the endless one."""
    return [case for case in find_cases(OWN) if case.name != ENDLESS]


def cases() -> list[tuple[Path, Path]]:
    """Our own cases, and the sample of p4c's where WEFT_STF_DIR names them."""
    found = own_cases()
    directory = os.environ.get("WEFT_STF_DIR")
    if directory is not None:
        found += [case for case in find_cases(Path(directory)) if case.name in SAMPLE]
    return [(case.program, case.script) for case in found if architecture(case.program) == "v1model"]


@pytest.mark.parametrize(("program", "script"), cases(), ids=lambda path: path.stem)
def test_script_passes(program: Path, script: Path, tmp_path: Path) -> None:
    statements = parse_file(script)
    json_text = compile_file(program).json_text()
    lines = command_lines(statements, load_program(json_text))
    if lines is None:
        pytest.skip("the script depends on the order of its packets and commands")
    assert differences(json_text, statements, lines, tmp_path) == []


P4C_DEVIATES = {"select_without_match": "p4c lets a packet that no case fits go on without the error NoMatch"}


@pytest.mark.slow
@pytest.mark.parametrize("case", own_cases(), ids=lambda case: case.name)
def test_own_script_passes_with_p4c(case: Case, p4c: P4c, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What our cases expect is what the reference compiler and switch do, too."""
    if case.name in P4C_DEVIATES:
        request.applymarker(pytest.mark.xfail(reason=P4C_DEVIATES[case.name], strict=True))
    json_text = p4c.supported(case.program).json.read_text(encoding="utf-8")
    statements = parse_file(case.script)
    lines = command_lines(statements, load_program(json_text))
    if lines is None:
        pytest.skip("the script depends on the order of its packets and commands")
    assert differences(json_text, statements, lines, tmp_path) == []
