"""Dataclasses as plain data for JSON: one rule for all that a run writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar


class PlainData:
    """A base of dataclasses that are written as JSON and read back.

    Fields that take no part in comparisons are not written: they are kept elsewhere, or follow from the others.
    """

    derived: ClassVar[Mapping[str, str]] = {}
    """Properties that are written after the fields, by their keys."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the fields, then the derived figures."""
        return {
            **{key: value for key, value in _fields_of(self).items() if key not in self.derived},
            **{key: plain(getattr(self, name)) for key, name in self.derived.items()},
        }


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as objects, tuples as lists, keys as texts."""
    if isinstance(value, PlainData):
        return value.as_dict()
    if is_dataclass(value):
        return _fields_of(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return value


def _fields_of(value: Any) -> dict[str, Any]:
    return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.compare}
