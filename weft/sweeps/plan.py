"""From a scenario and axes to the runs of a sweep, each checked before any of them starts."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from weft.cache import version_of
from weft.clocks.environment import require_for
from weft.errors import BadInputError, WeftError, translated
from weft.paths import P4_DIRECTORY, PACKAGE
from weft.run.extensions import extension_hashes
from weft.run.spec import RunSpec, unlocated_run_spec
from weft.scenario import (
    Change,
    Scenario,
    anchor_paths,
    apply_changes,
    parse_scenario,
    read_mapping,
)
from weft.scenario.dotted import plain, set_at
from weft.scenario.program import compile_program
from weft.scenario.programs import macros_of, program_files
from weft.sweeps.axes import (
    Assignment,
    Axis,
    describe,
    grid_axis,
    points_axis,
    repeat_axis,
    require_distinct,
    zip_axis,
)
from weft.system.scratch import scratch_directory
from weft.topologies import FabricSpec

MAX_POINTS = 100_000
_MOST_PROBLEMS = 5
_SWEEP_KEYS = ("scenario", "grid", "zip", "points", "repeat")


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        identity: a hash of all that the run's figures depend on: the scenario, the files that it names, Weft itself;
            for `weft run --repeat` its seed.
        parameters: the values of the axes.
        tree: the scenario; empty if `arguments` name it.
        arguments: of `weft run`; without them, those that run `tree`.
        program: module that runs in place of `weft run`, and its arguments after the point's directory; may be empty.
    """

    identity: str
    parameters: Assignment
    tree: dict[str, Any]
    arguments: tuple[str, ...] = ()
    program: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The parameters, for people."""
        return describe(self.parameters) or "the scenario as it is"


@dataclass(frozen=True)
class SweepPlan:
    """A scenario's tree, its paths absolute, and the axes of a sweep over it; `place` is for errors."""

    tree: dict[str, Any]
    axes: tuple[Axis, ...]
    place: str

    @classmethod
    def read(
        cls, path: Path, axes: Sequence[Axis] = (), changes: Sequence[Change] = (), repeat: int | None = None
    ) -> SweepPlan:
        """Read a sweep's file or a scenario, and add changes and axes; paths in these lie below the working directory.

        A file with the key `scenario` is a sweep's: `scenario` is a path or a scenario itself; `grid` a mapping of
        parameters to values, `zip` one mapping or a list of such, `points` a list of mappings, `repeat` a number of
        seeds. `repeat`, if given, takes the place of the file's: each point runs with the scenario's seed and those
        that follow it.

        Raises:
            BadInputError: the file, or an axis, cannot be used; says where and why.
        """
        tree = read_mapping(path, "a sweep or a scenario")
        if "scenario" not in tree:
            anchor_paths(tree, path.parent)
            options = apply_changes(tree, changes)
            parsed = parse_scenario(tree, str(path), units_required=True, options=options)
            repeated = [] if repeat is None else [repeat_axis(parsed.seed, repeat, "--repeat")]
            return cls(plain(tree), (*axes, *repeated), str(path))
        for key in tree:
            if key not in _SWEEP_KEYS:
                raise BadInputError(f"unknown key '{key}'; valid: {', '.join(_SWEEP_KEYS)}", place=path)
        base, place, first_seed = _base(tree["scenario"], path, changes)
        own = [replace(axis, folder=path.parent) for axis in _axes(plain(tree), str(path))]
        repeated = []
        if repeat is not None:
            repeated = [repeat_axis(first_seed, repeat, "--repeat")]
        elif tree.get("repeat") is not None:
            repeated = [repeat_axis(first_seed, plain(tree)["repeat"], f"{path}: repeat")]
        return cls(base, (*own, *axes, *repeated), place)

    @property
    def point_count(self) -> int:
        """How many runs it has."""
        return math.prod(len(axis.assignments) for axis in self.axes)

    def points(self) -> list[Point]:
        """Return the runs in order, the last axis changing fastest.

        Raises:
            BadInputError: a value is not valid, or there are too many runs; nothing has been started.
            EnvironmentLacksError: a run needs what a sweep cannot have.
        """
        require_distinct(self.axes, self.place)
        if self.point_count > MAX_POINTS:
            raise BadInputError(
                f"the sweep has {self.point_count} points", place=self.place, valid=f"up to {MAX_POINTS}"
            )
        points, problems = [], []
        maker = PointMaker()
        for choice in itertools.product(*([(axis, each) for each in axis.assignments] for axis in self.axes)):
            try:
                points.append(self._point(choice, maker))
            except BadInputError as error:
                problems.append(str(error))
        if problems:
            distinct = list(dict.fromkeys(problems))
            more = len(distinct) - _MOST_PROBLEMS
            lines = distinct[:_MOST_PROBLEMS] + ([f"… and {more} more"] if more > 0 else [])
            raise BadInputError("\n".join(lines))
        return points

    def _point(self, choice: Sequence[tuple[Axis, Assignment]], maker: PointMaker) -> Point:
        tree = plain(self.tree)
        parameters: Assignment = {}
        for axis, assignment in choice:
            for key, value in assignment.items():
                with translated(BadInputError, BadInputError, place=self.place):
                    set_at(tree, key, plain(value))
            parameters.update(assignment)
            anchor_paths(tree, axis.folder)
        place = f"{self.place} with {describe(parameters)}" if parameters else self.place
        return maker.point(tree, place, parameters)


