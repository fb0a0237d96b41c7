"""Spare hosts: the last hosts of a fabric, which get a rank only when another host is out of use."""

from __future__ import annotations

from dataclasses import replace

from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec


def with_spares(fabric: FabricSpec, spares: int = 1) -> FabricSpec:
    """Return the fabric with its last `spares` hosts as spares.

    Raises:
        TopologyError: hosts have several ranks, or no other host would be left.

    """
    if fabric.scale_up is not None:
        raise TopologyError("hosts of several ranks have no spares", valid="hosts of one rank")
    spares = require_range("spares", spares, 0, len(fabric.hosts) - 1)
    if spares == 0:
        return fabric
    return replace(fabric, spares=spares, parameters={**fabric.parameters, "spares": spares})
