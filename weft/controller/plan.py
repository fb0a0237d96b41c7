"""Plans every entry of a switch from the topology, the settings, the failures and the jobs. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from weft.controller.demand import Demand, DemandLoads, DemandSettings
from weft.controller.entities import Entity
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import FEATURES, Settings
from weft.controller.features.load_balancing import LoadBalancingSettings, candidate_entities
from weft.controller.job import Job
from weft.controller.lossless import cycle_of_planes
from weft.controller.planned_paths import PlannedPaths
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.routing import ROUTING_KINDS, PlaneRouting, plane_routings
from weft.controller.routing.channels import Channel
from weft.controller.routing.routes import without_watched_ports
from weft.controller.routing.single_paths import single_paths
from weft.controller.runtime_entries import EntriesSettings
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class FabricState:
    """Inputs of the plan that change while a fabric runs."""

    failures: Failures = NO_FAILURES
    jobs: tuple[Job, ...] = ()


Entities = tuple[Entity, ...]


@dataclass(frozen=True)
class SwitchPlan:
    """One switch's planned entities: from the settings, its routes, its part in the jobs, and the user's entries.

    A user's entry overrides another entry with the same key. For an unaffected switch, a planner returns the same tuple
    objects as in the previous plan.
    """

    features: Entities
    routes: Entities
    jobs: Entities
    entries: Entities = ()

    def __iter__(self) -> Iterator[Entity]:
        """Iterate over all entities except the user's."""
        return chain(self.features, self.routes, self.jobs)

    def is_same_as(self, other: SwitchPlan | None) -> bool:
        """Return whether both consist of the same objects."""
        return (
            other is not None
            and self.features is other.features
            and self.routes is other.routes
            and self.jobs is other.jobs
            and self.entries is other.entries
        )


class Planner:
    """Plans a fabric repeatedly; each plan depends only on the fabric, the settings and the state.

    Switches in `single_paths` get one next hop for each prefix.
    """

    def __init__(self, fabric: FabricSpec, single_paths: Collection[str] = ()) -> None:
        self._fabric = fabric
        self._single_paths = frozenset(single_paths)
        self._settings: Settings | None = None
        self._features: dict[str, Entities] = {}
        self._routing: tuple[str, RouteScope] = "", ALL_ROUTES
        self._planes: list[PlaneRouting] = []
        self._expected: tuple[Demand, ...] = ()
        self._jobs: dict[str, Entities] = {}
        # Routes, and the same routes adapted to the settings.
        self._adapted: dict[str, tuple[Entities, Entities]] = {}

    def plan(self, settings: Settings, state: FabricState) -> dict[str, SwitchPlan]:
        """Return the plans of all switches, by name.

        Raises:
            SettingError: the settings do not fit the fabric.

        """
        if settings != self._settings:
            self._features = _feature_entities(self._fabric, settings)
            self._settings = settings
            self._adapted.clear()
        if (settings.routing, settings.routes) != self._routing:
            self._planes = plane_routings(settings.routing, self._fabric, settings.routes)
            self._routing = settings.routing, settings.routes
            self._expected = ()
        if (matrix := settings.of(DemandSettings).matrix) != self._expected:
            self._expected = matrix
            for plane in self._planes:
                plane.expect(matrix)
        routes: dict[str, Entities] = {}
        for plane in self._planes:
            routes |= plane.plan(state.failures)
        is_adaptive = settings.of(LoadBalancingSettings).is_adaptive
        if is_adaptive or self._single_paths or not settings.target.watches_ports:
            routes = {name: self._adapted_to(settings, name, entities) for name, entities in routes.items()}
        jobs = _job_entities(self._fabric, state.jobs)
        self._jobs = {name: _kept(tuple(entities), self._jobs.get(name)) for name, entities in jobs.items()}
        entries = settings.of(EntriesSettings).by_switch
        return {
            name: SwitchPlan(features, routes[name], self._jobs.get(name, ()), entries.get(name, ()))
            for name, features in self._features.items()
        }

    def paths(self, plane: int) -> PlannedPaths:
        """Return a plane's paths in the latest plan."""
        intermediates = ROUTING_KINDS.named(self._routing[0]).intermediates_of(self._fabric, plane)
        return PlannedPaths(self._fabric, plane, self._planes[plane].destinations(), intermediates)

    def demand_loads(self) -> tuple[DemandLoads, ...]:
        """Return the loads that the latest routes were chosen for, by plane; empty if they ignore demand."""
        return tuple(loads for plane in self._planes if (loads := plane.loads()) is not None)

    def cycle(self) -> tuple[Channel, ...]:
        """Return a cycle of buffer dependencies in the latest routes; empty if there is none."""
        return cycle_of_planes(self._fabric, ROUTING_KINDS.named(self._routing[0]), self._planes)

    def _adapted_to(self, settings: Settings, switch: str, routes: Entities) -> Entities:
        """Return a switch's routes adapted to the settings; the same object as before if the routes are the same."""
        known = self._adapted.get(switch)
        if known is None or known[0] is not routes:
            if switch in self._single_paths:
                known = self._adapted[switch] = (routes, single_paths(switch, routes, settings.hash_seed))
                return known[1]
            adapted = routes if settings.target.watches_ports else without_watched_ports(routes)
            if settings.of(LoadBalancingSettings).is_adaptive:
                adapted = (*adapted, *candidate_entities(adapted))
            known = self._adapted[switch] = (routes, adapted)
        return known[1]


def desired_entities(fabric: FabricSpec, settings: Settings, state: FabricState) -> dict[str, list[Entity]]:
    """Return all entities of all switches, by switch name."""
    return {name: list(plan) for name, plan in Planner(fabric).plan(settings, state).items()}


def _kept(now: Entities, before: Entities | None) -> Entities:
    return before if before == now and before is not None else now


def _feature_entities(fabric: FabricSpec, settings: Settings) -> dict[str, Entities]:
    features = [feature.entities(fabric, settings) for feature in FEATURES.values() if feature.entities]
    return {
        switch.name: tuple(entity for of_switch in features for entity in of_switch(switch))
        for switch in fabric.switches
    }


def _job_entities(fabric: FabricSpec, jobs: Iterable[Job]) -> dict[str, list[Entity]]:
    entities: dict[str, list[Entity]] = {}
    for feature in FEATURES.values():
        if feature.of_jobs is not None:
            for switch, found in feature.of_jobs(fabric, jobs).items():
                entities.setdefault(switch, []).extend(found)
    return entities
