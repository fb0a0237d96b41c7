"""The whole of a scenario."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import Field

from weft.scenario.fabric_presets import fabric_preset_names
from weft.scenario.options import FabricOptions
from weft.scenario.places import Places
from weft.scenario.topology import Fabric
from weft.scenario.traffic import Traffic
from weft.scenario.values import Name, Section, SectionOnUse, Text
from weft.topologies.kinds.leaf_spine import LeafSpineSection


class _NamedFabric(Section):
    """Top level of a scenario."""

    name: Annotated[
        str, Text("a name of up to 41 of a-z, 0-9 and -", r"\A[a-z0-9][a-z0-9-]{0,40}\Z", "incast-100g")
    ] = "fabric"
    """Name of the results' directory."""
    preset: Annotated[str | None, Name("preset", fabric_preset_names)] = None
    """Keys of a known kind of fabric (docs/presets.md), below the scenario's own: `weft presets NAME` shows them with
    their sources. The scenario's own keys count where both have one; null takes one of the preset's away."""
    fabric: Fabric = LeafSpineSection()


class Scenario(FabricOptions, _NamedFabric):
    """All that a run depends on, except the machine."""

    traffic: list[Traffic] = Field(default=[])
    """Items to run, one after the other."""
    cluster: Annotated[Section | None, SectionOnUse("weft.scenario.cluster", "ClusterSection")] = None
    drill: Annotated[Section | None, SectionOnUse("weft.scenario.drill", "DrillSection")] = None
    schedule: Annotated[Section | None, SectionOnUse("weft.scenario.schedule", "ScheduleSection")] = None

    @cached_property
    def places(self) -> Places:
        """Where its keys stand."""
        return Places("scenario")

    def at(self, places: Places) -> Scenario:
        """Return the scenario with these places for its keys."""
        self.__dict__["places"] = places
        return self
