"""Reads a switch's entries back, so that a controller can continue where another left off."""

from __future__ import annotations

from finsy.proto import p4r

from weft.controller.reconcile import EntitySet, entity_set
from weft.controller.session import SwitchSession


async def read_installed(session: SwitchSession) -> EntitySet:
    """Read all entities that controllers write.

    These are table entries, default actions, members and groups of selectors, multicast groups and clone sessions.
    Constant entries and the program's initial default actions are omitted.
    """
    constant = {table.id for table in session.schema.tables if table.is_const}
    # An entry's meter is read only on request, and requesting it from a table without meters is an error.
    metered = {table.id for table in session.schema.tables if table.direct_meter is not None}
    groups = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    sessions = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    entities = await session.read_raw(
        [
            p4r.Entity(table_entry=p4r.TableEntry()),
            p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
            p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
            p4r.Entity(packet_replication_engine_entry=groups),
            p4r.Entity(packet_replication_engine_entry=sessions),
        ]
    )
    asked = [
        p4r.Entity(table_entry=p4r.TableEntry(table_id=each, meter_config=p4r.MeterConfig()))
        for each in sorted(metered)
    ]
    with_meters = await session.read_raw(asked) if asked else []
    found = [each for each in entities if each.table_entry.table_id not in metered]
    return entity_set(
        entity
        for entity in (*found, *with_meters)
        if not (
            entity.HasField("table_entry")
            and (entity.table_entry.table_id in constant or entity.table_entry.is_default_action)
        )
    )
