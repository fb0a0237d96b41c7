"""A student's folder, as goals look at it: scenarios, fabrics, what they cost, what their runs find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from weft.clocks.lab import Progress
from weft.cost import CostFigures, cost_figures, read_prices
from weft.errors import WeftError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import Change, Scenario, load_scenario, parse_scenario, read_mapping
from weft.scenario.topology import build_topology
from weft.sweeps.plan import SweepPlan
from weft.sweeps.store import Outcome, State
from weft.sweeps.table import Row, table_rows
from weft.topologies import FabricSpec

MOST_HOSTS = 256
"""Of a scenario that a check runs."""
Settings = Mapping[str, Any]
"""Of a scenario, by dotted key."""
AS_IT_IS: Settings = MappingProxyType({})
MOST_POINTS = 24
"""Of a sweep that a check runs."""
_Found = TypeVar("_Found")


def _with(name: str, settings: Settings) -> str:
    return ", ".join([name, *(f"{key}: {value}" for key, value in settings.items())])


class Missing(Exception):
    """What a student's work lacks to reach a goal."""


class Work:
    """A folder of a student. What is read or run of it is kept, so that goals can share it.

    A file that is not there raises Missing; one that cannot be used, BadInputError with its place.
    """

    def __init__(self, folder: Path, progress: Progress = lambda _: None) -> None:
        self.folder = folder
        self._progress = progress
        self._kept: dict[tuple[str, str], object] = {}

    def file(self, name: str) -> Path:
        """Return the path of a file."""
        path = self.folder / name
        if not path.is_file():
            raise Missing(f"there is no {name} in {self.folder}")
        return path

    def scenario(self, name: str, settings: Settings = AS_IT_IS) -> Scenario:
        """Return a scenario with some settings by dotted key, under the virtual clock whatever it says."""
        changes = [
            Change(key, value, "weft check") for key, value in {**settings, "clock": "virtual"}.items()
        ]
        return self._once("scenario", _with(name, settings), lambda: load_scenario(self.file(name), changes))

    def fabric(self, name: str, settings: Settings = AS_IT_IS) -> FabricSpec:
        """Return the fabric of a scenario."""

        def built() -> FabricSpec:
            scenario = self.scenario(name, settings)
            with scenario.places.locating():
                return build_topology(scenario.fabric)

        return self._once("fabric", _with(name, settings), built)

    def cost(self, name: str, settings: Settings = AS_IT_IS) -> CostFigures:
        """Return what a scenario's fabric costs by the shipped table of prices."""
        return self._once(
            "cost",
            _with(name, settings),
            lambda: cost_figures(name, self.fabric(name, settings), read_prices()),
        )

    def run(self, name: str, settings: Settings = AS_IT_IS) -> RunResult:
        """Return what a run of a scenario finds, with some settings by dotted key."""

        def ran() -> RunResult:
            hosts = len(self.fabric(name, settings).hosts)
            if hosts > MOST_HOSTS:
                raise Missing(f"{name} has {hosts:,} hosts; the check runs up to {MOST_HOSTS}")
            self._progress(f"running {_with(name, settings)}")
            return run_scenario(self.scenario(name, settings))

        return self._once("run", _with(name, settings), ran)

    def sweep(self, name: str) -> list[Row]:
        """Return the rows of a sweep's table, of up to 24 points."""

        def swept() -> list[Row]:
            plan = SweepPlan.read(self.file(name))
            # Before points are made: each is a scenario that is read and checked.
            if plan.point_count > MOST_POINTS:
                raise Missing(f"{name} has {plan.point_count:,} points; the check runs up to {MOST_POINTS}")
            points = plan.points()
            ended = []
            for number, point in enumerate(points, 1):
                self._progress(f"running {name}, point {number} of {len(points)}")
                place = f"{name} with {point.label}"
                scenario = parse_scenario(point.tree, place, units_required=True)
                hosts = len(build_topology(scenario.fabric).hosts)
                if hosts > MOST_HOSTS:
                    raise Missing(f"{place} has {hosts:,} hosts; the check runs up to {MOST_HOSTS}")
                ended.append((point, Outcome(State.FINISHED), run_scenario(scenario).as_dict()))
            return table_rows(ended, list(dict.fromkeys(key for point in points for key in point.parameters)))

        return self._once("sweep", name, swept)

    def answers(self, name: str) -> dict[str, Any]:
        """Return the answers in a YAML file, by question."""
        return self._once("answers", name, lambda: read_mapping(self.file(name), "a file of answers"))

    def _once(self, what: str, name: str, make: Callable[[], _Found]) -> _Found:
        """Return what has been made before; what has failed, fails again the same."""
        key = what, name
        if key not in self._kept:
            try:
                self._kept[key] = make()
            except (Missing, WeftError) as problem:
                self._kept[key] = problem
        found = self._kept[key]
        if isinstance(found, Missing | WeftError):
            raise found
        return cast("_Found", found)
