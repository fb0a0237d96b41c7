"""What histories are of: the cluster as its scenario has it, and its fabric."""

from __future__ import annotations

import json
from typing import Any

from weft.scenario.cluster import ClusterSection
from weft.topologies import FabricSpec


def made_by(settings: ClusterSection, fabric: FabricSpec) -> dict[str, Any]:
    """Return the section before anything is measured, and the fabric's parameters, as a JSON file has them."""
    values = {"cluster": settings.model_dump(mode="json"), "fabric": dict(fabric.parameters)}
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
