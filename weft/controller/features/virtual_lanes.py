"""Virtual lanes: the classes that a routing's lanes are, and how packets change from one to another."""

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
"""By the class in which hosts send: the class of each lane. Later lanes are nearer to the destination."""
PORT_BITS = (1 << 9) - 1


def lane_classes(sent_in: int, lanes: VirtualLanes) -> tuple[int, ...]:
    """Return the class of each lane, for packets that hosts send in a class: its own alone if it has too few."""
    classes = CLASSES_OF_LANES.get(sent_in, ())
    return classes[: lanes.count] if len(classes) >= lanes.count else (sent_in,)


def class_of_dscp(lanes: VirtualLanes, data: Iterable[int] = (DATA_CLASS,)) -> dict[int, int]:
    """Return the classes that switches give to packets by their DSCP, of these classes of data and of routes' lanes.

    Packets of any other DSCP are in class 0.
    """
    return class_by_dscp(data) | {DSCP_OF_CLASS[number]: number for number in _later_lanes(lanes)}


def require_classes_apart(lanes: VirtualLanes, data: Iterable[int]) -> None:
    """Check that no class of data is a lane in which routes put another one. Raises SettingError."""
    if lanes.count == 1:
        return
    taken = _later_lanes(lanes)
    for number in sorted(taken & set(data)):
        valid = ", ".join(str(each) for each in DATA_CLASSES if each not in taken)
        raise SettingError(
            f"class {number} is one of the {lanes.count} lanes that routes need (valid with these routes: {valid})"
        )


def require_lanes(lanes: VirtualLanes, lossless: LosslessSettings) -> None:
    """Check that the lanes of all lossless classes lose nothing either, and that there are enough.

    Raises:
        SettingError: says which class lacks what.

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
    """Return the classes of the lanes, for each class of hosts that has enough."""
    return (lane_classes(each, lanes) for each in CLASSES_OF_LANES if len(lane_classes(each, lanes)) > 1)


def _later_lanes(lanes: VirtualLanes) -> set[int]:
    """Return the classes in which routes put what hosts send in others; any more may carry data of their own."""
    return {number for classes in _moved(lanes) for number in classes[1:]}


def lane_entities(switch: SwitchSpec, lanes: VirtualLanes) -> list[Entity]:
    """Return a switch's entries; none where there is one lane."""
    if lanes.count == 1:
        return []
    entities: list[Entity] = []
    for classes in _moved(lanes):
        for number in classes[1:]:
            for table in ("class_map", "class_map_ipv6"):
                entities.append(
                    entry(table, {"dscp": DSCP_OF_CLASS[number]}, "set_class", **{"class": number})
                )
        rules = lanes.rules.get(switch.name, ())
        for place, rule in enumerate(rules):
            # The first that matches decides, and the highest priority wins.
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
    """Return what moves hosts' packets to the layers that routes give to their destinations."""
    if not switch.host_ports:
        return []
    entities: list[Entity] = [
        entry("host_ports", {"port": port.number}, "from_host") for port in switch.host_ports
    ]
    for classes in _moved(lanes):
        for layer in range(1, lanes.count):
            match = {"layer": layer, "class": classes[0]}
            entities.append(entry("layer_lane", match, "set_virtual_lane", **_lane(classes[layer])))
    return entities


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    kind = ROUTING_KINDS.named(settings.routing)
    lanes = [kind.lanes(fabric, plane) for plane in range(fabric.planes)]
    for each in lanes:
        require_lanes(each, settings.of(LosslessSettings))
        require_classes_apart(each, settings.of(TrafficClassSettings).data)
    return lambda switch: lane_entities(switch, lanes[switch.plane])


KIND = Feature(
    name="virtual lanes",
    summary="The lanes in which lossless packets go on, by ports and by destination.",
    tables=("host_ports", "layer_lane", "virtual_lane"),
    entities=_entities,
)
