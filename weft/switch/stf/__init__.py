"""Simple Test Framework: runs p4lang's scripts of input and expected packets on Weft's switches."""

from weft.switch.stf.cases import Case, Outcome, Verdict, find_cases
from weft.switch.stf.runner import run_case, run_cases

__all__ = ["Case", "Outcome", "Verdict", "find_cases", "run_case", "run_cases"]
