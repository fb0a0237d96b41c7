"""Describes pydantic's validation errors of JSON: the key, the value, and the requirement."""

from __future__ import annotations

from typing import Any

_LONGEST_QUOTED = 60
_MUST_BE = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "string_too_long": "must be a shorter text",
    "string_pattern_mismatch": "is not valid",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "dataclass_type": "must be an object",
    "model_type": "must be an object",
    "finite_number": "must be a finite number",
}
_BOUNDS = {"ge": "{} or more", "gt": "above {}", "le": "up to {}", "lt": "below {}"}


def described(problem: Any) -> str:
    """Return a message for one of a ValidationError's `errors()`; the key comes first."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
    place = place.lstrip(".")
    kind = problem["type"]
    if kind == "json_invalid":
        return f"is no JSON: {problem['ctx']['error']}"
    if kind == "missing":
        return f"{place}: is missing; this version of Weft writes it"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: is not a key that this version of Weft writes"
    value = quoted(problem["input"])
    if kind in ("literal_error", "enum"):
        return f"{place}: {value} is not valid; valid: {problem['ctx']['expected']}"
    bounds = [text.format(problem["ctx"][name]) for name, text in _BOUNDS.items() if name in problem.get("ctx", {})]
    if bounds:
        return f"{place}: {value} is out of range (valid: {bounds[0]})"
    message = _MUST_BE.get(kind) or problem["msg"].removeprefix("Value error, ")
    return f"{place or 'the whole'}: {message}, is {value}"


def quoted(value: object) -> str:
    """Return a value for an error message, quoted and shortened."""
    text = str(value)
    return f"'{text[:_LONGEST_QUOTED]}…'" if len(text) > _LONGEST_QUOTED else f"'{text}'"
