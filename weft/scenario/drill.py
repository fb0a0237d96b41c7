"""Section of a scenario: faults that drills draw, and what must hold in spite of them (`weft drill`)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from weft.quantities.definitions import TIME, number, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_MS
from weft.scenario.values import Name, Section

if TYPE_CHECKING:
    from weft.scenario.model import Scenario


def _fault_kinds() -> Mapping[str, object]:
    """Return the kinds by name. Drills are above scenarios, and needed only where a scenario names kinds."""
    kinds: Mapping[str, object] = importlib.import_module("weft.drills.faults").FAULT_KINDS
    return kinds


class _FaultName(Name):
    """The name of a kind of fault; no other is read."""

    def read(self, value: object) -> str:
        """Return the name. Raises ValueError."""
        name = super().read(value)
        if name not in self.known():
            raise self.unknown(name)
        return name

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the names as a closed list."""
        return {"enum": list(self.known()), "type": "string"}


FaultName = Annotated[str, _FaultName("kind of fault", _fault_kinds)]


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
    kinds: Annotated[list[FaultName] | None, Field(min_length=1), Example("[link-down, lossy-link]")] = None
    """Kinds of faults ([what happens](drills.md)); by default all that the fabric can have."""
    objective: ObjectiveSection = ObjectiveSection()


def drill_section(scenario: Scenario) -> DrillSection:
    """Return a scenario's section, with its defaults where the file lacks it."""
    section = scenario.drill
    return section if isinstance(section, DrillSection) else DrillSection()
