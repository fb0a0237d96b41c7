"""A student's folder as goals see it: scenarios, fabrics, their costs, and the results of runs."""

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
"""Most hosts of a scenario that a check runs."""
Settings = Mapping[str, Any]
"""Changes of a scenario, by dotted key."""
AS_IT_IS: Settings = MappingProxyType({})
MOST_POINTS = 24
"""Most points of a sweep that a check runs."""
_Found = TypeVar("_Found")


def _with(name: str, settings: Settings) -> str:
    return ", ".join([name, *(f"{key}: {value}" for key, value in settings.items())])


class Missing(Exception):
    """A student's work does not reach a goal; the message says what is missing."""


class Work:
    """A student's folder. Files and results are cached, so that goals can share them.

    A missing file raises Missing; an unusable one raises BadInputError with the place.
    """

    def __init__(self, folder: Path, progress: Progress = lambda _: None) -> None:
        self.folder = folder
        self._progress = progress
        self._kept: dict[tuple[str, str], object] = {}

    def file(self, name: str) -> Path:
        """Return the path of an existing file."""
        path = self.folder / name
        if not path.is_file():
            raise Missing(f"there is no {name} in {self.folder}")
        return path

    def scenario(self, name: str, settings: Settings = AS_IT_IS) -> Scenario:
        """Return a scenario with some settings changed, always under the virtual clock."""
        changes = [Change(key, value, "weft check") for key, value in {**settings, "clock": "virtual"}.items()]
        return self._once("scenario", _with(name, settings), lambda: load_scenario(self.file(name), changes))

    def fabric(self, name: str, settings: Settings = AS_IT_IS) -> FabricSpec:
        """Return the fabric of a scenario."""

        def built() -> FabricSpec:
            scenario = self.scenario(name, settings)
            with scenario.places.locating():
                return build_topology(scenario.fabric)

        return self._once("fabric", _with(name, settings), built)

    def cost(self, name: str, settings: Settings = AS_IT_IS) -> CostFigures:
        """Return the cost figures of a scenario's fabric from the shipped table of prices."""
        return self._once(
            "cost",
            _with(name, settings),
            lambda: cost_figures(name, self.fabric(name, settings), read_prices()),
        )

    def run(self, name: str, settings: Settings = AS_IT_IS) -> RunResult:
        """Return the result of running a scenario with some settings changed."""

        def ran() -> RunResult:
            hosts = len(self.fabric(name, settings).hosts)
            if hosts > MOST_HOSTS:
                raise Missing(f"{name} has {hosts:,} hosts; the check runs up to {MOST_HOSTS}")
            self._progress(f"running {_with(name, settings)}")
            return run_scenario(self.scenario(name, settings))

        return self._once("run", _with(name, settings), ran)

    def sweep(self, name: str) -> list[Row]:
        """Return the rows of a sweep's table, for up to `MOST_POINTS` points."""

        def swept() -> list[Row]:
            plan = SweepPlan.read(self.file(name))
            # Checked before creating the points, each of which is a scenario that is read and checked.
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
        """Return a cached value, or make it; a failure is cached and raised again."""
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
