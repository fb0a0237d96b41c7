"""Everything a switch should hold, from the topology, the settings, the failures and the jobs. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from weft.controller.acl import AclRule, acl_entities
from weft.controller.aggregation import aggregation_entities
from weft.controller.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile, ecn_entities
from weft.controller.entities import Entity
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.identity import class_entities, identity_entities
from weft.controller.jobs import Job
from weft.controller.neighbours import neighbour_entities
from weft.controller.routing import DEFAULT_ROUTING, PlaneRouting, plane_routings
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
        routing: kind of routing, a name of `weft.controller.routing`.

    """

    target: TargetFacts = EMBEDDED
    ecn: Mapping[int, EcnProfile] | None = None
    ecn_at: EcnDepth = DEFAULT_ECN_DEPTH
    int_enabled: bool = True
    acl: tuple[AclRule, ...] = ()
    routing: str = DEFAULT_ROUTING


@dataclass(frozen=True)
class FabricState:
    """Inputs of the plan that change while a fabric runs."""

    failures: Failures = NO_FAILURES
    jobs: tuple[Job, ...] = ()


Entities = tuple[Entity, ...]


@dataclass(frozen=True)
class SwitchPlan:
    """What one switch should hold: what follows from the settings, its routes, its part in the jobs.

    A planner gives a switch that nothing has touched the very tuples of the plan before.
    """

    features: Entities
    routes: Entities
    jobs: Entities

    def __iter__(self) -> Iterator[Entity]:
        """All entities."""
        return chain(self.features, self.routes, self.jobs)

    def is_same_as(self, other: SwitchPlan | None) -> bool:
        """Whether both are of the very same parts."""
        return (
            other is not None
            and self.features is other.features
            and self.routes is other.routes
            and self.jobs is other.jobs
        )


class Planner:
    """Plans a fabric again and again; what it plans follows from the fabric, the settings and the state alone."""

    def __init__(self, fabric: FabricSpec) -> None:
        self._fabric = fabric
        self._settings: Settings | None = None
        self._features: dict[str, Entities] = {}
        self._routing = ""
        self._planes: list[PlaneRouting] = []
        self._jobs: dict[str, Entities] = {}

    def plan(self, settings: Settings, state: FabricState) -> dict[str, SwitchPlan]:
        """Return the plans of all switches, by name.

        Raises:
            SettingError: the settings do not fit the fabric.

        """
        if settings != self._settings:
            self._features = _feature_entities(self._fabric, settings)
            self._settings = settings
        if settings.routing != self._routing:
            self._planes = plane_routings(settings.routing, self._fabric)
            self._routing = settings.routing
        routes: dict[str, Entities] = {}
        for plane in self._planes:
            routes |= plane.plan(state.failures)
        jobs = aggregation_entities(self._fabric, state.jobs)
        self._jobs = {name: _kept(tuple(entities), self._jobs.get(name)) for name, entities in jobs.items()}
        return {
            name: SwitchPlan(features, routes[name], self._jobs.get(name, ()))
            for name, features in self._features.items()
        }


def desired_entities(fabric: FabricSpec, settings: Settings, state: FabricState) -> dict[str, list[Entity]]:
    """Return all entities of all switches, by switch name."""
    return {name: list(plan) for name, plan in Planner(fabric).plan(settings, state).items()}


def _kept(now: Entities, before: Entities | None) -> Entities:
    return before if before == now and before is not None else now


def _feature_entities(fabric: FabricSpec, settings: Settings) -> dict[str, Entities]:
    rates = int_rates(fabric) if settings.int_enabled else None
    return {
        switch.name: tuple(_static_entities(fabric, switch, settings, rates)) for switch in fabric.switches
    }


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
