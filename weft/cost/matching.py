"""Runs that a scenario's price is put on: read, and refused unless they are of that scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.quantities.json_problems import quoted
from weft.results.model import Results
from weft.results.results_file import read_results
from weft.results.run_result import RESULTS_FILE
from weft.results.work import Work
from weft.scenario import Scenario
from weft.scenario.options import CHOSEN_BY_CHANCE_OR_MACHINE
from weft.topologies import FabricSpec


def results_of_run(directory: Path, scenario: Scenario, fabric: FabricSpec) -> Results:
    """Return the results in a directory that `weft run` has written.

    Raises:
        BadInputError: it has none, the run failed, or it was not made by this scenario; says where they differ.
    """
    file = directory / RESULTS_FILE
    if not file.exists():
        raise BadInputError(f"has no {RESULTS_FILE}: name a directory that weft run has written", place=directory)
    results = read_results(file)
    if not results.ok:
        raise BadInputError("the run failed, or its results are wrong; its work has no price", place=file)
    for key, ran, expected in _differences(results, scenario, fabric):
        raise BadInputError(
            f"made_by.{key} is {quoted(ran)}, the scenario says {quoted(expected)}: the run is of another scenario, "
            "or needs the same --set",
            place=file,
        )
    return results


def work_of_run(results: Results, directory: Path) -> list[Work]:
    """Return the work of a run's results. Raises BadInputError if there is none."""
    found = [each.work for kind in results.kinds for each in results.of(kind) if hasattr(each, "work")]
    if works := [each for each in found if each is not None and each.time_ps]:
        return works
    raise BadInputError(
        "the run has neither steps nor tokens",
        place=directory / RESULTS_FILE,
        valid="results of model, training_step, training_run or inference; those of inference written by this version",
    )


def _differences(results: Results, scenario: Scenario, fabric: FabricSpec) -> Iterator[tuple[str, Any, Any]]:
    made_by = results.made_by
    if scenario.name is not None:
        yield from _unlike("scenario", made_by.scenario, scenario.name)
    yield from _unlike("fabric", made_by.fabric, _plain(dict(fabric.parameters)))
    for key, value in _plain(scenario.options.as_dict()).items():
        if key not in CHOSEN_BY_CHANCE_OR_MACHINE and key in made_by.parameters:
            yield from _unlike(key, made_by.parameters[key], value)


def _unlike(key: str, ran: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield where values differ; what a scenario leaves open is whatever the run had."""
    if expected is None or expected in ([], {}):
        return
    if isinstance(ran, Mapping) and isinstance(expected, Mapping):
        for name, value in expected.items():
            if name in ran:
                yield from _unlike(f"{key}.{name}", ran[name], value)
    elif ran != expected:
        yield key, ran, expected


def _plain(value: Any) -> Any:
    """Return a value as a JSON file has it."""
    return json.loads(json.dumps(value))
