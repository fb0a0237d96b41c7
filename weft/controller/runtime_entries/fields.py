"""Helpers for all kinds of entries in files: access to fields, and errors that name the place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from weft.controller.errors import SettingError
from weft.controller.plain_values import count_of
from weft.controller.program_names import MOST_HINTED
from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.units import shown

PORT_BITS = 32


def at(place: str, read: Callable[..., Any], *arguments: Any) -> Any:
    """Return `read(*arguments)`; add the place to a SettingError."""
    with translated(SettingError, SettingError, place=place):
        return read(*arguments)


def mapping(value: Any, keys: Collection[str], what: str) -> Mapping[str, Any]:
    """Return `value` if it is a mapping with only these keys. Raises SettingError."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{what} is a mapping (keys: {', '.join(keys)}), not {shown(value)}")
    for key in value:
        if key not in keys:
            raise SettingError(f"unknown key {shown(key)}; {did_you_mean(str(key)[:MOST_HINTED], keys)}")
    return value


def needed(entry: Mapping[str, Any], key: str) -> Any:
    """Return the value of a required key. Raises SettingError."""
    if entry.get(key) is None:
        raise SettingError(f"{key} is missing")
    return entry[key]


def entries_of(entry: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    """Return the items of the list under a key, each with its place: `replicas[2]`. Raises SettingError."""
    entries = needed(entry, key)
    if not isinstance(entries, list):
        raise SettingError(f"must be a list, is {shown(entries)}", place=key)
    return [(f"{key}[{number}]", each) for number, each in enumerate(entries)]


def number_at(entry: Mapping[str, Any], key: str, bits: int, default: int | None = None) -> int:
    """Return the unsigned number under a key, required unless there is a default. Raises SettingError."""
    value = needed(entry, key) if default is None else entry.get(key, default)
    return int(at(key, count_of, value, bits))


def id_at(entry: Mapping[str, Any], key: str, bits: int) -> int:
    """Return the id under a key; 0, P4Runtime's wildcard, is invalid. Raises SettingError."""
    found = number_at(entry, key, bits)
    if not found:
        raise SettingError("0", place=key, valid=f"1 to {(1 << bits) - 1}")
    return found