class PointMaker:
    """Makes points of scenarios; checks that their keys alone do not show are made once for all that share them."""

    def __init__(self) -> None:
        self._programs: dict[tuple[Any, ...], str] = {}
        self._fabrics: dict[str, FabricSpec] = {}
        self._weft = version_of([PACKAGE, P4_DIRECTORY], (".py", ".p4", ".so"))

    def point(self, tree: dict[str, Any], place: str, parameters: Assignment, program: tuple[str, ...] = ()) -> Point:
        """Return the point that runs a scenario's tree, its paths absolute; `place` is for errors.

        A `program` runs in place of `weft run`, and then the clock may be real.

        Raises:
            BadInputError: the scenario is not valid.
            EnvironmentLacksError: it needs what a sweep cannot have.
        """
        scenario = parse_scenario(tree, place, units_required=True)
        clock: Literal["real", "virtual"] = "real" if program and scenario.clock == "real" else "virtual"
        try:
            if scenario.clock != clock and scenario.clock is not None:
                raise BadInputError("clock: a sweep's runs are of the virtual clock: leave 'real' out")
            identity = self._identity(scenario.model_copy(update={"clock": clock}), program)
        except WeftError as error:
            kind = BadInputError if isinstance(error, BadInputError) else type(error)
            raise kind(f"{place}: {error}") from None
        # A point's file may be run again by itself, and then must have the same clock.
        return Point(identity, parameters, {**tree, "clock": clock}, program=program)

    def _identity(self, scenario: Scenario, program: tuple[str, ...]) -> str:
        section = scenario.fabric.model_dump_json()
        spec = unlocated_run_spec(scenario, self._fabrics.get(section))
        self._fabrics[section] = spec.fabric
        require_for(spec.fabric, spec.options)
        content = scenario.model_dump(mode="json")
        if not program:
            del content["clock"]
        files = program_files(spec.fabric, scenario)
        content["p4"] = {name: self._program_hash(spec, path) for name, (path, _) in files.items()}
        del content["programs"]
        content["entries"] = _entries_hashes(scenario)
        text = json.dumps([self._weft, content, extension_hashes([scenario]), *program], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _program_hash(self, spec: RunSpec, path: Path) -> str:
        compiler, macros = spec.options.compiler, macros_of(spec.fabric, spec.options)
        key = (path, compiler, tuple(macros.items()))
        if key not in self._programs:
            with scratch_directory() as directory:
                self._programs[key] = compile_program(path, directory, compiler, macros).p4_hash
        return self._programs[key]


def _entries_hashes(scenario: Scenario) -> dict[str, str]:
    """Return the content (SHA-256) of each file of entries, by the switches that get it. Raises BadInputError."""
    try:
        return {choice: hashlib.sha256(path.read_bytes()).hexdigest() for choice, path in scenario.entries.items()}
    except OSError as error:
        raise BadInputError(f"entries: {error.filename}: cannot be read: {error.strerror}") from None


def _base(scenario: Any, path: Path, changes: Sequence[Change]) -> tuple[dict[str, Any], str, int]:
    """Return the scenario's tree, its place for errors, and its seed."""
    if isinstance(scenario, str):
        file = path.parent / scenario
        tree = read_mapping(file, "a scenario")
        anchor_paths(tree, file.parent)
        place = str(file)
    elif isinstance(scenario, dict):
        tree, place = scenario, f"{path}: scenario"
        anchor_paths(tree, path.parent)
    else:
        raise BadInputError(f"scenario: must be a path or a mapping, is '{scenario}'", place=path)
    options = apply_changes(tree, changes)
    parsed = parse_scenario(tree, place, units_required=True, options=options)
    return plain(tree), place, parsed.seed


def _axes(tree: Mapping[str, Any], place: str) -> list[Axis]:
    grid, zipped, points = tree.get("grid") or {}, tree.get("zip") or [], tree.get("points")
    if not isinstance(grid, dict):
        raise BadInputError(f"grid: must be a mapping of parameters to values, is '{grid}'", place=place)
    groups = [zipped] if isinstance(zipped, dict) else zipped
    if not isinstance(groups, list) or not all(isinstance(group, dict) and group for group in groups):
        raise BadInputError("zip: must be a mapping of parameters to values, or a list of such", place=place)
    axes = [zip_axis(group, f"{place}: zip") for group in groups]
    if points is not None:
        if not isinstance(points, list):
            raise BadInputError(f"points: must be a list of mappings, is '{points}'", place=place)
        axes.append(points_axis(points, f"{place}: points"))
    return [*axes, *(grid_axis(key, values, f"{place}: grid") for key, values in grid.items())]
