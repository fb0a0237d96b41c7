"""Turns pydantic's errors about a scenario into Weft's: place, key, value, and what would be valid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, get_args, get_origin

import pydantic
from pydantic import BaseModel

from weft.errors import BadInputError, Refusal
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.scenario.dotted import key_of
from weft.scenario.places import Path, Places
from weft.scenario.valid_values import field_of, keys_of, sections_in, valid_values
from weft.scenario.values import SectionKeyError

_SHOWN_CHARACTERS = 60
_MOST_PROBLEMS = 5
# A value of which an error need not show all.
_LONG = re.compile(r"\S{200,}")


def explain(
    error: pydantic.ValidationError, model: type[BaseModel], tree: Any, places: Places, above: Path = ()
) -> BadInputError:
    """Return an error with a line for each wrong key. `tree` is what `model` was to hold; its key is `above`."""
    found: dict[tuple[str | int, ...], list[Any]] = {}
    for problem in error.errors():
        path = _path_in(tree, problem["loc"], problem["type"])
        if isinstance(wrong := problem.get("ctx", {}).get("error"), SectionKeyError):
            path = (*path, wrong.key)
        found.setdefault(path, []).append(problem)
    # Of a value that may be a list or something else, what is wrong within the list says more.
    deepest = [path for path in found if not any(other[: len(path)] == path and other != path for other in found)]
    problems = [
        places.located_at((*above, *path), _describe(found[path], model, path, above))
        for path in deepest[:_MOST_PROBLEMS]
    ]
    if len(deepest) == 1:
        return problems[0]
    more = len(deepest) - _MOST_PROBLEMS
    return BadInputError("\n".join([*map(str, problems), *([f"… and {more} more"] if more > 0 else [])]))


def _path_in(tree: Any, location: Iterable[Any], kind: str) -> tuple[str | int, ...]:
    """Return the path of a problem within the data: its location without what pydantic adds of its own."""
    path: list[str | int] = []
    parts = list(location)
    for depth, part in enumerate(parts):
        is_key = isinstance(tree, dict) and part in tree
        if is_key or (isinstance(tree, list) and isinstance(part, int) and part < len(tree)):
            tree = tree[part]
        elif not (kind == "missing" and depth == len(parts) - 1):
            continue
        path.append(part)
    return tuple(path)


def _describe(problems: list[Any], model: type[BaseModel], path: Path, above: Path) -> Refusal:
    problem = problems[0]
    key = key_of((*above, *path))
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        return Refusal(f"unknown key '{key}'; {did_you_mean(str(path[-1]), _keys_at(model, path[:-1]))}")
    if problem["loc"][-1:] == ("[key]",):
        return Refusal(f"unknown key '{key}'; {_valid_keys(model, path)}")
    if problem["type"] == "missing":
        return Refusal(f"is missing; it must be {_valid_at(model, path)}", place=key)
    if len(problems) == 1 and problem["type"] == "value_error":
        wrong = problem["ctx"]["error"]
        # A SectionKeyError's own place is the last part of the key.
        own = wrong.moved(key) if isinstance(wrong, SectionKeyError) else Refusal(wrong, place=key)
        shortened = _LONG.sub(lambda word: f"{word.group()[:_SHOWN_CHARACTERS]}…", own.problem)
        return Refusal(shortened, place=own.place, valid=own.valid, hint=own.hint)
    text = f"{shown(problem['input'])} is not valid; valid: {_valid_at(model, path)}"
    return Refusal(text, place=key or "the scenario")


def _keys_at(model: type[BaseModel], path: Path) -> list[str]:
    for part in path:
        field = field_of(model, str(part)) if isinstance(part, str) else None
        sections = sections_in(field.annotation) if field is not None else []
        if sections:
            model = sections[0]
    return keys_of(model)


def _valid_keys(model: type[BaseModel], path: Path) -> str:
    """Return what may stand in place of a key of a mapping."""
    mapping, _ = _annotation_at(model, path[:-1])
    keys = get_args(mapping)[0]
    names = get_args(keys)
    if names and all(isinstance(name, str) for name in names):
        return did_you_mean(str(path[-1]), names)
    return f"valid: {valid_values(keys, [])}"


def _valid_at(model: type[BaseModel], path: Path) -> str:
    annotation, metadata = _annotation_at(model, path)
    return valid_values(annotation, metadata) + _valid_length(annotation, metadata)


def _annotation_at(model: type[BaseModel], path: Path) -> tuple[Any, Sequence[Any]]:
    """Return the type of what stands at a path, and what its field adds."""
    annotation: Any = model
    metadata: list[Any] = []
    for part in path:
        sections = sections_in(annotation)
        field = field_of(sections[0], str(part)) if sections and isinstance(part, str) else None
        if field is not None:
            annotation, metadata = field.annotation, field.metadata
        else:
            annotation, metadata = _item_of(annotation), []
    return annotation, metadata


def _valid_length(annotation: Any, metadata: Sequence[Any]) -> str:
    """Return how many items a list or a mapping may have, "" where there may be any number."""
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
    # In a field of its own a bound is by itself, in the type of a mapping's values within its Field.
    bounds = [bound for each in metadata for bound in (each, *getattr(each, "metadata", ()))]
    least = max((getattr(bound, "min_length", 0) for bound in bounds), default=0)
    most = min((bound.max_length for bound in bounds if hasattr(bound, "max_length")), default=None)
    if most is None:
        return ", with at least one item" if least else ""
    return f", with {most} items" if least == most else f", with {least} to {most} items"


def _item_of(annotation: Any) -> Any:
    """Return the type of the items of a list, or of a mapping's values."""
    if get_origin(annotation) in (list, dict):
        return get_args(annotation)[-1]
    for each in get_args(annotation):
        found = _item_of(each)
        if found is not each:
            return found
    return annotation
