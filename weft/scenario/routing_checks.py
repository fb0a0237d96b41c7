"""Checks a scenario's routing against its other sections and its fabric before anything is built."""

from __future__ import annotations

from weft.controller.features.load_balancing import DEFAULT_LOAD_BALANCING
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.ev_paths import EvRoutesKind
from weft.engine import CongestionNeeds
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec
from weft.traffic.class_reference import short_reference
from weft.traffic.header_sizes import BTH, ETHERNET, IP, UDP
from weft.traffic.transports.registry import TRANSPORT_KINDS


def check_routing(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the kind of routing can route the fabric. Raises KeyProblem."""
    name = options.routing.kind
    kind = ROUTING_KINDS.named(name)
    if objection := kind.objection(fabric):
        raise KeyProblem("routing.kind", f"{name} cannot route the fabric: {objection}")
    if kind.ev_routes is not None:
        _check_ev_routes(options, kind.ev_routes)
    if kind.follows_demand:
        _check_demand(options)


def _check_ev_routes(options: FabricOptions, routes: EvRoutesKind) -> None:
    """Check that the hosts' EVs can name paths. Raises KeyProblem."""
    name = options.routing.kind
    transport = options.transport.kind
    if not transport.has_evs:
        carriers = [each.name for each in TRANSPORT_KINDS.values() if each.has_evs]
        raise KeyProblem(
            "routing.kind",
            f"{name} has hosts name paths by EVs, which packets of transport.protocol: {options.transport.protocol} do "
            "not have",
            valid=(f"{name} with transport.protocol: {each}" for each in carriers),
        )
    if options.clock == "real":
        raise KeyProblem(
            "routing.kind", f"{name}: hosts of the real clock know no paths", valid=f"{name} with clock: virtual"
        )
    if routes.encapsulates and options.ip_version != 6:
        raise KeyProblem(
            "routing.kind", f"{name} puts IPv6 packets into IPv6 packets", valid=f"{name} with ip_version: 6"
        )
    if options.routing.load_balancing != DEFAULT_LOAD_BALANCING:
        raise KeyProblem(
            "routing.load_balancing",
            f"switches that route by {name} do not choose, so {options.routing.load_balancing} has no meaning",
            valid=[DEFAULT_LOAD_BALANCING],
        )
    if options.telemetry.is_on:
        raise KeyProblem(
            "telemetry.mode", f"does not go with routing.kind: {name}, whose packets switches do not watch"
        )
    headers_bytes = ETHERNET + 2 * IP[6] + UDP + BTH + transport.extension_bytes + transport.immediate_bytes
    if routes.encapsulates and options.trimming.classes and options.trimming.size < headers_bytes:
        raise KeyProblem(
            "trimming.size",
            f"{options.trimming.size} B cut into the headers of packets in an outer IPv6 header",
            valid=f"at least {headers_bytes}B with routing.kind: {name}",
        )


def _check_demand(options: FabricOptions) -> None:
    """Check that a queue pair has one path, for which routes by demand are computed. Raises KeyProblem."""
    name = options.routing.kind
    if options.routing.load_balancing != DEFAULT_LOAD_BALANCING:
        raise KeyProblem(
            "routing.load_balancing",
            f"{name} gives each destination one path, which {options.routing.load_balancing} would not take",
            valid=[DEFAULT_LOAD_BALANCING],
        )
    if options.transport.kind.spans_planes or options.transport.sprays:
        raise KeyProblem(
            "routing.kind",
            f"{name} gives each destination one path, and transport.protocol: {options.transport.protocol} spreads "
            f"packets over many",
            valid="shortest_paths",
        )


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
