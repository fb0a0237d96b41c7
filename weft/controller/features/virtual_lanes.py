"""Virtual lanes: maps a routing's lanes to traffic classes, and moves packets from lane to lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import finsy

from weft.controller.entities import Entity, entry
from weft.controller.errors import SettingError
from weft.controller.features.identity import TrafficClassSettings, class_by_dscp
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.lossless import LosslessSettings
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.lanes import INTERMEDIATE_LAYER, LaneRule, VirtualLanes
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS, DATA_CLASSES, DSCP_OF_CLASS
from weft.topologies import FabricSpec, SwitchSpec

CLASSES_OF_LANES = {DATA_CLASS: (DATA_CLASS, 4, 5, 2, 1), CONTROL_CLASS: (CONTROL_CLASS, 7)}
"""The class of each lane, by the class in which hosts send. Later lanes are nearer to the destination."""
PORT_BITS = (1 << 9) - 1


def lane_classes(sent_in: int, lanes: VirtualLanes) -> tuple[int, ...]:
    """Return the class of each lane for packets that hosts send in a class; only that class if it has too few lanes."""
    classes = CLASSES_OF_LANES.get(sent_in, ())
    return classes[: lanes.count] if len(classes) >= lanes.count else (sent_in,)


def class_of_dscp(lanes: VirtualLanes, data: Iterable[int] = (DATA_CLASS,)) -> dict[int, int]:
    """Return the class for each DSCP of the data classes and of the routes' lanes.

    Packets with any other DSCP are in class 0.
    """
    return class_by_dscp(data) | {DSCP_OF_CLASS[number]: number for number in _later_lanes(lanes)}


def require_classes_apart(lanes: VirtualLanes, data: Iterable[int]) -> None:
    """Check that routes do not use a data class as a lane for another class. Raises SettingError."""
    if lanes.count == 1:
        return
    taken = _later_lanes(lanes)
    for number in sorted(taken & set(data)):
        valid = ", ".join(str(each) for each in DATA_CLASSES if each not in taken)
        raise SettingError(
            f"class {number} is one of the {lanes.count} lanes that routes need (valid with these routes: {valid})"
        )


def require_lanes(lanes: VirtualLanes, lossless: LosslessSettings) -> None:
    """Check that lossless classes have enough lanes, and that all their lanes are lossless.

    Raises:
        SettingError: names the class and what it lacks.

    """
    if lanes.count == 1:
        return
    given = set(lossless.classes)
    for sent_in in sorted(given - _later_lanes(lanes)):
        classes = lane_classes(sent_in, lanes)
        if len(classes) < lanes.count:
            valid = ", ".join(map(str, sorted(number for each in _moved(lanes) for number in each)))
            raise SettingError(
                f"class {sent_in} has {len(CLASSES_OF_LANES.get(sent_in, (sent_in,)))} of the {lanes.count} lanes that "
                f"routes need (valid with these routes: {valid})"
            )
        if missing := [each for each in classes if each not in given]:
            raise SettingError(
                f"routes need {lanes.count} lanes, which are the classes {', '.join(map(str, classes))} for what hosts "
                f"send in class {sent_in}: add {', '.join(map(str, missing))}"
            )


def _moved(lanes: VirtualLanes) -> Iterator[tuple[int, ...]]:
    """Yield the classes of the lanes, for each class of hosts with enough lanes."""
    return (lane_classes(each, lanes) for each in CLASSES_OF_LANES if len(lane_classes(each, lanes)) > 1)


def _later_lanes(lanes: VirtualLanes) -> set[int]:
    """Return the classes that routes use as lanes for other classes; the remaining ones may carry data."""
    return {number for classes in _moved(lanes) for number in classes[1:]}


def lane_entities(switch: SwitchSpec, lanes: VirtualLanes) -> list[Entity]:
    """Return a switch's entries; empty if there is one lane."""
    if lanes.count == 1:
        return []
    entities: list[Entity] = []
    for classes in _moved(lanes):
        for number in classes[1:]:
            for table in ("class_map", "class_map_ipv6"):
                entities.append(entry(table, {"dscp": DSCP_OF_CLASS[number]}, "set_class", **{"class": number}))
        rules = lanes.rules.get(switch.name, ())
        for place, rule in enumerate(rules):
            # The first matching rule decides, so earlier rules get higher priorities.
            entities.append(_rule_entry(rule, classes, len(rules) - place))
        for lane, onward in lanes.after_intermediate.items():
            match = {"layer": INTERMEDIATE_LAYER, "class": classes[lane]}
            entities.append(entry("layer_lane", match, "set_virtual_lane", **_lane(classes[onward])))
    return entities + (_layer_entities(switch, lanes) if lanes.has_layers else [])


def _rule_entry(rule: LaneRule, classes: tuple[int, ...], priority: int) -> Entity:
    ports = {"ingress_port": rule.ingress_port, "egress_port": rule.egress_port}
    match = {name: (port, PORT_BITS) for name, port in ports.items() if port is not None}
    return finsy.P4TableEntry(
        "virtual_lane",
        match=finsy.P4TableMatch({"class": classes[rule.lane], **match}),
        action=finsy.P4TableAction("set_virtual_lane", **_lane(classes[rule.to])),
        priority=priority,
    )


def _lane(number: int) -> dict[str, int]:
    return {"class": number, "dscp": DSCP_OF_CLASS[number]}


def _layer_entities(switch: SwitchSpec, lanes: VirtualLanes) -> list[Entity]:
    """Return the entries that move hosts' packets to the layers of their destinations."""
    if not switch.host_ports:
        return []
    entities: list[Entity] = [entry("host_ports", {"port": port.number}, "from_host") for port in switch.host_ports]
    for classes in _moved(lanes):
        for layer in range(1, lanes.count):
            match = {"layer": layer, "class": classes[0]}
            entities.append(entry("layer_lane", match, "set_virtual_lane", **_lane(classes[layer])))
    return entities


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    kind = ROUTING_KINDS.named(settings.routing)
    lanes = kind.lanes_of_planes(fabric)
    for each in lanes:
        require_lanes(each, settings.of(LosslessSettings))
        require_classes_apart(each, settings.of(TrafficClassSettings).data)
        if settings.of(TrafficClassSettings).of_transport and each.count > 1:
            raise SettingError(
                "a transport with code points of its own does not go with routes that need lanes, which change them"
            )
    return lambda switch: lane_entities(switch, lanes[switch.plane])


KIND = Feature(
    name="virtual lanes",
    summary="Lanes in which lossless packets continue, by ports and by destination.",
    tables=("host_ports", "layer_lane", "virtual_lane"),
    entities=_entities,
)
