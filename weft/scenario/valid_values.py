"""Valid values of a scenario's keys, in words: for errors, and for the reference of scenarios."""

from __future__ import annotations

import types
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from weft.quantities.definitions import Quantity
from weft.scenario.values import Name, OfAnyKind, SectionOnUse, Text

_SIMPLE = {bool: "true or false", str: "a text", Path: "a path", Any: "any value", type(None): "nothing"}


def valid_values(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Return what a key of this type may hold: `'real' or 'virtual'`, `a rate from 1Mb/s to 100Tb/s`."""
    for each in metadata:
        if isinstance(each, Quantity):
            return f"{each.name} from {each.range_text}".replace("from above", "above")
        if isinstance(each, Text):
            return f"{each.what}, such as {each.example}"
        if isinstance(each, Name):
            return each.valid(repr)
        if isinstance(each, SectionOnUse):
            return f"a mapping with keys of {', '.join(keys_of(each.load()))}"
        if isinstance(each, OfAnyKind):
            return f"a mapping with the keys of {or_joined([str(kind) for kind in each.kinds()])}"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return valid_values(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        return or_joined([valid_values(each) for each in arguments if each is not type(None)])
    if origin is Literal:
        return or_joined([repr(each) for each in arguments])
    if origin is list:
        return f"a list of: {valid_values(arguments[0])}"
    if origin is dict:
        if arguments == (str, Any):
            return "a mapping"
        return f"a mapping from {valid_values(arguments[0])}, to {valid_values(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"a mapping with keys of {', '.join(keys_of(annotation))}"
    return _SIMPLE.get(annotation, str(annotation))


def or_joined(choices: Sequence[str]) -> str:
    """Return `a, b or c`."""
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def keys_of(model: type[BaseModel]) -> list[str]:
    """Return the keys of a section, as a file has them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def field_of(model: type[BaseModel], key: str) -> FieldInfo | None:
    """Return the field that a key of a section stands for."""
    return next((field for name, field in model.model_fields.items() if key in (field.alias, name)), None)


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the sections that a key's value may be, or that its list may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for each in get_args(annotation) for section in sections_in(each)]
