"""A run's results, and the files next to results.json: tables, traces, times of the wall clock."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import EnvironmentLacksError
from weft.recording.observations import Observations
from weft.recording.trace import Moments
from weft.results.collectives import COLLECTIVES, CollectiveResult
from weft.results.flows import FLOWS, FlowsResult
from weft.results.model import Results
from weft.results.training_steps import TRAINING_STEPS, TrainingStepResult
from weft.results.workloads import WORKLOADS, WorkloadResult
from weft.system.writing import written_whole

RESULTS_FILE = "results.json"


@dataclass(frozen=True)
class RunResult(Results):
    """All results of a run. Weft's own kinds of traffic have properties; `of` returns any kind's results.

    `observations` are the tables that it recorded, `wall_times_s` the durations of its parts on this machine. They are
    in separate files, so that results.json is the same in every run under the virtual clock.
    """

    observations: Observations = field(default_factory=Observations)
    wall_times_s: dict[str, float] = field(default_factory=dict)

    @property
    def collectives(self) -> list[CollectiveResult]:
        """Return the results of each collective, algorithm and size."""
        return self.of(COLLECTIVES)

    @property
    def flows(self) -> list[FlowsResult]:
        """Return the results of each incast, permutation and pattern."""
        return self.of(FLOWS)

    @property
    def workloads(self) -> list[WorkloadResult]:
        """Return the results of each workload."""
        return self.of(WORKLOADS)

    @property
    def training_steps(self) -> list[TrainingStepResult]:
        """Return the results of each training step."""
        return self.of(TRAINING_STEPS)

    def require_complete(self) -> None:
        """Raise EnvironmentLacksError if a capture is not whole."""
        if self.incomplete_captures:
            raise EnvironmentLacksError("; ".join(self.incomplete_captures))

    def save(self, directory: Path) -> Path:
        """Write results.json, wall_times.json and tables of flows into a directory; return the path of results.json."""
        directory.mkdir(parents=True, exist_ok=True)
        for kind in self.kinds:
            for number, result in enumerate(self.of(kind)):
                if kind.flow_file is not None:
                    kind.flow_file.save(result.records, directory, number)
                kind.save(result, directory, number)
        for name, data in (("wall_times.json", self.wall_times_s), (RESULTS_FILE, self.as_dict())):
            path = directory / name
            with written_whole(path) as partial:
                partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        self.observations.save(directory, self._moments())
        return path

    def _moments(self) -> Moments:
        happened = [(f"{each.link} {each.state}", each.happened_ps) for each in self.link_events]
        happened += [(f"{each.host} storming", each.began_ps) for each in self.nic_storms]
        happened += [(f"{each.host} no longer storming", each.ended_ps) for each in self.nic_storms]
        happened += [
            (f"storm of class {each.priority_class} {each.event} at {each.port}", each.time_ps)
            for each in self.pfc_storms
        ]
        return Moments(
            [(phase.name, phase.start_ps, phase.end_ps) for phase in self.phases],
            [(name, time_ps) for name, time_ps in happened if time_ps is not None],
        )
