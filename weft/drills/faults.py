"""Faults that drills draw, each bounded: the hosts of every plane that is left can reach each other."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from weft.errors import BadInputError
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_US, shortest_rate
from weft.topologies import FabricLink, FabricSpec

_TRIES = 100
_FLAP_PS = (5 * PS_PER_US, 200 * PS_PER_US)
_STORM_PS = (20 * PS_PER_US, 200 * PS_PER_US)
_SLOW = (2, 4, 10)
"""Parts of its rate that a slow link has left: a half, a quarter, a tenth."""
_LOSS = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Fault:
    """A fault as keys of a scenario.

    Attributes:
        kind: its kind's name.
        words: says what happens.
        events: items for `events`.
        links: items for `faults.links`.
        lost: links that fail for good.
        places: names of the links, switches or hosts that it is of.
    """

    kind: str
    words: str
    events: tuple[Mapping[str, Any], ...] = ()
    links: tuple[Mapping[str, Any], ...] = ()
    lost: frozenset[FabricLink] = frozenset()
    places: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stage:
    """Where and when faults are drawn: the fabric but its storage network, and when its traffic begins and ends."""

    fabric: FabricSpec
    begin_ps: int
    end_ps: int
    pauses: bool

    def time_ps(self, random: Random) -> int:
        """Return a time of the traffic, in whole nanoseconds."""
        return random.randrange(self.begin_ps, max(self.begin_ps + 1, self.end_ps)) // 1000 * 1000

    def link(self, random: Random) -> FabricLink:
        """Return a link between switches."""
        return random.choice(self.fabric.training_links)

    @property
    def upper_switches(self) -> Sequence[str]:
        """The switches without hosts."""
        fabric = self.fabric
        edge = {nic.switch for host in fabric.hosts for nic in host.nics}
        switches = (switch for plane in fabric.training_planes for switch in fabric.switches_of_plane(plane))
        return [switch.name for switch in switches if switch.name not in edge]


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        name: in scenarios and reports.
        draw: draws one.
        lacking: what the fabric lacks without which there is none; "" if it has all.
    """

    name: str
    draw: Callable[[Random, Stage], Fault]
    lacking: Callable[[Stage], str]


def _name(link: FabricLink) -> str:
    return f"{link.a}<->{link.b}"


def _at(time_ps: int) -> str:
    return f"{time_ps}ps"


def _link_down(random: Random, stage: Stage) -> Fault:
    link, at_ps = stage.link(random), stage.time_ps(random)
    event = {"link": _name(link), "state": "down", "at": _at(at_ps)}
    return Fault(
        "link-down",
        f"{_name(link)} fails at {format_time(at_ps)}",
        (event,),
        lost=frozenset({link}),
        places=frozenset({_name(link)}),
    )


def _link_flap(random: Random, stage: Stage) -> Fault:
    link, at_ps, down_ps = stage.link(random), stage.time_ps(random), random.randrange(*_FLAP_PS)
    changes = {"down": at_ps, "up": at_ps + down_ps}
    events = tuple({"link": _name(link), "state": state, "at": _at(time_ps)} for state, time_ps in changes.items())
    return Fault(
        "link-flap",
        f"{_name(link)} fails at {format_time(at_ps)} for {format_time(down_ps)}",
        events,
        places=frozenset({_name(link)}),
    )


def _link_slow(random: Random, stage: Stage) -> Fault:
    link, at_ps = stage.link(random), stage.time_ps(random)
    rate_bps = link.link.rate_bps // random.choice(_SLOW)
    event = {"link": _name(link), "state": "slow", "rate": f"{rate_bps}b/s", "at": _at(at_ps)}
    words = f"{_name(link)} sends at {shortest_rate(rate_bps)} from {format_time(at_ps)} on"
    return Fault("link-slow", words, (event,), places=frozenset({_name(link)}))


def _lossy_link(random: Random, stage: Stage) -> Fault:
    link, loss = stage.link(random), random.choice(_LOSS)
    return Fault(
        "lossy-link",
        f"{_name(link)} loses {loss:.2%} of packets",
        links=({"link": _name(link), "loss": loss},),
        places=frozenset({_name(link)}),
    )


def _switch_down(random: Random, stage: Stage) -> Fault:
    name, at_ps = random.choice(stage.upper_switches), stage.time_ps(random)
    lost = frozenset(link for link in stage.fabric.links if name in (link.a.node, link.b.node))
    event = {"link": f"{name}<->*", "state": "down", "at": _at(at_ps)}
    return Fault(
        "switch-down", f"switch {name} fails at {format_time(at_ps)}", (event,), (), lost, frozenset(map(_name, lost))
    )


