"""Our cases do the same on our switches when p4lang's compiler has made their JSON."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft.switch.bmv2json import load_program
from weft.switch.stf import Case, find_cases
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.target import SWITCH_NAMES, make_target

CASES = Path(__file__).parent / "cases"
DEVIATES = {"select_without_match": "p4c lets a packet that no case fits go on without the error NoMatch"}

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH"),
]


@pytest.mark.parametrize("case", find_cases(CASES), ids=lambda case: case.name)
def test_cases_pass(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if case.name in DEVIATES:
        request.applymarker(pytest.mark.xfail(reason=DEVIATES[case.name], strict=True))
    compiled = tmp_path / "p4c.json"
    command = ["p4c-bm2-ss", "--std", "p4-16", "--Wdisable", "-o", str(compiled), str(case.program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if "--Werror=unsupported" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
    program = load_program(compiled.read_bytes())
    for name in SWITCH_NAMES:
        assert run_script(parse_file(case.script), make_target(name, program), program) == [], name
