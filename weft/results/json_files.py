"""JSON files of runs and sweeps, from dataclasses and back into them: errors name the file and the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import pydantic_core
from pydantic import TypeAdapter

from weft.errors import BadInputError
from weft.recording.reading import quoted, read_bytes
from weft.system.writing import written_whole

_MOST_PROBLEMS = 5
_MUST_BE = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "string_pattern_mismatch": "is not valid",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "dataclass_type": "must be an object",
    "model_type": "must be an object",
}

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


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; BadInputError: it cannot be read, is no JSON, or no object."""
    data = read_bytes(path)
    try:
        tree = pydantic_core.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise BadInputError(f"{path}: is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise BadInputError(f"{path}: must be an object")
    return tree


def validated(adapter: TypeAdapter[_Read], path: Path, tree: dict[str, Any]) -> _Read:
    """Return what an object stands for; BadInputError: a key is missing, or its value is not what was written."""
    try:
        return adapter.validate_json(pydantic_core.to_json(tree, inf_nan_mode="constants"), strict=True)
    except pydantic.ValidationError as error:
        problems = [_explain(problem) for problem in error.errors()[:_MOST_PROBLEMS]]
        raise BadInputError("\n".join(f"{path}: {problem}" for problem in problems)) from None


def _explain(problem: Any) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(
        "."
    )
    if problem["type"] == "missing":
        return f"{place}: is missing; this version of Weft writes it"
    if problem["type"] in ("literal_error", "enum"):
        return f"{place}: {quoted(problem['input'])} is not valid; valid: {problem['ctx']['expected']}"
    message = _MUST_BE.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}, is {quoted(problem['input'])}"
