"""A student's folder, as goals look at it: scenarios, fabrics, what they cost, what their runs find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from weft.clocks.lab import Progress
from weft.cost import CostFigures, cost_figures, read_prices
from weft.errors import WeftError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import Change, Scenario, load_scenario, read_mapping
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec

MOST_HOSTS = 256
"""Of a scenario that a check runs."""
_Found = TypeVar("_Found")


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

    def scenario(self, name: str) -> Scenario:
        """Return a scenario, under the virtual clock whatever it says."""
        clock = Change("clock", "virtual", "weft check")
        return self._once("scenario", name, lambda: load_scenario(self.file(name), [clock]))

    def fabric(self, name: str) -> FabricSpec:
        """Return the fabric of a scenario."""

        def built() -> FabricSpec:
            scenario = self.scenario(name)
            with scenario.places.locating():
                return build_topology(scenario.fabric)

        return self._once("fabric", name, built)

    def cost(self, name: str) -> CostFigures:
        """Return what a scenario's fabric costs by the shipped table of prices."""
        return self._once("cost", name, lambda: cost_figures(name, self.fabric(name), read_prices()))

    def run(self, name: str) -> RunResult:
        """Return what a run of a scenario finds."""

        def ran() -> RunResult:
            hosts = len(self.fabric(name).hosts)
            if hosts > MOST_HOSTS:
                raise Missing(f"{name} has {hosts:,} hosts; the check runs up to {MOST_HOSTS}")
            self._progress(f"running {name}")
            return run_scenario(self.scenario(name))

        return self._once("run", name, ran)

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
