"""The fabrics of examples/topologies, one for each kind and more, and the kinds of routing that each can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.controller.features.kind import DEFAULT_ROUTING
from weft.controller.routing import ROUTING_KINDS
from weft.paths import ROOT
from weft.scenario import Scenario, load_scenario, parse_scenario
from weft.scenario.parsing import anchor_paths, read_mapping

EXAMPLES = sorted((ROOT / "examples" / "topologies").glob("*.yaml"))


def example(name: str) -> Path:
    """Return the path of one of them."""
    return ROOT / "examples" / "topologies" / f"{name}.yaml"


def routings_of(path: Path) -> list[str]:
    """Return the kinds of routing that can route an example's fabric, the default first.

    Not those in which hosts name paths: they need another transport (tests/weft/test_ev_routes.py).
    """
    fabric = load_scenario(path).fabric.build()
    valid = [name for name, kind in ROUTING_KINDS.items() if not (kind.ev_routes or kind.objection(fabric))]
    return sorted(valid, key=lambda name: (name != DEFAULT_ROUTING, name))


def scenario_of(path: Path, clock: str, routing: str, **sections: Any) -> Scenario:
    """Return an example's scenario under a clock and a kind of routing, which hosts take in the order that it has.

    `sections` take the place of its own, or come to it.
    """
    tree: dict[str, Any] = read_mapping(path, "scenario") | {"clock": clock, "routing": {"kind": routing}}
    tree |= sections
    if ROUTING_KINDS[routing].intermediates is not None:
        tree["transport"] = {"retransmission": "selective-repeat"} | tree.get("transport", {})
    anchor_paths(tree, path.parent)
    return parse_scenario(tree)
