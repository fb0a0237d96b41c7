"""Everything a switch should hold, from the topology, the settings, the failures and the jobs. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.controller.acl import AclRule, acl_entities
from weft.controller.aggregation import aggregation_entities
from weft.controller.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile, ecn_entities
from weft.controller.entities import Entity
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.identity import class_entities, identity_entities
from weft.controller.jobs import Job
from weft.controller.neighbours import neighbour_entities
from weft.controller.routing import plane_routes, route_entities
from weft.controller.target import EMBEDDED, TargetFacts
from weft.controller.telemetry_int import int_entities
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.int_rates import IntRates, int_rates


@dataclass(frozen=True)
class Settings:
    """What an operator may choose.

    Attributes:
        target: units of the switches.
        ecn: thresholds by class; None scales the data class to each port's rate, {} marks nothing.
        ecn_at: which depth of a queue marks.
        int_enabled: whether ports stamp INT.
        acl: access list of every switch.

    """

    target: TargetFacts = EMBEDDED
    ecn: Mapping[int, EcnProfile] | None = None
    ecn_at: EcnDepth = DEFAULT_ECN_DEPTH
    int_enabled: bool = True
    acl: tuple[AclRule, ...] = ()


@dataclass(frozen=True)
class FabricState:
    """Inputs of the plan that change while a fabric runs."""

    failures: Failures = NO_FAILURES
    jobs: tuple[Job, ...] = ()


def desired_entities(fabric: FabricSpec, settings: Settings, state: FabricState) -> dict[str, list[Entity]]:
    """Return all entities of all switches, by switch name."""
    rates = int_rates(fabric) if settings.int_enabled else None
    desired = {switch.name: _static_entities(fabric, switch, settings, rates) for switch in fabric.switches}
    for plane in range(fabric.planes):
        for name, routes in plane_routes(fabric, plane, state.failures).items():
            desired[name].extend(route_entities(fabric.switch(name), routes))
    for name, entities in aggregation_entities(fabric, state.jobs).items():
        desired[name].extend(entities)
    return desired


def _static_entities(
    fabric: FabricSpec, switch: SwitchSpec, settings: Settings, rates: IntRates | None
) -> list[Entity]:
    entities: list[Entity] = [
        *identity_entities(switch),
        *class_entities(),
        *neighbour_entities(fabric, switch),
        *ecn_entities(switch, settings.target, settings.ecn, settings.ecn_at),
        *acl_entities(settings.acl),
    ]
    if rates is not None:
        entities.extend(int_entities(switch, settings.target, rates))
    return entities
