"""Section of a scenario file on what the controller does about links that flap, lose packets or are slow."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from weft.controller.flap_damping import FlapDamping
from weft.controller.link_watch import WatchLimits
from weft.controller.operations import OperationsSettings
from weft.quantities.definitions import TIME, PositiveTime, number, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_US
from weft.scenario.values import ClassReference, Section, SectionKeyError
from weft.traffic.class_reference import CLASS_REFERENCE

Penalty = Annotated[float, number(1, 1e9, example="2000")]
Share = Annotated[float, number(0, 1, above=True, example="0.001")]


class FlapDampingSection(Section):
    """Flap damping (RFC 2439): a link that fails often stays out of the routes for a while.

    Each failure adds a penalty of 1000. The values are BGP routers', with milliseconds in place of minutes.
    """

    half_life: PositiveTime = FlapDamping.half_life_ps
    """In which a penalty halves."""
    suppress: Penalty = FlapDamping.suppress
    """Penalty above which the link stays out of the routes."""
    reuse: Annotated[Penalty, Example("500")] = FlapDamping.reuse
    """Penalty at which it is used again."""
    max_suppress: PositiveTime = FlapDamping.max_suppress_ps
    """Longest time out of the routes after the last failure."""

    @model_validator(mode="after")
    def _possible(self) -> FlapDampingSection:
        self.settings()
        return self

    def settings(self) -> FlapDamping:
        """Return what the controller takes. Raises SettingError."""
        return FlapDamping(self.half_life, self.suppress, self.reuse, self.max_suppress)


class LinkWatchSection(Section):
    """Links are watched by the counters of both ends; a lossy or slow one is cordoned if hosts can spare it.

    If it is a host's, a spare takes the rank of the host, where there is one.
    """

    loss: Share = 0.001
    """Share of lost packets from which a link is lossy."""
    least_packets: Annotated[int, whole(1, 2**40)] = WatchLimits.least_packets
    """Sent before a share is judged."""
    slow: Annotated[float, number(0, 1, above=True, example="0.8")] | None = None
    """Share of its link's rate below which a port that marks (ECN) all the time is slow; by default not looked for."""

    def limits(self) -> WatchLimits:
        """Return what the controller takes."""
        return WatchLimits(min(self.loss, 1 - 1e-9), self.least_packets, self.slow)


class ControllerSection(Section):
    """How the controller treats links that flap, lose packets or are slow (docs/controller.md), and your controller.

    A class alone, `controller: mine.py:Class`, stands for a section with this `class`.
    """

    controller_class: Annotated[ClassReference | None, Example("examples/busy_uplinks/uplinks.py:BusyUplinks")] = Field(
        None, alias="class"
    )
    """Your `weft.Controller`, which runs together with Weft's (docs/extending.md): path/to/file.py:Class."""
    parameters: Annotated[
        dict[str, Any], Example("{interval_us: 200}", (".class=examples/busy_uplinks/uplinks.py:BusyUplinks",))
    ] = Field(default={})
    """Arguments of its `__init__`."""
    flap_damping: FlapDampingSection | None = None
    link_watch: LinkWatchSection | None = None
    interval: Annotated[int, TIME.between(PS_PER_US, example="100us")] = OperationsSettings.interval_ps
    """How often it reads counters, for `link_watch` and while it drains."""
    drain_timeout: PositiveTime = OperationsSettings.drain_timeout_ps
    """After which a drain ends though packets still come."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"class": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parameters_of_a_class(self) -> ControllerSection:
        if self.parameters and self.controller_class is None:
            raise SectionKeyError("parameters", "they are for a class (controller.class: path/to/file.py:Class)")
        return self

    def settings(self) -> OperationsSettings:
        """Return what the controller takes."""
        return OperationsSettings(
            flap_damping=self.flap_damping.settings() if self.flap_damping else None,
            limits=self.link_watch.limits() if self.link_watch else WatchLimits(),
            interval_ps=self.interval,
            drain_timeout_ps=self.drain_timeout,
        )


class _OrClass:
    """Return the schema for editors of a section that a class alone may stand for."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": CLASS_REFERENCE}]}


ControllerOrClass = Annotated[ControllerSection, _OrClass()]
