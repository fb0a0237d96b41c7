"""Our cases do the same on our switches when p4lang's compiler has made their JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4c import P4c

from weft.switch.bmv2json import load_program
from weft.switch.stf import Case, find_cases
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.target import SWITCH_NAMES, make_target

CASES = Path(__file__).parent / "cases"
DEVIATES = {"select_without_match": "p4c lets a packet that no case fits go on without the error NoMatch"}

pytestmark = pytest.mark.reference


@pytest.mark.parametrize("case", find_cases(CASES), ids=lambda case: case.name)
def test_cases_pass(case: Case, p4c: P4c, request: pytest.FixtureRequest) -> None:
    if case.name in DEVIATES:
        request.applymarker(pytest.mark.xfail(reason=DEVIATES[case.name], strict=True))
    program = load_program(p4c.supported(case.program).json.read_bytes())
    for name in SWITCH_NAMES:
        assert run_script(parse_file(case.script), make_target(name, program), program) == [], name
