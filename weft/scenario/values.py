"""Values of a scenario file's sections other than quantities (weft/quantities)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from weft.errors import Refusal
from weft.quantities.definitions import whole
from weft.quantities.names import Name
from weft.quantities.section import FeatureSection, Section
from weft.quantities.text import Text
from weft.quantities.traffic_classes import CLASSES, DATA_CLASSES
from weft.traffic.class_reference import CLASS_REFERENCE, is_class_reference

__all__ = [
    "CLASSES",
    "ClassReference",
    "DataClass",
    "FeatureSection",
    "ForFeature",
    "Name",
    "NameOrClass",
    "OfAnyKind",
    "PriorityClass",
    "Section",
    "SectionKeyError",
    "SectionOnUse",
    "Text",
]


class SectionKeyError(Refusal, ValueError):
    """A problem of one key that a check of a whole section found."""

    def __init__(self, key: str, problem: str, *, valid: str | Iterable[object] = "") -> None:
        super().__init__(problem, place=key, valid=valid)
        self.key = key


@dataclass(frozen=True)
class ForFeature:
    """Annotates a key of no section: `settings` makes the settings of a feature from its value."""

    settings: Callable[[Any], object]


class NameOrClass(Name):
    """The name of something of Weft's, or a reference to a user's class (`weft.traffic.class_reference`)."""

    def read(self, value: object) -> str:
        """Return the name or the reference. Raises ValueError."""
        if isinstance(value, str) and is_class_reference(value):
            return value
        name = super().read(value)
        if name not in self.known():
            raise self.unknown(name)
        return name

    def valid(self, written: Callable[[str], str]) -> str:
        """Return all names, each as `written`, and the form of a reference."""
        return f"{super().valid(written)}, or path/to/file.py:Class"

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what editors know of it: they complete the names, and accept references."""
        own = {"type": "string", "pattern": CLASS_REFERENCE}
        return {"anyOf": [{"enum": list(self.known()), "type": "string"}, own]}


@dataclass(frozen=True)
class OfAnyKind:
    """A section of one of several kinds: `read` makes it from data, `sections` returns all kinds' sections."""

    read: Callable[[object], Section]
    sections: Callable[[], Iterable[type[Section]]]

    def kinds(self) -> list[str]:
        """Return the names of the kinds."""
        return [getattr(section, "kind", section.__name__) for section in self.sections()]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have pydantic read values by `read`, and dump a section with the keys of its own kind."""
        return core_schema.no_info_plain_validator_function(
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True),
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what editors know of it: the keys of every kind."""
        found = (handler(section.__pydantic_core_schema__) for section in self.sections())
        # A section in which another one occurs twice is a reference.
        return {"anyOf": [handler.resolve_ref_schema(each) for each in found]}


@dataclass(frozen=True)
class SectionOnUse:
    """A section that other commands than `weft run` read, None where a file lacks it.

    Its class is imported only where a file has it: building its model would cost every run.
    """

    module: str
    name: str

    def load(self) -> type[Section]:
        """Import and return its class."""
        found: type[Section] = getattr(import_module(self.module), self.name)
        return found

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have pydantic take a section that has been read; `weft.scenario.parsing` reads it."""
        return core_schema.no_info_plain_validator_function(
            _section_or_none,
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped_or_none, info_arg=True),
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return what editors know of it."""
        return handler.resolve_ref_schema(handler(self.load().__pydantic_core_schema__))


def _section_or_none(value: object) -> Section | None:
    if value is not None and not isinstance(value, Section):
        raise ValueError("must be a mapping")
    return value


def _dumped_or_none(section: Section | None, info: core_schema.SerializationInfo) -> dict[str, Any] | None:
    return None if section is None else _dumped(section, info)


def _dumped(section: Section, info: core_schema.SerializationInfo) -> dict[str, Any]:
    return section.model_dump(mode=info.mode, by_alias=bool(info.by_alias))


PriorityClass = Annotated[int, whole(0, CLASSES - 1)]
DataClass = Annotated[int, whole(DATA_CLASSES[0], DATA_CLASSES[-1])]
"""A class of packets: 7 goes before all others."""
ClassReference = Annotated[
    str, Text("a class of yours, path/to/file.py:Class", CLASS_REFERENCE, "examples/shuffle.py:Shuffle")
]
