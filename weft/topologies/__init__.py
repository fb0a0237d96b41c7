"""Frozen descriptions of fabrics, their builders, addressing plan, path figures and drawings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.topologies.describe import as_dict, describe
from weft.topologies.draw import draw, to_svg
from weft.topologies.draw_shapes import LinkStyle
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import (
    Endpoint,
    FabricLink,
    FabricSpec,
    HostSpec,
    LinkSpec,
    NicSpec,
    PortSpec,
    Role,
    ScaleUpSpec,
    SwitchSpec,
)
from weft.topologies.fat_tree import fat_tree
from weft.topologies.leaf_spine import leaf_spine
from weft.topologies.link_choice import LINK_PATTERN, LinkChoice
from weft.topologies.paths import (
    Hop,
    Path,
    bandwidth_delay_product_bytes,
    base_rtt_ps,
    longest_path,
    nearest_path,
    one_way_ps,
    paths,
    serialisation_ps,
)
from weft.topologies.scale_up import with_scale_up

BUILDERS: Mapping[str, Callable[..., FabricSpec]] = {"leaf_spine": leaf_spine, "fat_tree": fat_tree}


def from_parameters(parameters: Mapping[str, Any]) -> FabricSpec:
    """Build the fabric that `FabricSpec.parameters`, or a scenario's topology section, describes.

    Raises:
        TopologyError: unknown "kind", unknown parameter name, or a value out of range.

    """
    arguments = dict(parameters)
    scale_up = arguments.pop("scale_up", None)
    kind = arguments.pop("kind", "leaf_spine")
    if kind not in BUILDERS:
        raise TopologyError(f"unknown topology kind {kind!r} (valid: {', '.join(BUILDERS)})")
    builder = BUILDERS[kind]
    _require_known(arguments, builder, kind)
    fabric = builder(**arguments)
    if scale_up is None:
        return fabric
    if not isinstance(scale_up, Mapping):
        raise TopologyError(f"scale_up={scale_up!r} is not a mapping of its parameters")
    _require_known(scale_up, with_scale_up, "scale_up")
    return with_scale_up(fabric, **scale_up)


def _require_known(arguments: Mapping[str, Any], builder: Callable[..., FabricSpec], what: str) -> None:
    valid = builder.__annotations__.keys() - {"return", "fabric"}
    unknown = arguments.keys() - valid
    if unknown:
        raise TopologyError(
            f"unknown parameter {min(unknown)!r} of {what} (valid: {', '.join(sorted(valid))})"
        )


__all__ = [
    "BUILDERS",
    "LINK_PATTERN",
    "Endpoint",
    "FabricLink",
    "FabricSpec",
    "Hop",
    "HostSpec",
    "LinkChoice",
    "LinkSpec",
    "LinkStyle",
    "NicSpec",
    "Path",
    "PortSpec",
    "Role",
    "ScaleUpSpec",
    "SwitchSpec",
    "TopologyError",
    "as_dict",
    "bandwidth_delay_product_bytes",
    "base_rtt_ps",
    "describe",
    "draw",
    "fat_tree",
    "from_parameters",
    "leaf_spine",
    "longest_path",
    "nearest_path",
    "one_way_ps",
    "paths",
    "serialisation_ps",
    "to_svg",
    "with_scale_up",
]
