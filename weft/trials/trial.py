"""A run of a scenario, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import BadInputError, WeftError
from weft.quantities.arrays import Integers
from weft.report.run_directory import RunDirectory
from weft.results.flows import FLOWS
from weft.results.model import Results
from weft.sweeps.store import Outcome, State


class InvalidTrialError(BadInputError):
    """The scenario of a trial is not valid for its fabric; nothing has been run."""


class TrialFailedError(WeftError):
    """A trial has ended without results, or lacks what is asked of them."""


@dataclass(frozen=True)
class Trial:
    """A scenario to run: its tree, with absolute paths, and a `label` for people.

    `program` names a module that runs in place of `weft run`, and its arguments after the trial's directory, which has
    the tree as scenario.yaml. Its run has no results; what it writes to the directory is the procedure's matter.
    """

    label: str
    tree: Mapping[str, Any]
    program: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrialRun:
    """A trial that has ended, and the directory with its files."""

    trial: Trial
    folder: Path
    outcome: Outcome

    @property
    def error(self) -> str:
        """Why it failed; "" if it did not."""
        return "" if self.outcome.state is State.FINISHED else self.outcome.error or str(self.outcome.state)

    @property
    def failure(self) -> str:
        """Why it did not end well: its error, or that its results are wrong; "" if it did."""
        return self.error or ("" if self.results.ok else "results are wrong")

    @property
    def has_results(self) -> bool:
        """Whether it has left what `weft run` leaves."""
        return not self.error and not self.trial.program

    @cached_property
    def run(self) -> RunDirectory:
        """Its results and tables. Raises TrialFailedError if it has failed."""
        if self.error:
            raise TrialFailedError(f"{self.trial.label}: {self.error}")
        return RunDirectory.read(self.folder)

    @property
    def results(self) -> Results:
        """Its results. Raises TrialFailedError if it has failed."""
        return self.run.results

    def results_of(self, key: str) -> list[Any]:
        """Return its results of one kind, a key of results.json; raises TrialFailedError if there are none."""
        found = list(self.results.traffic.get(key, []))
        if not found:
            raise TrialFailedError(f"{self.trial.label}: its results have no {key}")
        return found

    @cached_property
    def flows(self) -> Mapping[str, Integers]:
        """The columns of the records of all flows, of all items of the traffic that have some, in their order.

        `item` has the place of the flow's item among these. Raises TrialFailedError if there are none.
        """
        tables = [each.records for kind, found in self.run.traffic if kind is FLOWS for each in found if each.records]
        if not tables:
            raise TrialFailedError(f"{self.trial.label}: its results have no flows")
        joined = {name: np.concatenate([np.asarray(table[name]) for table in tables]) for name in tables[0]}
        joined["item"] = np.repeat(np.arange(len(tables)), [len(table["flow"]) for table in tables])
        return joined
