"""How packets choose among the members of their ECMP groups (p4/include/load_balancing.p4).

The mode is the default action of the table `load_balancing`, so it applies to every group, including groups that a
failure creates; an entry could give a single group another mode. Without a mode, switches have no such entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import finsy

from weft.controller.entities import Entity, default_action
from weft.controller.features.depth_ages import DepthAges, read_depth_ages
from weft.controller.features.kind import Feature, OfSwitch, Row, Settings
from weft.controller.target import TargetFacts
from weft.quantities.units import PS_PER_MS, PS_PER_NS, PS_PER_US
from weft.topologies import FabricSpec, SwitchSpec

if TYPE_CHECKING:
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

TABLE = "load_balancing"
ECMP_TABLE = "ecmp"
CANDIDATE_TABLES = ("ecmp_kept", "ecmp_first", "ecmp_second")
"""Tables from which an adaptive choice takes the members to compare; they and their selectors mirror `ecmp`."""
STATE = ("flowlet_times", "flowlet_choices", "queue_depths", "queue_depth_times")
"""Registers with state that switches keep between packets."""
LoadBalancingMode = Literal["flow", "flow_and_queue_pair", "flowlet", "round_robin", "random", "adaptive"]
DEFAULT_LOAD_BALANCING: LoadBalancingMode = "flow"
DEFAULT_FLOWLET_GAP_PS = 50 * PS_PER_US
DEFAULT_HYSTERESIS_BYTES = 16384
DEFAULT_DEPTH_LIFETIME_PS = PS_PER_MS
_DEPTH_BITS = 19
_ACTIONS: dict[LoadBalancingMode, str] = {
    "flow_and_queue_pair": "hash_queue_pair",
    "flowlet": "switch_flowlets",
    "round_robin": "spray_in_turn",
    "random": "spray_at_random",
    "adaptive": "adapt",
}


@dataclass(frozen=True)
class LoadBalancingSettings:
    """The mode of every ECMP group.

    Attributes:
        mode: criterion for choosing a member.
        flowlet_gap_ps: pause after which a flow chooses again; 0 with `adaptive` chooses for every packet.
        hysteresis_bytes: how much shorter another queue must be for an adaptive choice to leave the flow's present one.
        depth_lifetime_ps: age above which a queue depth recorded by egress counts as 0.

    """

    mode: LoadBalancingMode = DEFAULT_LOAD_BALANCING
    flowlet_gap_ps: int = DEFAULT_FLOWLET_GAP_PS
    hysteresis_bytes: int = DEFAULT_HYSTERESIS_BYTES
    depth_lifetime_ps: int = DEFAULT_DEPTH_LIFETIME_PS

    @property
    def is_adaptive(self) -> bool:
        """Whether choices compare queue depths."""
        return self.mode == "adaptive"

    @property
    def sprays(self) -> bool:
        """Whether each packet of a flow chooses separately, so that packets may be reordered."""
        return self.mode in ("round_robin", "random") or (self.is_adaptive and not self.flowlet_gap_ps)


def mode_entities(settings: LoadBalancingSettings, target: TargetFacts) -> tuple[Entity, ...]:
    """Return the default action of `load_balancing` in the target's units; empty for `flow`, the program's default."""
    if settings.mode == DEFAULT_LOAD_BALANCING:
        return ()
    arguments: dict[str, int] = {}
    if settings.mode in ("flowlet", "adaptive"):
        arguments["flowlet_gap"] = time_units(settings.flowlet_gap_ps, target)
    if settings.is_adaptive:
        depth = target.depth_units(settings.hysteresis_bytes)
        arguments |= {
            "hysteresis": min(depth, (1 << _DEPTH_BITS) - 1),
            "lifetime": time_units(settings.depth_lifetime_ps, target),
        }
    return (default_action(TABLE, _ACTIONS[settings.mode], **arguments),)


def candidate_entities(routes: Iterable[Entity]) -> list[Entity]:
    """Return the entries of the candidate tables and their selectors that mirror these routes."""
    # A table is applied once per packet, and p4c copies a table's actions, so each candidate has a table and a
    # selector.
    found = [(each, table) for each in routes for table in CANDIDATE_TABLES]
    return [copy for each, table in found if (copy := _for_candidates(each, table)) is not None]


def _for_candidates(entity: Entity, table: str) -> Entity | None:
    """Return an entity of `ecmp` or its selector, copied to another table; None for other entities."""
    if isinstance(entity, finsy.P4TableEntry):
        is_ecmp = entity.table_id == ECMP_TABLE
        return replace(entity, table_id=table) if is_ecmp else None
    if isinstance(entity, finsy.P4ActionProfileMember | finsy.P4ActionProfileGroup):
        is_ecmp = entity.action_profile_id == selector_of(ECMP_TABLE)
        return replace(entity, action_profile_id=selector_of(table)) if is_ecmp else None
    return None


def selector_of(table: str) -> str:
    """Return the name of a table's action selector."""
    return f"{table}_selector"


def time_units(time_ps: int, target: TargetFacts) -> int:
    """Return a time in the target's unit, rounded up, so that times above 0 are at least one unit."""
    # Rounded up: a gap below one BMv2 unit would become 0, which means a choice for every packet.
    return -(-time_ps // (PS_PER_NS * target.ns_per_time_unit))


async def load_balancing_rows(session: SwitchSession, _spec: SwitchSpec | None, lab: Lab) -> list[Row]:
    """Return the mode of a switch's groups and the ages of the queue depths that adaptive choices relied on."""
    (found,) = await session.read([finsy.P4TableEntry(TABLE, is_default_action=True)])
    action = found.action.name if isinstance(found.action, finsy.P4TableAction) else ""
    mode = next((mode for mode, known in _ACTIONS.items() if known == action), DEFAULT_LOAD_BALANCING)
    arguments = dict(found.action.args) if isinstance(found.action, finsy.P4TableAction) else {}
    ages = await read_depth_ages(session, lab.facts)
    return [
        {
            "switch": session.name,
            "mode": mode,
            "flowlet_gap_ns": _in(arguments.get("flowlet_gap"), lab.facts.ns_per_time_unit),
            "hysteresis_bytes": _in(arguments.get("hysteresis"), lab.facts.depth_unit_bytes),
            "lifetime_ns": _in(arguments.get("lifetime"), lab.facts.ns_per_time_unit),
            **_age_columns(ages),
        }
    ]


def _in(value: int | None, unit: int) -> int | None:
    return None if value is None else value * unit


def _age_columns(ages: DepthAges) -> Row:
    return {
        "choices": ages.choices,
        "with_a_queue": ages.queued.count,
        "age_median_ns": ages.queued.at_most_ns(0.5),
        "age_99_ns": ages.queued.at_most_ns(0.99),
        "age_largest_ns": ages.queued.at_most_ns(1.0),
    }


def _entities(_fabric: FabricSpec, settings: Settings) -> OfSwitch:
    entities = mode_entities(settings.of(LoadBalancingSettings), settings.target)
    return lambda _switch: entities


KIND = Feature(
    name="load balancing",
    summary="How packets choose among equal paths, and the ages of the queue depths that adaptive choices use.",
    tables=(TABLE, *CANDIDATE_TABLES),
    entities=_entities,
    command="load-balancing",
    rows=load_balancing_rows,
)
