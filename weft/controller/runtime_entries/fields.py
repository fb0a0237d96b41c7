"""What all kinds of entries in files have in common: their fields, and the place that an error names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from weft.controller.errors import SettingError
from weft.controller.plain_values import count_of
from weft.controller.program_names import MOST_HINTED
from weft.hints import did_you_mean
from weft.quantities.units import shown

PORT_BITS = 32


def at(place: str, read: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `read` does with the arguments; its SettingError names the place."""
    try:
        return read(*arguments)
    except SettingError as error:
        raise SettingError(f"{place}: {error}") from None


def mapping(value: Any, keys: Collection[str], what: str) -> Mapping[str, Any]:
    """Return a mapping that has no other keys than these. Raises SettingError."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{what} is a mapping (keys: {', '.join(keys)}), not {shown(value)}")
    for key in value:
        if key not in keys:
            raise SettingError(f"unknown key {shown(key)}; {did_you_mean(str(key)[:MOST_HINTED], keys)}")
    return value


def needed(entry: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key that must be there. Raises SettingError."""
    if entry.get(key) is None:
        raise SettingError(f"{key} is missing")
    return entry[key]


def entries_of(entry: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    """Return what the list under a key has, each with its place: `replicas[2]`. Raises SettingError."""
    entries = needed(entry, key)
    if not isinstance(entries, list):
        raise SettingError(f"{key}: must be a list, is {shown(entries)}")
    return [(f"{key}[{number}]", each) for number, each in enumerate(entries)]


def number_at(entry: Mapping[str, Any], key: str, bits: int, default: int | None = None) -> int:
    """Return the count under a key; one without a default must be there. Raises SettingError."""
    value = needed(entry, key) if default is None else entry.get(key, default)
    return int(at(key, count_of, value, bits))


def id_at(entry: Mapping[str, Any], key: str, bits: int) -> int:
    """Return the id under a key, which is not 0: that is P4Runtime's wildcard. Raises SettingError."""
    found = number_at(entry, key, bits)
    if not found:
        raise SettingError(f"{key}: 0 (valid: 1 to {(1 << bits) - 1})")
    return found
