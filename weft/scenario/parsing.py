"""From what a file holds to a checked scenario; errors say where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from weft.errors import BadInputError, translated
from weft.hints import did_you_mean
from weft.quantities.definitions import UNITS_REQUIRED
from weft.quantities.units import shown
from weft.quantities.yaml_files import read_mapping
from weft.scenario.checks import check_across, check_options
from weft.scenario.dotted import key_of, set_at, split_path
from weft.scenario.explain import explain
from weft.scenario.fabric_presets import with_preset
from weft.scenario.model import Scenario
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem, Places
from weft.scenario.topology import HOST_FILE, parse_fabric
from weft.scenario.traffic import TOGETHER, TRAFFIC_KINDS, kind_of_item
from weft.scenario.values import Section, SectionOnUse
from weft.traffic.class_reference import absolute_reference, is_class_reference

_BY_SWITCH = ("programs", "entries", "commands")
"""Keys that have a file for each choice of switches."""
_FILES = {"fabric": ("path", HOST_FILE), "schedule": ("topology", "nodes", "trace")}
"""Keys of sections that name a file."""
_Section = TypeVar("_Section", bound=Section)


@dataclass(frozen=True)
class Change:
    """A key that an option of a command sets: `option` is what people gave, for errors.

    A key that ends in [] names a list of the scenario itself and adds an item to it.
    """

    key: str
    value: Any
    option: str


def load_scenario(path: Path, changes: Sequence[Change] = ()) -> Scenario:
    """Read and check a scenario file, after `changes`; their relative paths lie below the working directory.

    Raises:
        BadInputError: the file cannot be read, is no YAML, or a key or value is not valid; the message names
            the file, the line, the key, the value and what would be valid.
    """
    tree = read_mapping(path, "a scenario")
    anchor_paths(tree, path.parent)
    options = apply_changes(tree, changes)
    return parse_scenario(tree, str(path), units_required=True, options=options)


def apply_changes(tree: dict[str, Any], changes: Sequence[Change]) -> dict[str, str]:
    """Change a scenario's tree; returns the options by the keys that they set. Raises BadInputError."""
    options = {}
    for change in changes:
        key = change.key
        if key.endswith("[]"):
            name = key.removesuffix("[]")
            if tree.get(name) is None:
                tree[name] = []
            # What may stand there instead of a list is found wrong later, with its place.
            if isinstance(tree[name], list):
                options[f"{name}[{len(tree[name])}]"] = change.option
                tree[name].append(change.value)
            continue
        with translated(BadInputError, BadInputError, place=change.option):
            set_at(tree, key, change.value)
            options[key_of(split_path(key))] = change.option
    if changes:
        anchor_paths(tree, Path())
    return options


def anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    """Make the files that a scenario's tree names absolute; relative ones lie below `folder`.

    These are the P4 programs, files of entries, files of a topology and its hosts, of a schedule, files of items of the
    traffic (`TrafficSection.files`) and every `path/to/file.py:Class`, wherever it stands.
    """
    sections = [section for name in _BY_SWITCH if isinstance(section := tree.get(name), dict)]
    of_switches = [(section, key) for section in sections for key in section]
    of_sections = [(tree.get(section), key) for section, keys in _FILES.items() for key in keys]
    own = ((tree, "p4"), *of_sections, *of_switches)
    for section, key in (*own, *_files_of(tree.get("traffic"))):
        if isinstance(section, dict) and isinstance(section.get(key), str):
            if "\0" in section[key]:
                raise BadInputError(f"{shown(section[key])} is not a path", place=key, valid="no null character")
            section[key] = str((folder / section[key]).resolve())
    _anchor_classes(tree, folder)


def _files_of(traffic: Any) -> Iterator[tuple[Any, str]]:
    """Yield items of the traffic, or sections of them, each with a key that names a file."""
    for item in traffic if isinstance(traffic, list) else [traffic]:
        if isinstance(item, dict):
            yield from _files_of(item.get(TOGETHER))
            yield from (
                _holder_of(item, key) for kind in TRAFFIC_KINDS if kind in item for key in TRAFFIC_KINDS[kind].files
            )


def _holder_of(item: Any, key: str) -> tuple[Any, str]:
    """Return the section of an item that has a key, given its path, and the key there."""
    *sections, last = key.split(".")
    for name in sections:
        item = item.get(name) if isinstance(item, dict) else None
    return item, last


