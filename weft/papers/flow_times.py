"""Completion times of a run's flows, compared with an idle fabric's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.quantities.arrays import Integers
from weft.recording.tables import integers_of, names_of, row_count
from weft.trials import TrialFailedError, TrialRun

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlowTimes:
    """Flows of a run that has `observe: {flows: true}`, in order of start, source and destination."""

    size_bytes: Integers
    start_ps: Integers
    completion_ps: Integers
    ideal_ps: Integers
    source: npt.NDArray[np.str_]
    destination: npt.NDArray[np.str_]

    @classmethod
    def of_run(cls, run: TrialRun) -> FlowTimes:
        """Return a run's flows. Raises TrialFailedError if it has failed or recorded none."""
        table = run.run.tables.get("flows")
        if table is None or row_count(table) == 0:
            raise TrialFailedError(f"{run.trial.label}: no flows were recorded")
        source, destination = (names_of(table, end).texts().astype(str) for end in ("source", "destination"))
        start_ps, end_ps = integers_of(table, "start_ps"), integers_of(table, "end_ps")
        order = np.lexsort((destination, source, start_ps))
        return cls(
            integers_of(table, "size_bytes")[order],
            start_ps[order],
            (end_ps - start_ps)[order],
            integers_of(table, "ideal_ps")[order],
            source[order],
            destination[order],
        )

    def slowdowns(self, ideal: FlowTimes | None = None) -> Numbers:
        """Return completion times over the ideal ones, or over the times of another run of the same flows."""
        found = np.asarray(self.completion_ps / (self if ideal is None else ideal).ideal_ps, dtype=np.float64)
        return np.maximum(found, 1.0)

    def goodputs_bps(self) -> Numbers:
        """Return each flow's bits over its completion time."""
        return np.asarray(self.size_bytes * 8e12 / self.completion_ps, dtype=np.float64)
