"""What a scenario says about links, held to its fabric before anything is built."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean
from weft.scenario.events import LinkEventSection
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.topologies import FabricLink, FabricSpec, LinkChoice, TopologyError
from weft.topologies.fabric import split_end
from weft.topologies.int_rates import int_rates

_EXAMPLES = 4


def check_links(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the fabric has the links that `options` names. Raises KeyProblem."""
    for number, some in enumerate(options.faults.links):
        require_link(fabric, some.link, f"faults.links[{number}].link")
    for number, name in enumerate(options.credits.links or ()):
        require_link(fabric, name, f"credits.links[{number}]")


def check_int_rates(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that INT has a code for every link's rate. Raises BadInputError."""
    if not options.int_telemetry:
        return
    try:
        int_rates(fabric)
    except TopologyError as error:
        raise BadInputError(f"int: {error}") from None


def check_link_events(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the links of `options.events` are there, that the clock can bring them down, and the order.

    Raises:
        BadInputError, EnvironmentLacksError: says which event, and what would be valid.
    """
    is_up: dict[FabricLink, bool] = {}
    times: set[tuple[FabricLink, int | None]] = set()
    for index, event in events_in_order(options.events):
        key = f"events[{index}]"
        for link in links_of_event(fabric, options, event.link, f"{key}.link"):
            up = event.state == "up"
            if is_up.get(link, True) == up:
                raise KeyProblem(
                    f"{key}.state", f"{fabric.link_name(link)} is {event.state} already at that time"
                )
            if (link, event.at) in times:
                raise KeyProblem(
                    f"{key}.at", f"{fabric.link_name(link)} has another event at that time, {event.at} ps"
                )
            is_up[link] = up
            times.add((link, event.at))


def events_in_order(events: Sequence[LinkEventSection]) -> list[tuple[int, LinkEventSection]]:
    """Return events and their places in order of their times, first those from the start."""
    return sorted(enumerate(events), key=lambda each: -1 if (at := each[1].at) is None else at)


def links_of_event(fabric: FabricSpec, options: FabricOptions, name: str, place: str) -> list[FabricLink]:
    """Return the links that an event names. Raises as `check_link_events`."""
    choice = LinkChoice.parse(name)
    if not choice.is_pattern:
        _require_neighbours(fabric, choice.sender, choice.receiver, place)
    require_link(fabric, name, place)
    links = choice.links_of(fabric)
    for link in links:
        _require_mortal(fabric, options, link, place)
    return links


def checked_link(fabric: FabricSpec, options: FabricOptions, a: str, b: str, place: str) -> FabricLink:
    """Return the one link between two nodes, or two of their ports. Raises as `check_link_events`."""
    _require_neighbours(fabric, a, b, place)
    try:
        link = fabric.link_between(a, b)
    except TopologyError as error:
        raise KeyProblem(place, str(error)) from None
    _require_mortal(fabric, options, link, place)
    return link


def _require_neighbours(fabric: FabricSpec, a: str, b: str, place: str) -> None:
    """Check that the nodes of two ends of a link have one. Raises KeyProblem."""
    a, b = split_end(a)[0], split_end(b)[0]
    neighbours: dict[str, list[str]] = {}
    for link in fabric.links:
        neighbours.setdefault(link.a.node, []).append(link.b.node)
        neighbours.setdefault(link.b.node, []).append(link.a.node)
    for node in (a, b):
        if node not in neighbours:
            raise KeyProblem(place, f"no node '{node}'; {did_you_mean(node, neighbours)}")
    if b not in neighbours[a]:
        peers = ", ".join(dict.fromkeys(neighbours[a]))
        raise KeyProblem(place, f"no link joins {a} and {b}; {a} has links to {peers}")


def _require_mortal(fabric: FabricSpec, options: FabricOptions, link: FabricLink, place: str) -> None:
    """Check that the clock can bring a link down. Raises as `check_link_events`."""
    if options.target == "bmv2":
        raise EnvironmentLacksError(f"{place}: links of BMv2 do not fail; valid: target: embedded")
    between_switches = not fabric.switch(link.b.node).port(link.b.port).peer_is_host
    if options.clock == "real" and options.links == "internal" and between_switches:
        raise KeyProblem(
            place,
            f"{fabric.link_name(link)} is within the engine (links: internal), where the real clock cannot bring it "
            "down; valid: links: veth, or clock: virtual",
        )


def require_link(fabric: FabricSpec, name: str, key: str) -> None:
    """Check that the fabric has a link of that name. Raises KeyProblem."""
    if LinkChoice.parse(name).links_of(fabric):
        return
    links = [fabric.link_name(link) for link in fabric.links]
    examples = ", ".join(links[:_EXAMPLES]) + (f", … {links[-1]}" if len(links) > _EXAMPLES else "")
    raise KeyProblem(key, f"the fabric has no link '{name}' (valid: {examples})")
