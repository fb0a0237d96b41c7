"""JSON files of runs and sweeps, from dataclasses and back into them: errors name the file and the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import pydantic_core
from pydantic import TypeAdapter

from weft.cache import UnreadableFileError, read_text
from weft.errors import BadInputError
from weft.quantities.json_problems import described
from weft.recording.reading import read_bytes
from weft.system.writing import written_whole

_MOST_PROBLEMS = 5
_Read = TypeVar("_Read")


def write_object(adapter: TypeAdapter[_Read], path: Path, value: _Read) -> Path:
    """Write what `validated` reads back, whole or not at all; returns the path.

    Raises:
        EnvironmentLacksError: the file cannot be written.
    """
    tree = adapter.dump_python(value, mode="json")
    with written_whole(path) as partial:
        partial.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    return path


def read_whole(adapter: TypeAdapter[_Read], path: Path, most_bytes: int, otherwise: str) -> _Read:
    """Return what a JSON file stands for; BadInputError: it cannot be read, or it is not that, said by `otherwise`."""
    try:
        return adapter.validate_json(read_text(path, most_bytes))
    except UnreadableFileError as error:
        raise BadInputError(error) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}", place=path) from None
    except pydantic.ValidationError as error:
        problem = described(error.errors(include_url=False)[0])
        raise BadInputError(f"{otherwise}: {problem}", place=path) from None


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; BadInputError: it cannot be read, is no JSON, or no object."""
    data = read_bytes(path)
    try:
        tree = pydantic_core.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise BadInputError(f"is no JSON: {error}", place=path) from None
    if not isinstance(tree, dict):
        raise BadInputError("must be an object", place=path)
    return tree


def validated(adapter: TypeAdapter[_Read], path: Path, tree: dict[str, Any]) -> _Read:
    """Return what an object stands for; BadInputError: a key is missing, or its value is not what was written."""
    try:
        return adapter.validate_json(pydantic_core.to_json(tree, inf_nan_mode="constants"), strict=True)
    except pydantic.ValidationError as error:
        problems = [described(problem) for problem in error.errors()[:_MOST_PROBLEMS]]
        raise BadInputError("\n".join(f"{path}: {problem}" for problem in problems)) from None
