"""Section of a scenario file on how the circuits of a fabric change while it runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weft.errors import translated
from weft.quantities.definitions import TIME, Time
from weft.quantities.units import PS_PER_MS, PS_PER_S
from weft.scenario.places import KeyProblem
from weft.scenario.values import Section
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.circuits import ConfigurationName

DARK_TIME = TIME.between(0, 10 * PS_PER_S)


class ScheduledConfiguration(Section):
    """A change of the circuits' configuration."""

    at: Time
    """When the controller begins, from when the fabric is up."""
    configuration: ConfigurationName
    """Which one there is to be, by its name in `fabric`."""


class CircuitsSection(Section):
    """How circuits change, in fabrics that have some (kinds `cubes`, `optical_core`)."""

    dark_time: Annotated[int, DARK_TIME] = 10 * PS_PER_MS
    """From when circuits go until those in their place are there. Mirrors take milliseconds."""
    drain: bool = True
    """Circuits that go are emptied first: routes avoid them, unless destinations are lost by that, and the change waits
    until they carry nothing, at most for `controller.drain_timeout`. Otherwise what is on them is lost."""
    schedule: list[ScheduledConfiguration] = Field(default=[])
    """Changes at given times. Items of `traffic` change circuits between others: `- {circuits: long}`."""


def check_circuits(fabric: FabricSpec, section: CircuitsSection, watches_links: bool) -> None:
    """Check that the fabric has circuits and the configurations that are scheduled; links are watched where they stay.

    Raises:
        KeyProblem: says which key is wrong.

    """
    if watches_links and fabric.circuits is not None and len(fabric.circuits.names) > 1:
        raise KeyProblem(
            "controller.link_watch", "does not go with circuits that may change", valid="one configuration"
        )
    for number, each in enumerate(section.schedule):
        require_configuration(fabric, each.configuration, f"circuits.schedule[{number}].configuration")
    if fabric.circuits is None and section != CircuitsSection():
        raise KeyProblem("circuits", "the fabric has none", valid="fabrics of kind cubes or optical_core")


def require_configuration(fabric: FabricSpec, name: str, key: str) -> None:
    """Check that the fabric has circuits, and this configuration of them. Raises KeyProblem."""
    if fabric.circuits is None:
        raise KeyProblem(key, f"'{name}': the fabric has no circuits", valid="fabrics of kind cubes or optical_core")
    with translated(TopologyError, KeyProblem, key):
        fabric.circuits.configuration(name)
