"""A scenario's `fabric` section: of which kind of topology it is, and the fabric that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from weft.errors import BadInputError, did_you_mean
from weft.quantities.units import shown
from weft.scenario.explain import explain
from weft.scenario.places import KeyProblem, Places
from weft.scenario.valid_values import keys_of
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.kinds import kind_of_section, topology_kinds
from weft.topologies.kinds.base import TopologyKeyError, TopologySection


class _OfAnyKind:
    """Has pydantic take the section of any kind, in Python and in the JSON Schema."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _section_of,
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True),
        )

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        sections = [kind.section for kind in topology_kinds().values()]
        return {"anyOf": [handler(section.__pydantic_core_schema__) for section in sections]}


Fabric = Annotated[TopologySection, _OfAnyKind()]


def _section_of(value: object) -> TopologySection:
    if isinstance(value, TopologySection):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, is {shown(value)}")
    return kind_of_section(value).section.model_validate(value)


def _dumped(section: TopologySection, info: core_schema.SerializationInfo) -> dict[str, Any]:
    return section.model_dump(mode=info.mode, by_alias=bool(info.by_alias))


def parse_fabric(value: Any, places: Places, context: dict[str, Any]) -> TopologySection:
    """Return the section that a scenario file has as `fabric`. Raises KeyProblem or BadInputError."""
    if isinstance(value, TopologySection):
        return value
    if not isinstance(value, Mapping):
        raise KeyProblem("fabric", f"must be a mapping, is {shown(value)}")
    try:
        kind = kind_of_section(value)
    except TopologyError:
        choices = did_you_mean(str(value["kind"]), topology_kinds())
        raise KeyProblem("fabric.kind", f"{shown(value['kind'])} is no kind of topology; {choices}") from None
    _refuse_keys_of_other_kinds(value, kind.name)
    try:
        return kind.section.model_validate(dict(value), context=context)
    except pydantic.ValidationError as error:
        raise BadInputError(explain(error, kind.section, value, places, ("fabric",))) from None


def _refuse_keys_of_other_kinds(value: Mapping[Any, Any], kind: str) -> None:
    own = keys_of(topology_kinds()[kind].section)
    for key in value:
        others = [name for name, other in topology_kinds().items() if key in keys_of(other.section)]
        if key not in own and others and value[key] is not None:
            raise KeyProblem(
                f"fabric.{key}",
                f"{shown(value[key])} means nothing for kind: {kind}; it is a key of {', '.join(others)}",
            )


def check_fabric(section: TopologySection) -> None:
    """Check the section's keys against each other. Raises KeyProblem."""
    try:
        section.check()
    except TopologyKeyError as error:
        raise KeyProblem(f"fabric.{error.key}", str(error)) from None


def build_topology(section: TopologySection) -> FabricSpec:
    """Return the fabric that the section describes.

    Raises:
        KeyProblem: the addressing plan or the interface names cannot hold it.
    """
    try:
        return section.build()
    except TopologyError as error:
        raise KeyProblem("fabric", str(error)) from None
