"""Entries that go into the tables together end as they would one by one: what is held, and what each is answered."""

from __future__ import annotations

from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st
from router_program import ACL, ACL_SIZE, DENY, ECMP, PERMIT, ROUTE, ROUTES, router_config

from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.batches import apply_batch
from weft.switch.p4runtime.pipeline import bind
from weft.switch.p4runtime.roles import FULL_ACCESS, Role
from weft.switch.p4runtime.session import Session
from weft.switch.p4runtime.translation import Ports

PORTS = Ports(510)
CONTINUE = p4r.WriteRequest.CONTINUE_ON_ERROR


def session(backend: NativeSwitch | OracleSwitch) -> Session:
    pipeline = bind(router_config().SerializeToString(), PORTS)
    backend.load(pipeline.program, pipeline.preinitialized)
    return Session(pipeline, backend, PORTS)


def route(address: int, prefix: int, port: int, table: int = ROUTES) -> p4r.Entity:
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=table))
    match = entity.table_entry.match.add(field_id=1)
    match.lpm.value, match.lpm.prefix_len = address.to_bytes(4, "big"), prefix
    action = entity.table_entry.action.action
    action.action_id = ROUTE
    action.params.add(param_id=1, value=port.to_bytes(2, "big"))
    action.params.add(param_id=2, value=b"\x07")
    return entity


def rule(value: int, action: int, priority: int) -> p4r.Entity:
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=ACL, priority=priority))
    match = entity.table_entry.match.add(field_id=1)
    match.ternary.value, match.ternary.mask = bytes((value,)), b"\xff"
    entity.table_entry.action.action.action_id = action
    return entity


def update(entity: p4r.Entity, kind: int = p4r.Update.INSERT) -> bytes:
    return p4r.Update(type=kind, entity=entity).SerializeToString()


# Addresses with bits behind the prefix, ports that do not fit, tables that are full: much of it is refused.
entities = st.one_of(
    st.builds(
        route,
        st.sampled_from([0x0A000000, 0x0A010000, 0x0A010203]),
        st.sampled_from([0, 8, 16, 32, 33]),
        st.sampled_from([1, 2, 512]),
        st.sampled_from([ROUTES, ROUTES, ROUTES, ECMP, 0x02000077]),
    ),
    st.builds(rule, st.integers(0, 2 * ACL_SIZE), st.sampled_from([PERMIT, DENY, ROUTE]), st.integers(0, 2)),
)
updates = st.one_of(
    st.builds(update, entities),
    st.builds(update, entities, st.sampled_from([0, p4r.Update.MODIFY, p4r.Update.DELETE])),
    st.binary(max_size=4),
)


def held(of: Session) -> list[bytes]:
    found = of.read(p4r.Entity(table_entry=p4r.TableEntry()))
    return sorted(entity.SerializeToString(deterministic=True) for entity in found)


def codes(outcome: list[object]) -> list[int]:
    return [getattr(error, "code", 0) for error in outcome]


@given(st.lists(st.lists(updates, max_size=12), max_size=4))
@settings(deadline=None, max_examples=60)
def test_batches_end_as_one_by_one(batches: list[list[bytes]]) -> None:
    many, same, single, oracle = (
        session(each) for each in (NativeSwitch(), NativeSwitch(), NativeSwitch(), OracleSwitch())
    )
    for batch in batches:
        expected = codes([error for one in batch for error in apply_batch(single, [one], CONTINUE, FULL_ACCESS)])
        for each in (many, same, oracle):
            assert codes(apply_batch(each, batch, CONTINUE, FULL_ACCESS)) == expected
    assert held(many) == held(same) == held(single) == held(oracle)


def test_a_full_table_refuses_the_rest_of_a_batch_and_says_why() -> None:
    batch = [update(route(number << 8, 24, 1)) for number in range(1024 + 2)]
    outcome = apply_batch(session(NativeSwitch()), batch, CONTINUE, FULL_ACCESS)
    assert outcome[:1024] == [None] * 1024
    assert all("is full (1024 entries)" in str(error) for error in outcome[1024:])


def test_what_one_device_has_decoded_another_takes_as_it_is() -> None:
    first, second = session(NativeSwitch()), session(NativeSwitch())
    batch = [update(route(0x0A000000 + (number << 8), 24, 1)) for number in range(100)]
    apply_batch(first, batch, CONTINUE, FULL_ACCESS)
    assert first.plain_inserts is not None
    assert second.plain_inserts is not None
    assert None not in second.plain_inserts.prepare_all(batch)
    assert first.plain_inserts.prepare_all(batch)[7] is second.plain_inserts.prepare_all(batch)[7]


def test_a_role_without_access_is_refused_each_entry() -> None:
    device = session(NativeSwitch())
    role = Role(exclusive=frozenset((ACL,)), full_access=False)
    outcome = apply_batch(device, [update(route(0x0A000000, 8, 1)), update(rule(1, DENY, 1))], CONTINUE, role)
    assert [error is None for error in outcome] == [False, True]


def test_bytes_in_another_order_mean_the_same() -> None:
    entry = route(0x0A000000, 8, 1)
    inner = entry.SerializeToString()
    turned = b"\x12" + bytes((len(inner),)) + inner + b"\x08\x01"  # the entity before the type
    assert p4r.Update.FromString(turned) == p4r.Update.FromString(update(entry))
    device = session(NativeSwitch())
    assert codes(apply_batch(device, [turned, update(entry)], CONTINUE, FULL_ACCESS)) == [0, 6]
