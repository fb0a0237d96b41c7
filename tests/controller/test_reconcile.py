"""Updates from any plan to any other: applied in order they are always valid and end in the second plan."""

from __future__ import annotations

from finsy.p4entity import encode_entities
from hypothesis import given, settings
from hypothesis import strategies as st
from p4info_fixture import fabric_p4info
from p4runtime_double import Device, P4RuntimeDouble

from weft.controller.failures import NO_FAILURES
from weft.controller.features import Settings
from weft.controller.features.ecn import EcnProfile, EcnSettings
from weft.controller.features.telemetry_int import IntSettings
from weft.controller.jobs import JobTable
from weft.controller.pipeline import Pipeline
from weft.controller.plan import FabricState, desired_entities
from weft.controller.reconcile import EntitySet, entity_set, plan_updates
from weft.topologies import leaf_spine

FABRIC = leaf_spine(planes=1, leaves=3, spines=3, hosts_per_leaf=2)
SCHEMA = Pipeline(fabric_p4info()).schema()
LINKS = [link for link in FABRIC.links if link.a.node.startswith("p")]

states = st.tuples(
    st.lists(st.sampled_from(LINKS), max_size=4, unique=True),
    st.lists(st.sampled_from([host.name for host in FABRIC.hosts]), min_size=1, unique=True),
    st.sampled_from([None, {}, {3: EcnProfile(1000, 2000, 0.5)}]),
    st.booleans(),
)


def plan(choice: tuple[list[object], list[str], dict[int, EcnProfile] | None, bool]) -> dict[str, EntitySet]:
    broken, hosts, ecn, int_enabled = choice
    failures = NO_FAILURES
    for link in broken:
        failures = failures.with_link(link)  # type: ignore[attr-defined]
    jobs = JobTable(FABRIC, 64)
    jobs.add(3, hosts, 8)
    desired = desired_entities(
        FABRIC,
        Settings(features=(EcnSettings(ecn), IntSettings(int_enabled))),
        FabricState(failures, jobs.jobs),
    )
    return {name: entity_set(encode_entities(entities, SCHEMA)) for name, entities in desired.items()}


@given(states, states)
@settings(deadline=None, max_examples=30)
def test_any_plan_turns_into_any_other(first: object, second: object) -> None:
    before, after = plan(first), plan(second)  # type: ignore[arg-type]
    double = P4RuntimeDouble()
    for switch in FABRIC.switches:
        device = Device()
        for installed, desired in (({}, before[switch.name]), (before[switch.name], after[switch.name])):
            for update in plan_updates(installed, desired):
                assert double._write_one(device, update.message) is None, update
        assert entity_set(device.entities.values()) == after[switch.name]
        assert plan_updates(after[switch.name], after[switch.name]) == []


def test_counters_and_order_of_fields_do_not_make_a_difference() -> None:
    entities = plan(([], ["h0"], None, True))["p0l0"]
    read_back = []
    for entity in entities.values():
        copy = entity.entity
        if copy.HasField("table_entry"):
            copy.table_entry.counter_data.packet_count = 7
            fields = list(reversed(copy.table_entry.match))
            del copy.table_entry.match[:]
            copy.table_entry.match.extend(fields)
        read_back.append(copy)
    assert plan_updates(entity_set(read_back), entities) == []
