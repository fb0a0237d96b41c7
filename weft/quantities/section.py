"""Sections of a scenario file."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import pydantic
from pydantic import BaseModel, ConfigDict


def field_docstrings(model: type) -> dict[str, str]:
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


_T = TypeVar("_T")


class Section(BaseModel):
    """A mapping in a scenario file; immutable, and undeclared keys are errors.

    Where hosts take a section's keys, a frozen dataclass declares them, with their types, defaults and docstrings, and
    the section inherits from it: processes of hosts read messages without pydantic.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, populate_by_name=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Declare the keys that dataclasses among the bases declare, unless the section itself declares them."""
        super().__init_subclass__(**kwargs)
        own = inspect.get_annotations(cls)
        found = {name: rest for name, *rest in _declared(cls) if name not in own}
        if found:
            cls.__annotations__ = own | {name: kind for name, (kind, _, _) in found.items()}
        # Those of a section among the bases, too: pydantic would take the dataclass's default for a new declaration.
        for name, (_, default, meaning) in found.items():
            setattr(cls, name, pydantic.Field(default, description=meaning))

    def as_declared(self, kind: type[_T], **changes: Any) -> _T:
        """Return the values of the keys that a dataclass declares, with some of them changed."""
        names = (each.name for each in fields(kind))  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in names} | changes)


def _declared(cls: type[Section]) -> Iterator[tuple[str, Any, Any, str | None]]:
    """Yield name, type, default and docstring of the fields that dataclasses among the bases declare."""
    for base in reversed(cls.__mro__[1:]):
        if is_dataclass(base) and not issubclass(base, BaseModel):
            hints, meanings = get_type_hints(base, include_extras=True), field_docstrings(base)
            for each in fields(base):
                if each.name in base.__annotations__:
                    yield each.name, hints[each.name], _default(each), meanings.get(each.name)


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return ... if field.default is MISSING else field.default


class FeatureSection(Section):
    """A section for features of the controller (`weft.controller.features`); a feature may declare its own."""

    def of_features(self, options: Any) -> Iterable[object]:
        """Return the settings of features, by default the section itself; `options` have the other sections."""
        return (self,)
