"""What histories are of: the cluster as its scenario has it, and its fabric."""

from __future__ import annotations

import json
from typing import Any

from weft.scenario import Scenario
from weft.scenario.cluster import cluster_section
from weft.scenario.options import CHOSEN_BY_CHANCE_OR_MACHINE
from weft.topologies import FabricSpec


def made_by(scenario: Scenario, fabric: FabricSpec) -> dict[str, Any]:
    """Return the section before anything is measured, and the fabric's parameters, as a JSON file has them.

    Where packets are to show something, also the traffic and the options that these depend on.
    """
    settings = cluster_section(scenario)
    values: dict[str, Any] = {"cluster": settings.model_dump(mode="json"), "fabric": dict(fabric.parameters)}
    if settings.is_to_be_measured:
        options = scenario.options.as_dict()
        values["options"] = {key: each for key, each in options.items() if key not in CHOSEN_BY_CHANCE_OR_MACHINE}
        values["traffic"] = [item.model_dump(mode="json") for item in scenario.traffic]
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain
