"""A scenario's `fabric` section: of which kind of topology it is, and the fabric that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic

from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.units import shortest_rate, shown
from weft.scenario.explain import explain
from weft.scenario.places import KeyProblem, Places
from weft.scenario.valid_values import keys_of
from weft.scenario.values import OfAnyKind
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.host_files import read_host
from weft.topologies.kinds import TOPOLOGY_KINDS, kind_of_section
from weft.topologies.kinds.base import TopologyKeyError, TopologySection

HOST_FILE: Final = "host_file"
"""Key of the file that describes a host."""


def _section_of(value: object) -> TopologySection:
    if isinstance(value, TopologySection):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, is {shown(value)}")
    return kind_of_section(value).section.model_validate(_with_host(value))


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
    with translated(TopologyError, KeyProblem, f"fabric.{HOST_FILE}"):
        value = _with_host(value)
    try:
        return kind.section.model_validate(dict(value), context=context)
    except pydantic.ValidationError as error:
        raise explain(error, kind.section, value, places, ("fabric",)) from None


def _with_host(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the section's keys, with those that its host file gives and it lacks. Raises TopologyError."""
    path = value.get(HOST_FILE)
    if not isinstance(path, str | Path):
        return value
    shape = read_host(Path(path))
    found: dict[str, Any] = {"planes": shape.nics_per_rank, "host_rate": shortest_rate(shape.nic_rate_bps)}
    scale_up = value.get("scale_up")
    if shape.ranks > 1:
        found["ranks_per_host"] = shape.ranks
        if not (isinstance(scale_up, Mapping) and scale_up.get("rate") is not None):
            if shape.scale_up_rate_bps is None:
                raise TopologyError(f"{path}: its GPUs have no NVLinks", valid="scale_up: {rate: …} in the scenario")
            given = scale_up if isinstance(scale_up, Mapping) else {}
            found["scale_up"] = {**given, "rate": shortest_rate(shape.scale_up_rate_bps)}
    return {**value, **{key: each for key, each in found.items() if key == "scale_up" or value.get(key) is None}}


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
