"""Runs whose scenarios may depend on what earlier runs found, as in a binary search: `weft bench` and `weft paper`.

A procedure is a generator: it yields trials, gets their runs, and returns what they come to. `runner` runs many
procedures at once with the store and the processes of `weft.sweeps`.
"""

from weft.trials.runner import Procedure, TrialProgress, TrialRunner
from weft.trials.trial import InvalidTrialError, Trial, TrialFailedError, TrialRun

__all__ = [
    "InvalidTrialError",
    "Procedure",
    "Trial",
    "TrialFailedError",
    "TrialProgress",
    "TrialRun",
    "TrialRunner",
]
