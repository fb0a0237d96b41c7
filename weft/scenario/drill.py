"""Section of a scenario: faults that drills draw, and what must hold in spite of them (`weft drill`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from weft.quantities.definitions import TIME, number, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_MS
from weft.scenario.values import Section

if TYPE_CHECKING:
    from weft.scenario.model import Scenario

FaultKind = Literal["link-down", "link-flap", "link-slow", "lossy-link", "switch-down", "plane-down", "nic-storm"]


class ObjectiveSection(Section):
    """Bounds that must hold in every drill, besides right values."""

    slowdown: Annotated[float, number(1, 1e6, example="1.5")] = 1.2
    """Longest time of a run of the traffic, over its time without faults."""
    recovery: Annotated[int, TIME.between(0, example="500us")] = PS_PER_MS
    """Longest time from when a link fails until hosts have acknowledgements of all that they have sent again."""


class DrillSection(Section):
    """Faults that `weft drill` draws (docs/drills.md).

    `weft run` does not use it.
    """

    faults: Annotated[int, whole(1, 16, example="3")] = 2
    """Most faults of a drill; each has one or more."""
    kinds: Annotated[list[FaultKind] | None, Field(min_length=1), Example("[link-down, lossy-link]")] = None
    """Kinds of faults; by default all that the fabric can have. `link-down`: a link between switches fails for good.
    `link-flap`: it comes back. `link-slow`: it sends at a part of its rate. `lossy-link`: it loses packets.
    `switch-down`: all links of a switch without hosts fail. `plane-down`: all of a plane's. `nic-storm`: a NIC pauses
    its switch for some time, where there is PFC."""
    objective: ObjectiveSection = ObjectiveSection()


def drill_section(scenario: Scenario) -> DrillSection:
    """Return a scenario's section, with its defaults where the file lacks it."""
    section = scenario.drill
    return section if isinstance(section, DrillSection) else DrillSection()
