"""The kinds of topology, one module each: the module's `KIND` is all that the rest of Weft uses.

Modules in this folder are discovered; docs/howto/topology.md says what they contain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from weft.registry import Registry, constant_of
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec
from weft.topologies.kinds.base import TopologyKind
from weft.topologies.limits import LinkArguments
from weft.topologies.scale_up import with_scale_up
from weft.topologies.spares import with_spares

DEFAULT_KIND = "leaf_spine"
TOPOLOGY_KINDS: Registry[TopologyKind] = Registry(
    __name__, "topology kind", constant_of(TopologyKind), TopologyError, default=DEFAULT_KIND
)


def kind_of_section(section: Mapping[str, object]) -> TopologyKind:
    """Return the kind of a scenario's `fabric` section: given by `kind`, or implied by another key."""
    if section.get("kind") is not None:
        return TOPOLOGY_KINDS.named(section["kind"])
    implied = (kind for kind in TOPOLOGY_KINDS.values() if any(section.get(key) is not None for key in kind.implied_by))
    return next(implied, TOPOLOGY_KINDS[DEFAULT_KIND])


def from_parameters(parameters: Mapping[str, Any]) -> FabricSpec:
    """Build the fabric that `FabricSpec.parameters` describes.

    Raises:
        TopologyError: unknown "kind", unknown parameter name, or a value out of range.

    """
    arguments = dict(parameters)
    scale_up, spares = arguments.pop("scale_up", None), arguments.pop("spares", 0)
    kind = TOPOLOGY_KINDS.named(arguments.pop("kind", DEFAULT_KIND))
    _require_known(arguments, _names(kind.builder), kind.name)
    fabric = kind.builder(**arguments)
    if scale_up is None:
        return with_spares(fabric, spares)
    if not isinstance(scale_up, Mapping):
        raise TopologyError(f"scale_up={scale_up!r} is not a mapping of its parameters")
    _require_known(scale_up, _names(with_scale_up), "scale_up")
    return with_scale_up(fabric, **scale_up)


def _names(function: Callable[..., FabricSpec]) -> set[str]:
    """Return the names of a function's arguments; further keywords of builders are `LinkArguments`."""
    names: set[str] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        names |= LinkArguments.__annotations__.keys() if parameter.kind is parameter.VAR_KEYWORD else {name}
    return names - {"fabric"}


def _require_known(arguments: Mapping[str, Any], valid: set[str], what: str) -> None:
    unknown = arguments.keys() - valid
    if unknown:
        raise TopologyError(f"unknown parameter {min(unknown)!r} of {what}", valid=sorted(valid))
