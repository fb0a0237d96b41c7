"""The definition of a controller feature; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from weft.controller.entities import Entity
from weft.controller.placement.kind import DEFAULT_PLACEMENT
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
    """What an operator may choose.

    Attributes:
        target: units of the switches.
        features: settings of features, at most one of each feature's class; those left out have their defaults.
        routing: kind of routing, a name of `weft.controller.routing`.
        placement: by what trees of aggregation jobs are placed, a name of `weft.controller.placement`.
        hash_seed: draws the seeds of the switches' hashes, and routes' next hops where a program has no ECMP.

    """

    target: TargetFacts = EMBEDDED
    features: tuple[object, ...] = ()
    routing: str = DEFAULT_ROUTING
    placement: str = DEFAULT_PLACEMENT
    hash_seed: int = DEFAULT_HASH_SEED

    def of(self, kind: type[_Chosen]) -> _Chosen:
        """Return a feature's settings, given their class."""
        return next((each for each in self.features if isinstance(each, kind)), None) or kind()

    def with_feature(self, chosen: object) -> Settings:
        """Return these settings with a feature's in place of those it had."""
        others = (each for each in self.features if type(each) is not type(chosen))
        return replace(self, features=(*others, chosen))


OfSwitch = Callable[[SwitchSpec], Iterable[Entity]]
Rows = Callable[["SwitchSession", SwitchSpec | None, "Lab"], Awaitable[list[Row]]]


@dataclass(frozen=True)
class Feature:
    """A feature of the controller.

    Attributes:
        name: of the feature; features' entities are planned in order of their files' names.
        summary: one line for people, also the help of its command.
        tables: tables of the P4 program that it fills.
        entities: what every switch holds, given the fabric and the settings. They are planned again when settings
            change; of several switches that hold the same, one object is best.
        of_jobs: what aggregation jobs need, by switch.
        command: `weft controller COMMAND` shows its rows.
        rows: what its command shows of a switch, given a session that reads, the switch's description and the lab.

    """

    name: str
    summary: str
    tables: tuple[str, ...]
    entities: Callable[[FabricSpec, Settings], OfSwitch] | None = None
    of_jobs: Callable[[FabricSpec, Iterable[Job]], Mapping[str, list[Entity]]] | None = None
    command: str = ""
    rows: Rows | None = None


def port_name(spec: SwitchSpec | None, port: int) -> str:
    """`3 (p0s1)` where the neighbour is known, `3` otherwise."""
    if spec is None or not 1 <= port <= len(spec.ports):
        return str(port)
    return f"{port} ({spec.port(port).peer.node})"
