"""The cases of a directory, such as p4c's `testdata/p4_16_samples`: `WEFT_STF_DIR=… pytest tests/stf`."""

import os
from pathlib import Path

import pytest

from weft.commands.stf import compile_case
from weft.switch.stf import Verdict, find_cases, run_cases
from weft.switch.stf.cases import architecture
from weft.switch.stf.target import SWITCH_NAMES

DIRECTORY = os.environ.get("WEFT_STF_DIR")
LEAST_PASSING = 0.99


@pytest.mark.slow
@pytest.mark.skipif(DIRECTORY is None, reason="WEFT_STF_DIR names no directory of STF cases")
@pytest.mark.parametrize("switch", SWITCH_NAMES)
def test_v1model_cases_pass_or_are_refused_for_a_reason(switch):
    cases = [case for case in find_cases(Path(str(DIRECTORY))) if architecture(case.program) == "v1model"]
    assert cases, f"{DIRECTORY} holds no v1model case"
    outcomes = list(run_cases(cases, switch, compile_case))
    failed = {outcome.case.name: outcome.reasons for outcome in outcomes if outcome.verdict is Verdict.FAIL}
    refused = {
        outcome.case.name: outcome.reasons for outcome in outcomes if outcome.verdict is Verdict.REFUSED
    }
    assert failed == {}
    assert all(reasons and all(reasons) for reasons in refused.values())
    assert len(outcomes) - len(refused) >= LEAST_PASSING * len(outcomes), refused
