"""Reading scenario files: every key is checked, errors tell the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pydantic
import ruamel.yaml
import ruamel.yaml.error
from pydantic import BaseModel

from traffic.class_reference import absolute_reference, is_class_reference
from weft.errors import BadInputError, did_you_mean
from weft.scenario.checks import check_across
from weft.scenario.model import Scenario
from weft.scenario.traffic import TRAFFIC_KINDS
from weft.scenario.values import Section


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario file.

    Raises:
        BadInputError: the file cannot be read, is no YAML, or a key or value is not valid; the message names
            the file, the line, the key, the value and what would be valid.
    """
    tree = read_mapping(path, "a scenario")
    anchor_paths(tree, path.parent)
    return parse_scenario(tree, str(path))


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the lines that keys stand on; empty for an empty file.

    Raises:
        BadInputError: the file cannot be read, is no YAML, or does not hold a mapping; `what` says what it should be.
    """
    yaml = ruamel.yaml.YAML(typ="rt")
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: is not UTF-8 text: {error}") from None
    except ruamel.yaml.error.YAMLError as error:
        raise BadInputError(f"{path}: is not YAML: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise BadInputError(f"{path}: {what} is a mapping of keys, not a {type(tree).__name__}")
    return tree


def anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    """Make the files that a scenario's tree names absolute; relative ones lie below `folder`.

    These are the P4 program and every `path/to/file.py:Class`, wherever it stands.
    """
    if isinstance(tree.get("p4"), str):
        tree["p4"] = str((folder / tree["p4"]).resolve())
    _anchor_classes(tree, folder)


def _anchor_classes(tree: Any, folder: Path) -> None:
    items = list(tree.items() if isinstance(tree, dict) else enumerate(tree))
    for key, value in items:
        if isinstance(value, dict | list):
            _anchor_classes(value, folder)
        elif isinstance(value, str) and is_class_reference(value):
            tree[key] = absolute_reference(value, folder)


def parse_scenario(tree: dict[str, Any], place: str = "scenario") -> Scenario:
    """Check a scenario given as plain data.

    Raises:
        BadInputError: as `load_scenario`.
    """
    try:
        plain = dict(tree)
        if "traffic" in plain:
            plain["traffic"] = [
                _parse_traffic(item, tree, index, place)
                for index, item in enumerate(_as_list(plain["traffic"], place))
            ]
        scenario = Scenario.model_validate(plain)
    except pydantic.ValidationError as error:
        raise BadInputError(
            "\n".join(_explain(problem, tree, place, Scenario) for problem in error.errors())
        ) from None
    check_across(scenario, place)
    return scenario


def _as_list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInputError(f"{place}: traffic: must be a list, is '{value}'")
    return value


def _parse_traffic(item: Any, tree: dict[str, Any], index: int, place: str) -> Section:
    if not isinstance(item, dict):
        raise BadInputError(f"{place}: traffic[{index}]: must be a mapping, is '{item}'")
    kinds = [kind for kind in TRAFFIC_KINDS if kind in item]
    if len(kinds) != 1:
        raise BadInputError(
            f"{place}: traffic[{index}]: needs exactly one of {', '.join(TRAFFIC_KINDS)}; "
            f"has keys {', '.join(map(str, item))}"
        )
    model = TRAFFIC_KINDS[kinds[0]]
    try:
        return model.model_validate(dict(item))
    except pydantic.ValidationError as error:
        problems = [
            _explain({**problem, "loc": ("traffic", index, *problem["loc"])}, tree, place, model)
            for problem in error.errors()
        ]
        raise BadInputError("\n".join(problems)) from None


def _explain(problem: Any, tree: Any, place: str, model: type[BaseModel]) -> str:
    location = problem["loc"]
    line = _line_of(tree, location)
    where = f"{place}:{line}" if line is not None else place
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key '{name}'; {did_you_mean(str(location[-1]), _keys_at(model, location[:-1]))}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {name}: {message} (value: {problem['input']!r})"


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        # The model itself, or that of a list's items.
        for annotation in (field.annotation, *get_args(field.annotation)):
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                model = annotation
    return [field.alias or name for name, field in model.model_fields.items()]


def _line_of(tree: Any, location: tuple[int | str, ...]) -> int | None:
    line = None
    for part in location:
        marks = getattr(tree, "lc", None)
        try:
            if marks is not None:
                line = (marks.item(part) if isinstance(part, int) else marks.key(part))[0] + 1
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            break
    return line