def _plane_down(random: Random, stage: Stage) -> Fault:
    plane, at_ps = random.choice(stage.fabric.training_planes), stage.time_ps(random)
    switches = {switch.name: switch.plane for switch in stage.fabric.switches}
    lost = frozenset(link for link in stage.fabric.links if _plane_of(switches, link) == plane)
    event = {"plane": plane, "state": "down", "at": _at(at_ps)}
    return Fault(
        "plane-down", f"plane {plane} fails at {format_time(at_ps)}", (event,), (), lost, frozenset(map(_name, lost))
    )


def _nic_storm(random: Random, stage: Stage) -> Fault:
    host, at_ps = random.choice(stage.fabric.hosts).name, stage.time_ps(random)
    until_ps = at_ps + random.randrange(*_STORM_PS)
    event = {"host": host, "state": "storming", "at": _at(at_ps), "until": _at(until_ps)}
    words = f"the NIC of {host} pauses its switch from {format_time(at_ps)} for {format_time(until_ps - at_ps)}"
    return Fault("nic-storm", words, (event,), places=frozenset({host}))


def _no_links(stage: Stage) -> str:
    return "" if stage.fabric.training_links else "no links between switches"


FAULT_KINDS: Mapping[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("link-down", _link_down, _no_links),
        FaultKind("link-flap", _link_flap, _no_links),
        FaultKind("link-slow", _link_slow, _no_links),
        FaultKind("lossy-link", _lossy_link, _no_links),
        FaultKind("switch-down", _switch_down, lambda stage: "" if stage.upper_switches else "no switch without hosts"),
        FaultKind("plane-down", _plane_down, lambda stage: "" if stage.fabric.training_planes[1:] else "one plane"),
        FaultKind("nic-storm", _nic_storm, lambda stage: "" if stage.pauses else "no PFC"),
    )
}
"""All kinds; scenarios read these names (`weft.scenario.drill`), and docs/drills.md says what happens."""


def kinds_for(stage: Stage, asked: Sequence[str] | None) -> list[str]:
    """Return the kinds that a fabric can have, or those that were asked for.

    Raises:
        BadInputError: one that was asked for cannot happen here.
    """
    impossible = {name: lacking for name, kind in FAULT_KINDS.items() if (lacking := kind.lacking(stage))}
    for name in asked or ():
        if name in impossible:
            raise BadInputError(f"{name} cannot happen: the fabric has {impossible[name]}", place="drill.kinds")
    possible = [name for name in asked or FAULT_KINDS if name not in impossible]
    if not possible:
        raise BadInputError("no fault can be drawn for this fabric", place="drill.kinds")
    return possible


def draw_faults(random: Random, stage: Stage, kinds: Sequence[str], most: int) -> list[Fault]:
    """Return one to `most` faults of different places, in the order of drawing; fewer where more would part hosts."""
    found: list[Fault] = []
    for _ in range(random.randint(1, most)):
        for _ in range(_TRIES):
            fault = FAULT_KINDS[random.choice(kinds)].draw(random, stage)
            if _is_apart(fault, found) and _hosts_reach_each_other(stage.fabric, [*found, fault]):
                found.append(fault)
                break
    if not found:
        raise BadInputError(f"every fault of {', '.join(kinds)} would part hosts", place="drill.kinds")
    return found


def _is_apart(fault: Fault, others: Sequence[Fault]) -> bool:
    """Return whether a fault is of no link, switch or NIC that another one is of."""
    taken = frozenset[str]().union(*(other.places for other in others))
    return not fault.places & taken


def _hosts_reach_each_other(fabric: FabricSpec, faults: Sequence[Fault]) -> bool:
    """Return whether hosts are as joined in each plane as before. Planes may be lost whole, but for one."""
    lost = {link for fault in faults for link in fault.lost}
    switches = {switch.name: switch.plane for switch in fabric.switches}
    planes = {
        plane: [link for link in fabric.links if _plane_of(switches, link) == plane] for plane in range(fabric.planes)
    }
    left = {plane: [link for link in links if link not in lost] for plane, links in planes.items()}
    whole = [plane for plane, links in left.items() if links]
    return not set(fabric.training_planes).isdisjoint(whole) and all(
        _parts(left[plane], planes[plane], switches) == _parts(planes[plane], planes[plane], switches)
        for plane in whole
    )


def _plane_of(planes: Mapping[str, int], link: FabricLink) -> int:
    return next(planes[end.node] for end in link.ends if end.node in planes)


def _parts(left: Sequence[FabricLink], before: Sequence[FabricLink], switches: Container[str]) -> int:
    """Return into how many parts the hosts of `before` fall if only the links `left` are there."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for link in left:
        parent[root(link.a.node)] = root(link.b.node)
    hosts = {end.node for link in before for end in link.ends if end.node not in switches}
    return len({root(host) for host in hosts})
