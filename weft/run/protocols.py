"""The protocol of a collective: as named, or for `auto` by its size."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import BadInputError
from weft.run.clear_to_send import cost_of_first_clearance, links_with_clearances
from weft.run.fabric_links import fabric_links
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec
from weft.traffic.collectives import AUTO, NCCL, Collective, SaysIfScaleUp
from weft.traffic.costs import Links, Wire
from weft.traffic.protocols import AUTO_PROTOCOL, LL, NONE, PROTOCOL_CHOICES, SIMPLE, WIRE_SHARES, ProtocolSettings
from weft.traffic.schedules import CollectiveSpec


def objection_to_protocol(collective: Collective, algorithm: str, fabric: SaysIfScaleUp) -> str:
    """Return why a collective by an algorithm has no protocol on a fabric, "" if it can have one."""
    if not collective.has_size:
        return f"a {collective.name} carries no data, so it has no protocol"
    if algorithm == AUTO:
        return "auto measures algorithms without a protocol, so name one"
    if algorithm != NCCL and collective.algorithm(algorithm).on(fabric).in_network:
        return f"{algorithm} sends aggregation packets, which have no protocol of NCCL's"
    return ""


def chosen_protocol(
    protocol: str,
    collective: Collective,
    algorithm: str,
    spec: CollectiveSpec,
    topology: FabricSpec,
    options: FabricOptions,
) -> str:
    """Return the protocol that a collective travels in, "" for none.

    Raises BadInputError for an unknown one, and where the collective or the algorithm has none.
    """
    if protocol == NONE:
        return NONE
    if protocol not in PROTOCOL_CHOICES:
        raise BadInputError(f"no protocol '{protocol}'", valid=PROTOCOL_CHOICES)
    if objection := objection_to_protocol(collective, algorithm, spec):
        raise BadInputError(objection, place=f"protocol {protocol}")
    found, clearing = collective.algorithm(algorithm).on(spec), spec.clear_to_send
    if protocol != AUTO_PROTOCOL:
        if objection := found.unsuitable(replace(spec, protocol=protocol)):
            raise BadInputError(objection, place=f"protocol {protocol}")
        return protocol
    settings, links = options.protocols.settings(), fabric_links(topology, options)
    if found.unsuitable(replace(spec, protocol=LL)):
        return SIMPLE

    def predicted_ps(name: str) -> float:
        wires = links_with_clearances(links_of_protocol(links, settings, name), clearing)
        return (found.cost(spec, wires) + cost_of_first_clearance(links, clearing)).total_ps

    return settings.chosen(spec.size_bytes, predicted_ps)


def links_of_protocol(links: Links, settings: ProtocolSettings, protocol: str) -> Links:
    """Return links as messages of a protocol meet them: with its steps' latency, and for bytes of data."""
    between, inside = (
        _wire(wire, settings.step_latency_ps(protocol, scale_up=scale_up), WIRE_SHARES[protocol])
        for wire, scale_up in ((links.between, False), (links.inside, True))
    )
    return Links(between, inside, links.aggregation)


def _wire(wire: Wire, latency_ps: int, share: float) -> Wire:
    return Wire(
        wire.latency_ps + latency_ps,
        wire.ps_per_byte * share,
        wire.stored_ps_per_byte * share,
        max(1, int(wire.packet_bytes / share)),
    )
