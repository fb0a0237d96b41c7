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
from weft.topologies.storage_network import with_storage_network

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
    storage_network = arguments.pop("storage_network", None)
    kind = TOPOLOGY_KINDS.named(arguments.pop("kind", DEFAULT_KIND))
    _require_known(arguments, _names(kind.builder), kind.name)
    fabric = kind.builder(**arguments)
    fabric = with_spares(fabric, spares) if scale_up is None else _with(fabric, with_scale_up, scale_up, "scale_up")
    if storage_network is None:
        return fabric
    return _with(fabric, with_storage_network, storage_network, "storage_network")


def _with(fabric: FabricSpec, function: Callable[..., FabricSpec], arguments: object, name: str) -> FabricSpec:
    """Return a fabric with what a function adds to it by these arguments."""
    if not isinstance(arguments, Mapping):
        raise TopologyError(f"{name}={arguments!r} is not a mapping of its parameters")
    _require_known(arguments, _names(function), name)
    return function(fabric, **arguments)


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
