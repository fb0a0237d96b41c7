"""The reference of results.json, made from the classes that declare its keys."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from weft.quantities.section import meaning_of
from weft.results.kinds import result_kinds
from weft.results.model import Results, result_keys

RESULTS_REFERENCE_FILE = "results-reference.md"
_INTRODUCTION = """# Reference of results.json

Every key of results.json, as `weft schema --results` writes it: do not edit this page.
[What a run leaves behind](results.md) explains the terms. Times are picoseconds of emulated time (`_ps`), sizes bytes,
rates bits per second; bandwidths are bytes per second.
"""
_NAMES: Mapping[Any, str] = {
    int: "number",
    float: "number",
    str: "text",
    bool: "true or false",
    NoneType: "null",
    Any: "any",
}


def results_reference() -> str:
    """Return the page."""
    places: dict[type, list[str]] = {}
    _find_places("", Results, places)
    return "\n".join([_INTRODUCTION, *(line for item in places.items() for line in _section(*item))])


def keys_of(model: type) -> dict[str, str]:
    """Return the meanings of a class's keys, in the order in which results.json has them.

    These are the fields with a docstring, and the figures that the class `derived` from them by properties with one.
    """
    names: Iterable[str] = [name for name, hint in get_type_hints(model).items() if get_origin(hint) is not ClassVar]
    texts = {name: " ".join(meaning_of(model, name).split()) for name in names}
    meanings = {name: text for name, text in texts.items() if text}
    if model is Results:
        meanings |= {kind.key: kind.meaning for kind in result_kinds()}
        names = result_keys()
    keys = {name: meanings[name] for name in names if name in meanings}
    derived: Mapping[str, str] = getattr(model, "derived", {})
    for key, name in derived.items():
        keys[key] = keys.pop(key) if key in keys else _property_meaning(model, name)
    return keys


def _find_places(path: str, model: type, places: dict[type, list[str]]) -> None:
    """Enter where results.json has a class, and those that its fields have."""
    places.setdefault(model, []).append(path)
    for key in keys_of(model):
        found, suffix = _model_of(_type_of(model, key))
        if found is not None and keys_of(found):
            _find_places(f"{path}.{key}{suffix}".lstrip("."), found, places)


def _section(model: type, places: list[str]) -> Iterator[str]:
    """Return the lines of a class."""
    yield f"## {', '.join(f'`{place}`' for place in places) if places != [''] else 'The file itself'}"
    yield ""
    yield _paragraph(model)
    yield ""
    yield "| key | type | meaning |"
    yield "|---|---|---|"
    for key, meaning in keys_of(model).items():
        yield f"| `{key}` | {_type_name(_type_of(model, key))} | {meaning} |"
    yield ""


def _paragraph(model: type) -> str:
    return " ".join(inspect.cleandoc(model.__doc__ or "").split("\n\n")[0].split())


def _property_meaning(model: type, name: str) -> str:
    text = inspect.cleandoc(getattr(model, name).__doc__).split("\n")[0].removeprefix("Return ")
    return text[0].upper() + text[1:]


def _type_of(model: Any, key: str) -> Any:
    if model is Results:
        for kind in result_kinds():
            if kind.key == key:
                return GenericAlias(list, (kind.model,))
    hints = get_type_hints(model, include_extras=True)
    return hints[key] if key in hints else get_type_hints(getattr(model, model.derived[key]).fget)["return"]


def _model_of(kind: Any) -> tuple[type | None, str]:
    """Return the dataclass that values of a type consist of, if any, and how a path leads to one of them."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return (kind if isinstance(kind, type) else None), ""
    if origin in (list, tuple):
        return _model_of(arguments[0])[0], "[]"
    if origin is dict:
        return _model_of(arguments[1])[0], ".NAME"
    if origin in (Union, UnionType):
        return next((_model_of(each) for each in arguments if _model_of(each)[0]), (None, ""))
    return None, ""


def _type_name(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (list, tuple):
        return f"list of {_type_name(arguments[0])}"
    if origin is dict:
        return f"{_type_name(arguments[1])} by name"
    if origin in (Union, UnionType):
        return " or ".join(_type_name(each) for each in arguments)
    return _NAMES.get(kind, "object")
