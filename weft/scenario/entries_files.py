"""Files of table entries that a scenario names, checked against the programs of the switches that get them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import finsy

from weft.cache import read_text
from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.controller.pipeline import Pipeline
from weft.controller.runtime_entries import EntriesSettings, RuntimeEntries, runtime_entries
from weft.errors import BadInputError, EnvironmentLacksError
from weft.quantities.plain_data import repeated_name
from weft.quantities.units import shown
from weft.quantities.yaml_files import read_mapping
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.scenario.programs import Programs
from weft.scenario.switch_choice import by_switch
from weft.topologies import FabricSpec

MAX_FILE_BYTES = 16 * 1024 * 1024


def read_entries_file(path: Path) -> Any:
    """Return what a file of entries holds, JSON or, by its ending, YAML.

    Raises:
        BadInputError: it cannot be read, or is neither.
    """
    if path.suffix in (".yaml", ".yml"):
        return read_mapping(path, "entries")
    try:
        return json.loads(read_text(path, MAX_FILE_BYTES), object_pairs_hook=_without_duplicates)
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror or error}", place=path) from None
    except json.JSONDecodeError as error:
        raise BadInputError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"is not JSON that can be used: {error}", place=path) from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = repeated_name(pairs)
    if twice is not None:
        raise ValueError(f"the key {shown(twice)} is given twice")
    return dict(pairs)


def entries_settings(fabric: FabricSpec, options: FabricOptions, programs: Programs) -> EntriesSettings:
    """Return the entries of the files that a scenario names, by switch.

    Raises:
        KeyProblem: a file cannot be used, or does not fit the program of a switch; names file and entry.
    """
    chosen = {choice: (path, f"entries.{choice}") for choice, path in options.entries.items()}
    trees: dict[Path, Any] = {}
    read: dict[tuple[Path, int], RuntimeEntries] = {}
    found = {}
    for name, (path, key) in by_switch(fabric, chosen, "entries").items():
        pipeline = programs.pipelines[name]
        try:
            if path not in trees:
                trees[path] = read_entries_file(path)
            if (path, id(pipeline)) not in read:
                entries = runtime_entries(trees[path], pipeline.names)
                _require_different(entries.entities, pipeline)
                read[path, id(pipeline)] = entries
        except BadInputError as error:
            raise KeyProblem(key, error) from None
        except ValueError as error:
            raise KeyProblem(key, f"{path.name}: {error}") from None
        if options.target == "bmv2":
            _require_nothing_that_bmv2_lacks(read[path, id(pipeline)], path)
        found[name] = read[path, id(pipeline)]
    return EntriesSettings(
        {name: tuple(each.entities.values()) for name, each in found.items()},
        {name: tuple(each.cells.values()) for name, each in found.items()},
    )


def _require_different(entities: Mapping[str, Entity], pipeline: Pipeline) -> None:
    """Raise SettingError for two entries of the same key."""
    encoder = pipeline.encoder()
    found: dict[tuple[str, bytes], str] = {}
    for place, entity in entities.items():
        for key in encoder.entity_set([entity]):
            if key in found:
                raise SettingError(f"has the same key as {found[key]}", place=place)
            found[key] = place


def _require_nothing_that_bmv2_lacks(entries: RuntimeEntries, path: Path) -> None:
    for place, cell in entries.cells.items():
        if isinstance(cell, finsy.P4RegisterEntry | finsy.P4ValueSetEntry):
            raise EnvironmentLacksError(
                f"{place}: BMv2 has neither registers nor value sets over P4Runtime: leave them out,"
                " or use --target embedded",
                place=path.name,
            )