def _anchor_classes(tree: Any, folder: Path) -> None:
    items = list(tree.items() if isinstance(tree, dict) else enumerate(tree))
    for key, value in items:
        if isinstance(value, dict | list):
            _anchor_classes(value, folder)
        elif isinstance(value, str) and is_class_reference(value):
            tree[key] = absolute_reference(value, folder)


def parse_scenario(
    tree: dict[str, Any],
    place: str = "scenario",
    *,
    units_required: bool = False,
    options: Mapping[str, str] | None = None,
) -> Scenario:
    """Check a scenario given as plain data.

    Args:
        tree: its keys.
        place: what holds them, for errors.
        units_required: whether rates and times need a unit; otherwise bare numbers are b/s and ps.
        options: keys that a command's options have set, and these options, for errors.

    Raises:
        BadInputError: as `load_scenario`.
    """
    places = Places(place, tree, options or {})
    context = {UNITS_REQUIRED: units_required}
    with places.locating():
        tree, places = with_preset(tree, places)
    plain: Any = dict(tree)
    for name, field in Scenario.model_fields.items():
        if field.alias and name in plain:
            hint = did_you_mean(name, [field.alias])
            raise BadInputError(f"unknown key '{name}'; {hint}", place=places.of([name]))
    try:
        if "fabric" in plain:
            plain["fabric"] = parse_fabric(plain["fabric"], places, context)
        if "traffic" in plain:
            items = _as_list(plain["traffic"])
            plain["traffic"] = [
                _parse_traffic(item, places, context, ("traffic", index)) for index, item in enumerate(items)
            ]
        _parse_sections_on_use(Scenario, plain, places, context)
        scenario = _validated(Scenario, plain, places, context)
        check_across(scenario)
    except KeyProblem as problem:
        raise places.located(problem) from None
    return scenario.at(places)


def parse_options(tree: Mapping[str, Any]) -> FabricOptions:
    """Check the options of a fabric, given as a scenario's keys; bare numbers are b/s and ps. Raises BadInputError."""
    places = Places("options", tree)
    plain, context = dict(tree), {UNITS_REQUIRED: False}
    with places.locating():
        _parse_sections_on_use(FabricOptions, plain, places, context)
        options = _validated(FabricOptions, plain, places, context)
        check_options(options)
    return options


def _parse_sections_on_use(
    model: type[Section], plain: dict[str, Any], places: Places, context: dict[str, Any]
) -> None:
    """Replace the values of sections that are imported only where they are used."""
    for name, field in model.model_fields.items():
        on_use = next((each for each in field.metadata if isinstance(each, SectionOnUse)), None)
        if on_use is not None and plain.get(name) is not None:
            plain[name] = _parse_on_use(on_use, plain[name], places, context, name)


def _parse_on_use(kind: SectionOnUse, value: Any, places: Places, context: dict[str, Any], key: str) -> Section:
    if isinstance(value, Section):
        return value
    if not isinstance(value, Mapping):
        raise KeyProblem(key, f"must be a mapping, is {shown(value)}")
    return _validated(kind.load(), value, places, context, (key,))


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise KeyProblem("traffic", f"must be a list, is {shown(value)}")
    return value


def _parse_traffic(item: Any, places: Places, context: dict[str, Any], path: tuple[str | int, ...]) -> Section:
    key = key_of(path)
    if isinstance(item, Section):
        return item
    if not isinstance(item, dict):
        raise KeyProblem(key, f"must be a mapping, is {shown(item)}")
    beside = item.get(TOGETHER)
    if isinstance(beside, list) and len(path) == len(("traffic", 0)):
        parsed = [_parse_traffic(each, places, context, (*path, TOGETHER, index)) for index, each in enumerate(beside)]
        item = {**item, TOGETHER: parsed}
    kind = kind_of_item(item, key, beside_others=len(path) > len(("traffic", 0)))
    return _validated(kind, item, places, context, path)


def _validated(
    model: type[_Section],
    tree: Mapping[str, Any],
    places: Places,
    context: dict[str, Any],
    above: Sequence[str | int] = (),
) -> _Section:
    """Return the section that a tree holds at the key `above`. Raises BadInputError."""
    try:
        return model.model_validate(dict(tree), context=context)
    except pydantic.ValidationError as error:
        raise explain(error, model, tree, places, above) from None
