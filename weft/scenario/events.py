"""Events of a running fabric: links fail and come back, NICs pause for ever, operators drain and restore."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from weft.controller.elements import Element, host_element, plane_element, switch_element
from weft.errors import InvalidValueError
from weft.quantities.definitions import TIME, Rate, Time, whole
from weft.quantities.example import Example
from weft.scenario.links import LinkName
from weft.scenario.values import CLASSES, PriorityClass, Section, Text
from weft.topologies import Endpoint, FabricLink, FabricSpec, LinkChoice

OPERATIONS = ("cordoned", "drained", "restored")
STORMING = "storming"
_STATES = {
    "switch": OPERATIONS,
    "plane": ("down", "up", *OPERATIONS),
    "host": ("down", "up", STORMING, *OPERATIONS),
}
_GO_WITH = {"count": "flapping", "period": "flapping", "rate": "slow"}
_MAY_GO_WITH = {"classes": STORMING, "until": STORMING}
HostName = Annotated[str, Text("a host", r"\A[^\s<>-]{1,64}\Z", "h3")]
SwitchName = Annotated[str, Text("a switch", r"\A[^\s<>-]{1,64}\Z", "p0s1")]


class EventSection(Section):
    """A link, or several (p0s1<->*: a whole switch), changes; a NIC pauses its switch for ever; or an operator takes
    something out of use or back.
    """

    link: LinkName | None = None
    """Which: p0l0<->p0s1, all links between two nodes; p0l0:3<->p0s1:1, one of parallel links; p0l0->p0s1, one
    direction, which neither end notices to be `down`."""
    switch: Annotated[SwitchName | None, Example("p0s1", (".state=drained",))] = None
    """Which switch, in place of `link`; `cordoned`, `drained` or `restored`."""
    plane: Annotated[int, whole(0, 255, example="1")] | None = None
    """Which plane, in place of `link`; all its links fail (`down`) or come back (`up`), or `cordoned`, `drained`,
    `restored`."""
    host: HostName | None = None
    """Which host, in place of `link`; all its links fail (`down`) or come back (`up`), or `cordoned`, `drained`,
    `restored`: a spare takes the rank of one that is out of use. `storming`: its NIC is broken."""
    state: Annotated[
        Literal["down", "up", "flapping", "slow", "storming", "cordoned", "drained", "restored"],
        Example("down", (".link=p0l0<->p0s1",)),
    ]
    """A link fails (`down`), comes back (`up`), does both `count` times (`flapping`), or sends at another `rate` than
    its own (`slow`). `storming`: a NIC asks by PFC for pauses of `classes` without end. `cordoned`: new routes avoid
    it. `drained`: then wait until no packet uses it. `restored`: it is used again."""
    at: Annotated[Time | None, Example("200us", (".link=p0l0<->p0s1",))] = None
    """When, from when the fabric is up. Without it, from the start, before the first packet."""
    count: Annotated[
        Annotated[int, whole(1, 100_000)] | None,
        Example("10", (".link=p0l0<->p0s1", ".state=flapping", ".period=20us")),
    ] = None
    """How often it fails; with `flapping`."""
    period: Annotated[
        Annotated[int, TIME.between(2, example="20us")] | None,
        Example("20us", (".link=p0l0<->p0s1", ".state=flapping", ".count=10")),
    ] = None
    """From one failure to the next, in the first half of which it is down; with `flapping`."""
    rate: Annotated[Rate | None, Example("1Gb/s", (".link=p0l0<->p0s1", ".state=slow"))] = None
    """At which both ends of the link send; with `slow`. The controller is not notified."""
    classes: Annotated[
        Annotated[list[PriorityClass], Field(min_length=1, max_length=CLASSES)] | None,
        Example("[3]", (".host=h1", ".state=storming", "pfc.classes=[3]")),
    ] = None
    """Classes that the NIC pauses; with `storming`, by default all of `pfc.classes`."""
    until: Annotated[Time | None, Example("1ms", (".host=h1", ".state=storming", ".at=10us", "pfc.classes=[3]"))] = None
    """When the NIC stops, counted as `at`; with `storming`. Its last pause runs out. Without it, it never stops."""

    @model_validator(mode="after")
    def _whole(self) -> EventSection:
        given = [name for name in ("link", "switch", "plane", "host") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs exactly one of link, switch, plane, host; has {', '.join(given) or 'none'}")
        states = _STATES.get(given[0])
        if states is not None and self.state not in states:
            raise InvalidValueError(f"a {given[0]} cannot be '{self.state}'", valid=states)
        for name, state in _GO_WITH.items():
            if (getattr(self, name) is not None) != (self.state == state):
                raise ValueError(f"{name} and state: {state} go together")
        for name, state in _MAY_GO_WITH.items():
            if getattr(self, name) is not None and self.state != state:
                raise ValueError(f"{name} is for state: {state}")
        if self.is_storm and self.host is None:
            raise InvalidValueError(f"a {given[0]} cannot be '{self.state}'", valid="a host")
        if self.until is not None and self.until <= (self.at or 0):
            raise ValueError(f"until ({self.until} ps) is not after at ({self.at or 0} ps)")
        if self.is_operation and self.link is not None and not LinkChoice.parse(self.link).both_ways:
            raise InvalidValueError(
                f"'{self.link}' is one direction, and links are {self.state} in both", valid="NODE<->NODE"
            )
        return self

    @property
    def is_one_way(self) -> bool:
        """Return whether it is about one direction of links."""
        return self.link is not None and not LinkChoice.parse(self.link).both_ways

    def directions(self, link: FabricLink) -> list[tuple[Endpoint, Endpoint]]:
        """Return sender and receiver of the directions of one of its links that change."""
        choice = None if self.link is None else LinkChoice.parse(self.link)
        return [each for each in link.directions if choice is None or choice.takes(*each)]

    @property
    def names(self) -> str:
        """Return the key that says what the event is about."""
        return next(name for name in ("link", "switch", "plane", "host") if getattr(self, name) is not None)

    @property
    def is_operation(self) -> bool:
        """Return whether it is what an operator does, not what happens to a link."""
        return self.state in OPERATIONS

    @property
    def is_storm(self) -> bool:
        """Return whether a host's NIC pauses its switch for ever."""
        return self.state == STORMING

    def transitions(self) -> list[tuple[str, int | None]]:
        """Return how a link changes, and when: "down", "up" or "slow"."""
        if self.state != "flapping":
            return [(self.state, self.at)]
        assert self.count is not None
        assert self.period is not None
        first = self.at or 0
        starts = range(first, first + self.count * self.period, self.period)
        return [each for start in starts for each in (("down", start), ("up", start + self.period // 2))]

    def element(self, fabric: FabricSpec) -> Element:
        """Return the switch, plane or host that an operation is about. Raises TopologyError, SettingError."""
        if self.host is not None:
            return host_element(fabric, self.host)
        if self.plane is not None:
            return plane_element(fabric, self.plane)
        assert self.switch is not None
        return switch_element(fabric, self.switch)
