"""Converts dataclasses to plain data for JSON: one rule for all files that a run writes; finds repeated names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar


class PlainData:
    """Base of dataclasses that are written as JSON and read back.

    Fields excluded from comparisons are not written: they are stored elsewhere or derived from other fields.
    """

    derived: ClassVar[Mapping[str, str]] = {}
    """Properties written after the fields, by key in the JSON."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the fields, then the derived figures."""
        return {
            **{key: value for key, value in _fields_of(self).items() if key not in self.derived},
            **{key: plain(getattr(self, name)) for key, name in self.derived.items()},
        }


def plain(value: Any) -> Any:
    """Return a value as JSON values: dataclasses as objects, tuples as lists, keys as text."""
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


def repeated_name(pairs: Iterable[tuple[str, object]]) -> str | None:
    """Return the first repeated name among an `object_pairs_hook`'s pairs; None if all differ."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None
