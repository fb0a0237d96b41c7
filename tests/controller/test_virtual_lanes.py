"""What switches hold of a routing's lanes: nothing for one lane; classes, rules and layers for several."""

from __future__ import annotations

from dataclasses import replace

import finsy
import pytest

from tests.topologies.test_builder import torus
from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.controller.features import FEATURES, Settings
from weft.controller.features.identity import TrafficClassSettings, class_by_dscp, class_entities
from weft.controller.features.virtual_lanes import (
    CLASSES_OF_LANES,
    DSCP_OF_CLASS,
    class_of_dscp,
    lane_entities,
)
from weft.controller.lossless import LosslessSettings
from weft.controller.plan import FabricState, desired_entities
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.lanes import MOST_LANES, ONE_LANE, LaneRule, VirtualLanes

FABRIC = torus((4,))
SWITCH = FABRIC.switches[1]
TABLES = FEATURES["virtual lanes"].tables


def of_table(entities: list[Entity], table: str) -> list[finsy.P4TableEntry]:
    return [each for each in entities if isinstance(each, finsy.P4TableEntry) and each.table_id == table]


def match_of(entry: finsy.P4TableEntry) -> dict[str, object]:
    return dict(entry.match or {})


def arguments_of(entry: finsy.P4TableEntry) -> dict[str, object]:
    assert isinstance(entry.action, finsy.P4TableAction)
    return dict(entry.action.args)


def test_one_lane_needs_nothing() -> None:
    assert lane_entities(SWITCH, ONE_LANE) == []
    planned = desired_entities(FABRIC, Settings(), FabricState())
    assert not any(of_table(entities, table) for entities in planned.values() for table in TABLES)


@pytest.mark.parametrize("count", [1, 2, 3, MOST_LANES])
def test_ports_classify_frames_as_the_program_does(count: int) -> None:
    lanes = VirtualLanes(count)
    entities = [*class_entities(), *lane_entities(SWITCH, lanes)]
    for table in ("class_map", "class_map_ipv6"):
        installed = {match_of(each)["dscp"]: arguments_of(each)["class"] for each in of_table(entities, table)}
        assert installed == class_of_dscp(lanes)
    assert set(class_by_dscp().items()) <= set(class_of_dscp(lanes).items())
    assert len(set(class_of_dscp(lanes).values())) == len(class_of_dscp(lanes))


def test_the_first_rule_has_the_highest_priority() -> None:
    rules = (LaneRule(0, 1, ingress_port=2, egress_port=3), LaneRule(0, 0, egress_port=3), LaneRule(1, 0))
    entries = of_table(lane_entities(SWITCH, VirtualLanes(2, {SWITCH.name: rules})), "virtual_lane")
    found = {
        (match["class"], match.get("ingress_port"), match.get("egress_port")): (
            entry.priority,
            arguments_of(entry),
        )
        for entry in entries
        for match in [match_of(entry)]
    }
    # Data is in the classes 3 and 4, acknowledgements in 6 and 7.
    for first, second in ((3, 4), (6, 7)):
        assert found[first, (2, 511), (3, 511)] == (3, {"class": second, "dscp": DSCP_OF_CLASS[second]})
        assert found[first, None, (3, 511)] == (2, {"class": first, "dscp": DSCP_OF_CLASS[first]})
        assert found[second, None, None] == (1, {"class": first, "dscp": DSCP_OF_CLASS[first]})
    assert len(found) == len(entries) == 6


def test_a_class_of_its_dscp_comes_back_at_the_next_switch() -> None:
    entities = lane_entities(SWITCH, VirtualLanes(2))
    for table in ("class_map", "class_map_ipv6"):
        classes = {match_of(each)["dscp"]: arguments_of(each)["class"] for each in of_table(entities, table)}
        assert classes == {DSCP_OF_CLASS[4]: 4, DSCP_OF_CLASS[7]: 7}


def test_layers_are_of_packets_from_hosts() -> None:
    entities = lane_entities(SWITCH, VirtualLanes(2, has_layers=True))
    assert [match_of(each) for each in of_table(entities, "host_ports")] == [
        {"port": port.number} for port in SWITCH.host_ports
    ]
    assert [match_of(each) for each in of_table(entities, "layer_lane")] == [
        {"layer": 1, "class": 3},
        {"layer": 1, "class": 6},
    ]


def test_data_has_as_many_lanes_as_routes_may_use() -> None:
    assert {len(classes) for classes in CLASSES_OF_LANES.values()} == {MOST_LANES, 2}


def test_three_lanes_are_of_data_alone() -> None:
    rules = {SWITCH.name: (LaneRule(1, 2),)}
    entries = of_table(lane_entities(SWITCH, VirtualLanes(3, rules)), "virtual_lane")
    assert [(match_of(each), arguments_of(each)["class"]) for each in entries] == [({"class": 4}, 5)]


def test_every_lane_marks_as_its_class_does(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = replace(ROUTING_KINDS["shortest_paths"], lanes=lambda *_: VirtualLanes(2))
    monkeypatch.setitem(ROUTING_KINDS._kinds, kind.name, kind)
    entries = of_table(desired_entities(FABRIC, Settings(), FabricState())[SWITCH.name], "ecn_thresholds")
    by_class: dict[object, list[dict[str, object]]] = {}
    for each in entries:
        by_class.setdefault(match_of(each)["class"], []).append(arguments_of(each))
    assert by_class.keys() == {3, 4}
    assert by_class[3] == by_class[4]


def test_lossless_classes_without_all_lanes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = replace(ROUTING_KINDS["shortest_paths"], lanes=lambda *_: VirtualLanes(2))
    monkeypatch.setitem(ROUTING_KINDS._kinds, kind.name, kind)
    # Classes 5 and 1 would be lanes of routes that need more.
    for classes, words in (
        ((3,), "add 4"),
        ((0, 3, 4), "class 0 has 1 of the 2 lanes"),
        ((3, 4, 5), r"class 5 has 1 of the 2 lanes .*valid with these routes: 3, 4, 6, 7"),
        ((1, 3, 4), "class 1 has 1 of the 2 lanes"),
    ):
        for data in ((3,), (3, 5)):
            features = (LosslessSettings(classes), TrafficClassSettings(data))
            with pytest.raises(SettingError, match=words):
                desired_entities(FABRIC, Settings(features=features), FabricState())
    assert desired_entities(FABRIC, Settings(features=(LosslessSettings((3, 4)),)), FabricState())
