"""Frozen descriptions of fabrics, the kinds of topology (`kinds/`), addressing plan, path figures and drawings."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.topologies.errors import TopologyError
from weft.topologies.fabric import (
    Endpoint,
    FabricLink,
    FabricSpec,
    HostSpec,
    LinkEnds,
    LinkSpec,
    NicSpec,
    PortSpec,
    ScaleUpSpec,
    SwitchSpec,
)
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
    shortest_path,
    shortest_paths,
)
from weft.topologies.scale_up import with_scale_up
from weft.topologies.spares import with_spares

if TYPE_CHECKING:
    from weft.topologies.descriptions import as_dict, describe
    from weft.topologies.draw_shapes import LinkStyle
    from weft.topologies.drawings import draw, to_svg
    from weft.topologies.kinds import from_parameters
    from weft.topologies.kinds.fat_tree import fat_tree
    from weft.topologies.kinds.leaf_spine import leaf_spine

# The kinds' sections import pydantic, which host and switch processes do not need and should not wait for. Few
# processes draw.
_IMPORTED_LATE = {
    "LinkStyle": "weft.topologies.draw_shapes",
    "as_dict": "weft.topologies.descriptions",
    "describe": "weft.topologies.descriptions",
    "draw": "weft.topologies.drawings",
    "fat_tree": "weft.topologies.kinds.fat_tree",
    "from_parameters": "weft.topologies.kinds",
    "leaf_spine": "weft.topologies.kinds.leaf_spine",
    "to_svg": "weft.topologies.drawings",
}


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_LATE:
        return getattr(importlib.import_module(_IMPORTED_LATE[name]), name)
    raise AttributeError(f"module 'weft.topologies' has no attribute '{name}'")


__all__ = [
    "LINK_PATTERN",
    "Endpoint",
    "FabricLink",
    "FabricSpec",
    "Hop",
    "HostSpec",
    "LinkChoice",
    "LinkEnds",
    "LinkSpec",
    "LinkStyle",
    "NicSpec",
    "Path",
    "PortSpec",
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
    "shortest_path",
    "shortest_paths",
    "to_svg",
    "with_scale_up",
    "with_spares",
]
