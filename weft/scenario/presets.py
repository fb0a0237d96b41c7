"""Sections that scenarios may name instead of writing them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from weft.hints import did_you_mean
from weft.quantities.definitions import Quantity
from weft.quantities.section import Section
from weft.quantities.units import shown

PRESET_KEY = "preset"


@dataclass(frozen=True)
class Presets:
    """Names for a section: one may stand in its place, or at its key `preset`, together with keys that differ.

    Args:
        what: the section describes.
        known: returns the sections by name.
    """

    what: str
    known: Callable[[], Mapping[str, Section]]

    def filled(self, value: object) -> object:
        """Return the data that a name stands for; other data as they are. Raises ValueError for an unknown name."""
        if isinstance(value, Mapping) and PRESET_KEY in value:
            named = self._named(value[PRESET_KEY])
            return merged(named, {key: each for key, each in value.items() if key != PRESET_KEY})
        return self._named(value) if isinstance(value, str) else value

    def _named(self, name: object) -> dict[str, Any]:
        known = self.known()
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"no {self.what} {shown(name)}; {did_you_mean(str(name), known)}")
        return _as_written(known[name])

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have pydantic read the data that a name stands for."""
        return core_schema.no_info_before_validator_function(self.filled, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what editors know of it: the section, a name, or a name and keys."""
        names = {"enum": list(self.known()), "type": "string"}
        own = {"type": "object", "properties": {PRESET_KEY: names}, "required": [PRESET_KEY]}
        return {"anyOf": [handler(schema), names, own]}


def preset_names(metadata: Iterable[Any]) -> tuple[str, ...]:
    """Return the names that may stand in place of a field's section, given the field's metadata."""
    return tuple(name for each in metadata if isinstance(each, Presets) for name in each.known())


def _as_written(section: Section) -> dict[str, Any]:
    """Return a section's keys as a file would have them: rates and times with their units, which files must give."""
    found = section.model_dump(exclude_unset=True)
    for name in found:
        value = getattr(section, name)
        if isinstance(value, Section):
            found[name] = _as_written(value)
            continue
        metadata = type(section).model_fields[name].metadata
        quantity = next((each for each in metadata if isinstance(each, Quantity)), None)
        if quantity is not None and quantity.unit:
            found[name] = quantity.write(value)
    return found


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping in which `above` counts where both have a key; sections within are merged, too.

    None above takes a key of `below` away.
    """
    found = dict(below)
    for key, value in above.items():
        inner = found.get(key)
        if value is None and key in below:
            del found[key]
            continue
        found[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return found
