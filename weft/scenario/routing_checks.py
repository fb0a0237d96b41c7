"""Checks a scenario's routing against its other sections and its fabric before anything is built."""

from __future__ import annotations

from weft.controller.routing import ROUTING_KINDS
from weft.engine import CongestionNeeds
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec
from weft.traffic.class_reference import short_reference


def check_routing(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the kind of routing can route the fabric. Raises KeyProblem."""
    name = options.routing.kind
    kind = ROUTING_KINDS.named(name)
    if objection := kind.objection(fabric):
        raise KeyProblem("routing.kind", f"{name} cannot route the fabric: {objection}")


def check_order(options: FabricOptions, congestion_control: str, needs: CongestionNeeds) -> None:
    """Check that the switches keep packets in order if a congestion control needs it. Raises KeyProblem."""
    if not needs.one_path:
        return
    name = short_reference(congestion_control)
    if options.routing.has_intermediates:
        raise KeyProblem(
            "routing.kind",
            f"{options.routing.kind} does not go with {name}, which needs all packets of a flow on one path",
            valid=(each.name for each in ROUTING_KINDS.values() if each.intermediates is None),
        )
    if options.load_balancing.sprays:
        mode = options.routing.load_balancing
        raise KeyProblem(
            "routing.load_balancing",
            f"{mode} does not go with {name}, which needs all packets of a flow on one path",
            valid="flow, flow_and_queue_pair, flowlet, adaptive with adaptive_unit: flowlet",
        )
