"""The definition of a controller feature; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from weft.controller.entities import Entity
from weft.controller.placement.kind import DEFAULT_PLACEMENT
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.target import EMBEDDED, TargetFacts
from weft.topologies import FabricSpec, SwitchSpec

if TYPE_CHECKING:
    from weft.controller.job import Job
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

Row = dict[str, Any]
DEFAULT_ROUTING = "shortest_paths"
DEFAULT_HASH_SEED = 1
_Chosen = TypeVar("_Chosen")


@dataclass(frozen=True)
class Settings:
    """Settings that an operator may choose.

    Attributes:
        target: units of the switches.
        features: settings of features, at most one of each class; features without settings use their defaults.
        routing: kind of routing, a name from `weft.controller.routing`.
        placement: how trees of aggregation jobs are placed, a name from `weft.controller.placement`.
        hash_seed: seeds the switches' hashes, and the choice of next hops if a program has no ECMP.
        routes: addresses for which switches need routes.

    """

    target: TargetFacts = EMBEDDED
    features: tuple[object, ...] = ()
    routing: str = DEFAULT_ROUTING
    placement: str = DEFAULT_PLACEMENT
    hash_seed: int = DEFAULT_HASH_SEED
    routes: RouteScope = ALL_ROUTES

    def of(self, kind: type[_Chosen]) -> _Chosen:
        """Return the settings of this class, or its defaults."""
        return next((each for each in self.features if isinstance(each, kind)), None) or kind()

    def with_feature(self, chosen: object) -> Settings:
        """Return a copy in which `chosen` replaces the settings of its class."""
        others = (each for each in self.features if type(each) is not type(chosen))
        return replace(self, features=(*others, chosen))


OfSwitch = Callable[[SwitchSpec], Iterable[Entity]]
Rows = Callable[["SwitchSession", SwitchSpec | None, "Lab"], Awaitable[list[Row]]]


@dataclass(frozen=True)
class Feature:
    """A feature of the controller.

    Attributes:
        name: name of the feature; features' entities are planned in order of their files' names.
        summary: one-line description, also the help text of its command.
        tables: tables of the P4 program that it fills.
        entities: returns every switch's entities for the fabric and the settings; called again when settings change.
            Switches with equal entities should share one object.
        of_jobs: returns the entities for aggregation jobs, by switch.
        command: `weft controller COMMAND` shows its rows.
        rows: returns a switch's rows for its command, given a read-only session, the switch's description and the lab.

    """

    name: str
    summary: str
    tables: tuple[str, ...]
    entities: Callable[[FabricSpec, Settings], OfSwitch] | None = None
    of_jobs: Callable[[FabricSpec, Iterable[Job]], Mapping[str, list[Entity]]] | None = None
    command: str = ""
    rows: Rows | None = None


def port_name(spec: SwitchSpec | None, port: int) -> str:
    """Return a port's name: `3 (p0s1)` if its neighbour is known, otherwise `3`."""
    if spec is None or not 1 <= port <= len(spec.ports):
        return str(port)
    return f"{port} ({spec.port(port).peer.node})"
