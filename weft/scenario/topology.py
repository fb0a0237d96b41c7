"""A scenario's `fabric` section: of which kind of topology it is, and the fabric that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.scenario.explain import explain
from weft.scenario.places import KeyProblem, Places
from weft.scenario.valid_values import keys_of
from weft.scenario.values import OfAnyKind
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.kinds import TOPOLOGY_KINDS, kind_of_section
from weft.topologies.kinds.base import TopologyKeyError, TopologySection


def _section_of(value: object) -> TopologySection:
    if isinstance(value, TopologySection):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, is {shown(value)}")
    return kind_of_section(value).section.model_validate(value)


Fabric = Annotated[TopologySection, OfAnyKind(_section_of, lambda: [kind.section for kind in TOPOLOGY_KINDS.values()])]


def parse_fabric(value: Any, places: Places, context: dict[str, Any]) -> TopologySection:
    """Return the section that a scenario file has as `fabric`. Raises KeyProblem or BadInputError."""
    if isinstance(value, TopologySection):
        return value
    if not isinstance(value, Mapping):
        raise KeyProblem("fabric", f"must be a mapping, is {shown(value)}")
    try:
        kind = kind_of_section(value)
    except TopologyError:
        choices = did_you_mean(str(value["kind"]), TOPOLOGY_KINDS)
        raise KeyProblem("fabric.kind", f"{shown(value['kind'])} is no kind of topology; {choices}") from None
    _refuse_keys_of_other_kinds(value, kind.name)
    try:
        return kind.section.model_validate(dict(value), context=context)
    except pydantic.ValidationError as error:
        raise explain(error, kind.section, value, places, ("fabric",)) from None


def _refuse_keys_of_other_kinds(value: Mapping[Any, Any], kind: str) -> None:
    own = keys_of(TOPOLOGY_KINDS[kind].section)
    for key in value:
        others = [name for name, other in TOPOLOGY_KINDS.items() if key in keys_of(other.section)]
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
        raise KeyProblem(f"fabric.{error.key}", error) from None


def build_topology(section: TopologySection) -> FabricSpec:
    """Return the fabric that the section describes.

    Raises:
        KeyProblem: the addressing plan or the interface names cannot hold it.
    """
    with translated(TopologyError, KeyProblem, "fabric"):
        return section.build()
