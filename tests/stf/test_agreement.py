"""The native switch, with its bounds checked, and the oracle agree on every case and on packets like its own."""

import os
from pathlib import Path

import pytest
from agreement import differences

from weft.switch.stf import find_cases
from weft.switch.stf.cases import architecture

CASES = Path(__file__).parent / "cases"
DIRECTORY = os.environ.get("WEFT_STF_DIR")


@pytest.mark.parametrize("case", find_cases(CASES), ids=lambda case: case.name)
def test_own_cases(case):
    assert differences(case) is None


@pytest.mark.slow
@pytest.mark.skipif(DIRECTORY is None, reason="WEFT_STF_DIR names no directory of STF cases")
@pytest.mark.timeout(1800)
def test_cases_of_a_directory():
    cases = [case for case in find_cases(Path(str(DIRECTORY))) if architecture(case.program) == "v1model"]
    found = {case.name: difference for case in cases if (difference := differences(case)) is not None}
    assert found == {}
