"""Sections of a scenario file."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import pydantic
from pydantic import BaseModel, ConfigDict


@cache
def field_docstrings(model: type) -> Mapping[str, str]:
    """Return the texts of the fields that have one, by field."""
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(parsed, ast.ClassDef)
    found = {}
    for statement, below in zip(parsed.body, parsed.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[statement.target.id] = inspect.cleandoc(str(below.value.value))
    return found


def meaning_of(model: type, name: str) -> str:
    """Return the text below a field, in the class itself or the nearest base that has one; empty without any."""
    texts = (field_docstrings(base).get(name) for base in model.__mro__ if name in inspect.get_annotations(base))
    return next(filter(None, texts), "")


_T = TypeVar("_T")


class Section(BaseModel):
    """A mapping in a scenario file; immutable, and undeclared keys are errors.

    Where hosts take a section's keys, a frozen dataclass declares them, with their types, defaults and docstrings, and
    the section inherits from it: processes of hosts read messages without pydantic.
    """

    # Not use_attribute_docstrings: reading all sources again took a fifth of a small run. See meaning_of().
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Declare the keys that dataclasses among the bases declare, unless the section itself declares them."""
        super().__init_subclass__(**kwargs)
        own = inspect.get_annotations(cls)
        found = {name: rest for name, *rest in _declared(cls) if name not in own}
        if found:
            cls.__annotations__ = own | {name: kind for name, (kind, _) in found.items()}
        # Those of a section among the bases, too: pydantic would take the dataclass's default for a new declaration.
        for name, (_, default) in found.items():
            setattr(cls, name, pydantic.Field(default))

    def as_declared(self, kind: type[_T], **changes: Any) -> _T:
        """Return the values of the keys that a dataclass declares, with some of them changed."""
        names = (each.name for each in fields(kind))  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in names} | changes)


def _declared(cls: type[Section]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and default of the fields that dataclasses among the bases declare."""
    for base in reversed(cls.__mro__[1:]):
        if is_dataclass(base) and not issubclass(base, BaseModel):
            hints = get_type_hints(base, include_extras=True)
            for each in fields(base):
                if each.name in base.__annotations__:
                    yield each.name, hints[each.name], _default(each)


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return ... if field.default is MISSING else field.default


class FeatureSection(Section):
    """A section for features of the controller (`weft.controller.features`); a feature may declare its own."""

    def of_features(self, options: Any) -> Iterable[object]:
        """Return the settings of features, by default the section itself; `options` have the other sections."""
        return (self,)
