"""The cases of a directory, such as p4c's `testdata/p4_16_samples`: `WEFT_STF_DIR=… pytest tests/stf`."""

import os
import re
from pathlib import Path

import pytest

from weft.commands.stf import compile_case
from weft.switch.bmv2json import load_program
from weft.switch.stf import Verdict, find_cases, run_cases
from weft.switch.stf.cases import architecture
from weft.switch.stf.errors import ProgramRefusedError
from weft.switch.stf.target import SWITCH_NAMES

DIRECTORY = os.environ.get("WEFT_STF_DIR")
LEAST_PASSING = 0.99
LEAST_COMPILED = 0.93
"""Of p4c's samples; the others have externs that BMv2 lacks, or are not whole bytes, or the like."""
MAIN = re.compile(r"\bmain\s*;")


@pytest.mark.slow
@pytest.mark.skipif(DIRECTORY is None, reason="WEFT_STF_DIR names no directory of STF cases")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("switch", SWITCH_NAMES)
def test_v1model_cases_pass_or_are_refused_for_a_reason(switch):
    cases = [case for case in find_cases(Path(str(DIRECTORY))) if architecture(case.program) == "v1model"]
    assert cases, f"{DIRECTORY} holds no v1model case"
    outcomes = list(run_cases(cases, switch, compile_case))
    failed = {outcome.case.name: outcome.reasons for outcome in outcomes if outcome.verdict is Verdict.FAIL}
    refused = {outcome.case.name: outcome.reasons for outcome in outcomes if outcome.verdict is Verdict.REFUSED}
    assert failed == {}
    assert all(reasons and all(reasons) for reasons in refused.values())
    assert len(outcomes) - len(refused) >= LEAST_PASSING * len(outcomes), refused


@pytest.mark.slow
@pytest.mark.skipif(DIRECTORY is None, reason="WEFT_STF_DIR names no directory of STF cases")
@pytest.mark.timeout(1800)
def test_v1model_programs_compile_and_load_or_are_refused_for_a_reason():
    programs = [
        path
        for path in sorted(Path(str(DIRECTORY)).rglob("*.p4"))
        if architecture(path) == "v1model" and MAIN.search(path.read_text(encoding="utf-8"))
    ]
    refused: dict[str, list[str]] = {}
    for program in programs:
        try:
            load_program(compile_case(program))
        except ProgramRefusedError as error:
            refused[program.name] = error.reasons
    assert programs
    assert all(reasons and not any("internal" in each for each in reasons) for reasons in refused.values())
    assert len(refused) <= (1 - LEAST_COMPILED) * len(programs), refused
