"""Updates that take an update back, made before it is applied (P4Runtime §12.2, ROLLBACK_ON_ERROR).

What a Write changes is restored, direct resources included. What no Write can set starts afresh: a meter's
buckets are full, and an entry counts as just hit.
"""

from __future__ import annotations

from finsy.proto import p4r

from switch.p4runtime.session import Session


def inverse(session: Session, update: p4r.Update) -> list[p4r.Update]:
    """The updates that restore what `update` is about to change. RequestError if it is malformed."""
    if update.type == p4r.Update.INSERT:
        return [p4r.Update(type=p4r.Update.DELETE, entity=update.entity)]
    if update.entity.WhichOneof("entity") == "table_entry":
        found = session.tables.existing(update.entity.table_entry)
        return [] if found is None else _restore_entry(session, update.type, found)
    kind = _restoring_type(update.type)
    return [p4r.Update(type=kind, entity=found) for found in session.read(update.entity)]


def _restoring_type(update_type: p4r.Update.Type.ValueType) -> p4r.Update.Type.ValueType:
    return p4r.Update.INSERT if update_type == p4r.Update.DELETE else update_type


def _restore_entry(
    session: Session, update_type: p4r.Update.Type.ValueType, entry: p4r.TableEntry
) -> list[p4r.Update]:
    restored = [p4r.Update(type=_restoring_type(update_type), entity=p4r.Entity(table_entry=entry))]
    message = restored[0].entity.table_entry
    if entry.is_const:
        message.ClearField("action")  # only its direct resources can have changed
        message.is_const = False
    if entry.is_default_action and not session.tables.has_written_default(entry.table_id):
        message.ClearField("action")  # back to the program's own; that leaves the counter alone
        if entry.HasField("counter_data"):
            reference = p4r.TableEntry(table_id=entry.table_id, is_default_action=True)
            counter = p4r.DirectCounterEntry(table_entry=reference, data=entry.counter_data)
            entity = p4r.Entity(direct_counter_entry=counter)
            restored.append(p4r.Update(type=p4r.Update.MODIFY, entity=entity))
    return restored
