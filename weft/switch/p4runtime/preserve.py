"""Saves the forwarding state as updates that restore it, for RECONCILE_AND_COMMIT (P4Runtime §14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from weft.switch.p4runtime.errors import RequestError, invalid
from weft.switch.p4runtime.pipeline import Pipeline
from weft.switch.p4runtime.session import Session


def state_of(session: Session) -> list[p4r.Update]:
    """Return updates that bring a new session to this one's state, in an order that respects references."""
    return list(_updates(session))


def check_same_names(old: Pipeline, new: Pipeline) -> None:
    """Raise INVALID_ARGUMENT if an id denotes another object in the new pipeline."""
    for what in ("tables", "profiles", "counters", "meters", "registers", "digests", "value_sets"):
        before, after = getattr(old, what), getattr(new, what)
        for number in before.keys() & after.keys():
            if _name(before, number) != _name(after, number):
                raise invalid(
                    f"the state cannot be preserved: id {number:#010x} of {what.replace('_', ' ')} is"
                    f" {_name(before, number)!r} now and {_name(after, number)!r} in the new config"
                )


def _name(objects: Mapping[int, Any], number: int) -> str:
    found = objects[number]
    return str(getattr(found, "name", "") or found.preamble.name)


def restore(session: Session, old: Pipeline, updates: Iterable[p4r.Update]) -> None:
    """Write the updates of `state_of`. INVALID_ARGUMENT if the session's pipeline cannot hold some of them."""
    session.tables.delete_initial_entries(old.tables.keys())
    for update in updates:
        try:
            session.write(update)
        except RequestError as error:
            raise invalid(f"the state cannot be preserved: {error.message}") from error


def _updates(session: Session) -> Iterator[p4r.Update]:
    yield from _inserted(session, action_profile_member=p4r.ActionProfileMember())
    yield from _inserted(session, action_profile_group=p4r.ActionProfileGroup())
    replication = p4r.PacketReplicationEngineEntry
    for query in (
        replication(multicast_group_entry=p4r.MulticastGroupEntry()),
        replication(clone_session_entry=p4r.CloneSessionEntry()),
    ):
        yield from _inserted(session, packet_replication_engine_entry=query)
    everything = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    for update in _inserted(session, table_entry=everything):
        if not update.entity.table_entry.is_const:
            yield update
    for default in session.tables.written_defaults():
        yield _modified(table_entry=default)
    yield from _inserted(session, digest_entry=p4r.DigestEntry())
    yield from _cells(session)


def _cells(session: Session) -> Iterator[p4r.Update]:
    """Yield updates for cells that differ from their initial state."""
    nothing = p4r.CounterData()
    for found in session.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry())):
        if found.value_set_entry.members:
            yield _modified(value_set_entry=found.value_set_entry)
    for found in session.read(p4r.Entity(counter_entry=p4r.CounterEntry())):
        if found.counter_entry.data != nothing:
            yield _modified(counter_entry=found.counter_entry)
    for found in session.read(p4r.Entity(meter_entry=p4r.MeterEntry())):
        if found.meter_entry.HasField("config"):
            yield _modified(meter_entry=found.meter_entry)
    for register in session.registers.read_nonzero():
        yield _modified(register_entry=register)


def _inserted(session: Session, **query: Any) -> Iterator[p4r.Update]:
    for found in session.read(p4r.Entity(**query)):
        yield p4r.Update(type=p4r.Update.INSERT, entity=found)


def _modified(**entity: Any) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(**entity))
