"""The encoder that shares what is equal gives what finsy gives."""

from __future__ import annotations

import finsy
import pytest
from finsy.p4entity import encode_entities
from p4info_fixture import fabric_p4info

from weft.controller.encoding import EntityEncoder
from weft.controller.entities import Entity, entry, group_entry
from weft.controller.features import Settings
from weft.controller.features.acl import AclRule, AclSettings
from weft.controller.jobs import JobTable
from weft.controller.pipeline import Pipeline
from weft.controller.plan import FabricState, desired_entities
from weft.controller.reconcile import entity_set
from weft.topologies import FabricSpec, fat_tree, leaf_spine

FABRICS = {
    "leaf_spine": leaf_spine(planes=2, leaves=3, spines=2, hosts_per_leaf=2),
    "fat_tree": fat_tree(pods=2, hosts_per_leaf=2),
}


def plans(fabric: FabricSpec) -> dict[str, list[Entity]]:
    """Everything that the controller ever writes."""
    jobs = JobTable(fabric, 64)
    jobs.add(3, [host.name for host in fabric.hosts], 8)
    acl = (AclRule(priority=7, action="deny", protocol=17), AclRule(priority=8, action="punt", port=1))
    return desired_entities(fabric, Settings(features=(AclSettings(acl),)), FabricState(jobs=jobs.jobs))


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
def test_every_switch_s_entities_are_finsy_s(fabric: FabricSpec) -> None:
    pipeline = Pipeline(fabric_p4info())
    encoder = pipeline.encoder()
    for name, entities in plans(fabric).items():
        assert encoder.entity_set(entities) == entity_set(encode_entities(entities, pipeline.schema())), name


def test_equal_entries_of_switches_are_one_object() -> None:
    encoder = Pipeline(fabric_p4info()).encoder()
    one, other = (encoder.entity_set(plans(FABRICS["leaf_spine"])[name]) for name in ("p0l0", "p0l1"))
    shared = [key for key in one if key[0] == "table_entry" and one[key] == other.get(key)]
    assert shared
    assert all(one[key] is other[key] for key in shared)


def test_entries_that_differ_in_a_value_are_not_mixed_up() -> None:
    encoder = Pipeline(fabric_p4info()).encoder()

    def encoded(port: int, rate_code: int) -> Entity:
        made = entry(
            "int_port",
            {"port": port},
            "set_int",
            port_rate_code=rate_code,
            ns_per_time_unit=1,
            cells_per_depth_unit=1,
        )
        ((_, entity),) = encoder.entity_set([made]).items()
        (decoded,) = (finsy.P4TableEntry.decode(entity.entity, encoder.schema),)
        return decoded

    for port, rate_code in ((1, 2), (2, 1), (1, 1), (1, 2)):
        decoded = encoded(port, rate_code)
        assert int(decoded.match["port"]) == port
        assert int(decoded.action.args["port_rate_code"]) == rate_code


def test_what_only_some_entries_have_is_not_lost() -> None:
    pipeline = Pipeline(fabric_p4info())
    made = entry("arp_responder", {"target_ipv4": "10.0.0.1"}, "arp_reply", mac="02:00:00:00:00:01")
    made.controller_metadata = 5
    made.metadata = b"mine"
    for _ in range(2):
        encoded = pipeline.encoder().entity_set([made])
        assert encoded == entity_set(encode_entities([made], pipeline.schema()))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (entry("arp_responder", {"target_ipv4": 1 << 40}, "arp_reply", mac=1), "target_ipv4"),
        (entry("arp_responder", {"target_ipv4": 1}, "arp_reply", mac=1 << 60), "arp_reply"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(made: Entity, message: str) -> None:
    encoder: EntityEncoder = Pipeline(fabric_p4info()).encoder()
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            encoder.entity_set([made])


@pytest.mark.parametrize(
    ("made", "lacking"),
    [
        (entry("no_such_table", {}, "arp_reply"), "no table no_such_table"),
        (
            entry("arp_responder", {"target_ipv4": "10.0.0.1"}, "no_such_action"),
            "no action no_such_action of table arp_responder",
        ),
        (
            entry("arp_responder", {"nonsense": 1}, "arp_reply", mac=1),
            "no key nonsense of table arp_responder",
        ),
        (
            entry("arp_responder", {"target_ipv4": 1}, "arp_reply", mac=1, port=1),
            "no action arp_reply with port of table arp_responder",
        ),
        (
            entry("arp_responder", {"target_ipv4": 1}, "arp_reply"),
            "no action arp_reply with the same parameters",
        ),
        (group_entry("arp_responder", {"target_ipv4": 1}, 1), "no action selector of table arp_responder"),
        (finsy.P4ActionProfileMember("selector", member_id=1), "no action selector selector"),
    ],
)
def test_what_p4info_does_not_have_is_left_out_and_noted(made: Entity, lacking: str) -> None:
    pipeline = Pipeline(fabric_p4info())
    for _ in range(2):
        assert pipeline.encoder().entity_set([made]) == {}
    (noted,) = pipeline.left_out.values()
    assert noted.startswith(lacking)


def test_two_entities_with_the_same_key_are_refused() -> None:
    encoder = Pipeline(fabric_p4info()).encoder()
    both = [entry("arp_responder", {"target_ipv4": "10.0.0.1"}, "arp_reply", mac=mac) for mac in (1, 2)]
    with pytest.raises(ValueError, match="same key"):
        encoder.entity_set(both)
