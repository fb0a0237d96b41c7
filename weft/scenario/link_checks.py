"""Checks a scenario's links against its fabric before anything is built."""

from __future__ import annotations

from collections.abc import Sequence

from weft.controller.errors import SettingError
from weft.errors import BadInputError, EnvironmentLacksError, translated
from weft.hints import did_you_mean
from weft.scenario.events import EventSection
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.topologies import Endpoint, FabricLink, FabricSpec, LinkChoice, TopologyError
from weft.topologies.fabric import split_end
from weft.topologies.int_rates import int_rates

_EXAMPLES = 4
_Change = tuple[str, int | None, str, str, list[tuple[Endpoint, Endpoint]]]
"""A change's place in the scenario, time in ps, state, and what changes: its name and directions."""


def check_links(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that the fabric has the links that `options` names. Raises KeyProblem."""
    for number, some in enumerate(options.faults.links):
        require_link(fabric, some.link, f"faults.links[{number}].link")
    hosts = [host.name for host in fabric.hosts]
    for number, host in enumerate(options.faults.hosts):
        if host.host not in hosts:
            key = f"faults.hosts[{number}].host"
            raise KeyProblem(
                key, f"no host {host.host!r}{did_you_mean(host.host, hosts)}", valid=f"{hosts[0]} to {hosts[-1]}"
            )
    for number, name in enumerate(options.credits.links or ()):
        require_link(fabric, name, f"credits.links[{number}]")
    for number, name in enumerate(options.link_retry.links):
        require_link(fabric, name, f"link_retry.links[{number}]")


def check_int_rates(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that INT has a code for every link's rate. Raises BadInputError."""
    if not options.int_telemetry:
        return
    try:
        int_rates(fabric)
    except TopologyError as error:
        raise BadInputError(error, place="int") from None


def check_events(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that what `options.events` names is there, that the clock can do it, and the order.

    Raises:
        BadInputError, EnvironmentLacksError: says which event, and what would be valid.
    """
    _check_operations(fabric, options)
    _check_storms(fabric, options)
    is_up: dict[str, bool] = {}
    times: set[tuple[tuple[Endpoint, Endpoint], int | None]] = set()
    for key, at, state, name, directions in _changes_in_order(fabric, options):
        up = state != "down"
        if state != "slow" and is_up.get(name, True) == up:
            raise KeyProblem(f"{key}.state", f"{name} is {state} already at that time")
        for direction in directions:
            if (direction, at) in times:
                raise KeyProblem(f"{key}.at", f"{name} has another event at that time, {at} ps")
            times.add((direction, at))
        if state != "slow":
            is_up[name] = up


def _changes_in_order(fabric: FabricSpec, options: FabricOptions) -> list[_Change]:
    """Return all changes of links in order of time, first those from the start."""
    changes: list[_Change] = []
    for index, event in enumerate(options.events):
        if event.is_operation or event.is_storm:
            continue
        place = f"events[{index}]"
        if event.state == "slow" and options.clock == "real":
            raise EnvironmentLacksError(
                "the real clock cannot change a link's rate; valid: clock: virtual", place=f"{place}.state"
            )
        if event.is_one_way and options.clock == "real":
            raise EnvironmentLacksError(
                "under the real clock a link fails in both directions; valid: clock: virtual", place=f"{place}.link"
            )
        for link in links_of_event(fabric, options, event, place):
            for name, directions in changed_parts(fabric, event, link):
                changes += [(place, at, state, name, directions) for state, at in event.transitions()]
    return sorted(changes, key=lambda each: -1 if each[1] is None else each[1])


def changed_parts(
    fabric: FabricSpec, event: EventSection, link: FabricLink
) -> list[tuple[str, list[tuple[Endpoint, Endpoint]]]]:
    """Return what of a link an event changes as one: the link, or each direction that the event names.

    Each is its name, and sender and receiver of its directions.
    """
    directions = event.directions(link)
    if not event.is_one_way:
        return [(fabric.link_name(link), directions)]
    return [(fabric.direction_name(*each), [each]) for each in directions]


def _check_operations(fabric: FabricSpec, options: FabricOptions) -> None:
    for index, event in enumerate(options.events):
        if not event.is_operation:
            continue
        if event.link is not None:
            require_link(fabric, event.link, f"events[{index}].link")
            for link in LinkChoice.parse(event.link).links_of(fabric):
                _require_no_circuit(fabric, link, f"events[{index}].link")
            continue
        with translated((TopologyError, SettingError), KeyProblem, f"events[{index}].{event.names}"):
            event.element(fabric)


def _check_storms(fabric: FabricSpec, options: FabricOptions) -> None:
    for index, event in enumerate(options.events):
        if not event.is_storm:
            continue
        if options.clock == "real":
            raise EnvironmentLacksError(
                "under the real clock a host is a process, which takes no command to break its NIC; valid: clock: "
                "virtual",
                place=f"events[{index}].state",
            )
        _links_of_host(fabric, event.host or "", f"events[{index}].host")


def events_in_order(events: Sequence[EventSection]) -> list[EventSection]:
    """Return events in order of their times, first those from the start."""
    return sorted(events, key=lambda event: -1 if event.at is None else event.at)


def links_of_event(fabric: FabricSpec, options: FabricOptions, event: EventSection, place: str) -> list[FabricLink]:
    """Return the links that an event names, or all links of its plane or host. Raises as `check_events`."""
    key = f"{place}.{event.names}"
    if event.link is not None:
        links = _links(fabric, event.link, key)
    elif event.plane is not None:
        links = _links_of_plane(fabric, event.plane, key)
    else:
        links = _links_of_host(fabric, event.host or "", key)
    for link in links:
        _require_mortal(fabric, options, link, key)
    return links


def _links(fabric: FabricSpec, name: str, key: str) -> list[FabricLink]:
    choice = LinkChoice.parse(name)
    if not choice.is_pattern:
        _require_neighbours(fabric, choice.sender, choice.receiver, key)
    require_link(fabric, name, key)
    return choice.links_of(fabric)


def _links_of_host(fabric: FabricSpec, host: str, key: str) -> list[FabricLink]:
    hosts = [each.name for each in fabric.hosts]
    if host not in hosts:
        raise KeyProblem(key, f"no host '{host}'; {did_you_mean(host, hosts)}")
    return [link for link in fabric.links if link.a.node == host]


def _links_of_plane(fabric: FabricSpec, plane: int, key: str) -> list[FabricLink]:
    if plane >= fabric.planes:
        raise KeyProblem(key, f"no plane {plane}", valid=f"0 to {fabric.planes - 1}")
    return [link for link in fabric.links if fabric.switch(link.b.node).plane == plane]


def checked_link(fabric: FabricSpec, options: FabricOptions, a: str, b: str, place: str) -> FabricLink:
    """Return the one link between two nodes, or two of their ports. Raises as `check_events`."""
    _require_neighbours(fabric, a, b, place)
    with translated(TopologyError, KeyProblem, place):
        link = fabric.link_between(a, b)
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
    """Check that the clock can bring a link down. Raises as `check_events`."""
    if options.target == "bmv2":
        raise EnvironmentLacksError("links of BMv2 do not fail; valid: target: embedded", place=place)
    _require_no_circuit(fabric, link, place)
    between_switches = not fabric.switch(link.b.node).port(link.b.port).peer_is_host
    if options.clock == "real" and options.links == "internal" and between_switches:
        raise KeyProblem(
            place,
            f"{fabric.link_name(link)} is within the engine (links: internal), where the real clock cannot bring it "
            "down; valid: links: veth, or clock: virtual",
        )


def _require_no_circuit(fabric: FabricSpec, link: FabricLink, place: str) -> None:
    if fabric.switch(link.b.node).port(link.b.port).circuit is not None:
        raise KeyProblem(
            place,
            f"{fabric.link_name(link)} is a circuit, which goes and comes with `circuits` alone",
            valid="other links",
        )


def require_link(fabric: FabricSpec, name: str, key: str) -> None:
    """Check that the fabric has a link of that name. Raises KeyProblem."""
    if LinkChoice.parse(name).links_of(fabric):
        return
    links = [fabric.link_name(link) for link in fabric.links]
    examples = ", ".join(links[:_EXAMPLES]) + (f", … {links[-1]}" if len(links) > _EXAMPLES else "")
    raise KeyProblem(key, f"the fabric has no link '{name}'", valid=examples)


def check_outages(options: FabricOptions) -> None:
    """Check that the management network can be down. Raises KeyProblem."""
    if not options.control.outages:
        return
    if options.clock == "real":
        raise KeyProblem(
            "control.outages", "are for the virtual clock, whose controller has a network of its own", valid="[]"
        )
    if options.health is not None:
        raise KeyProblem("control.outages", "do not go with health, which reads ports past that network", valid="[]")
