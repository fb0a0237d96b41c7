"""Makes the steps that undo an update before it is applied (P4Runtime §12.2, ROLLBACK_ON_ERROR).

Everything that the update changes is restored, including direct resources and meters' buckets. Only the time of an
entry's last hit is reset.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from finsy.proto import p4r

from weft.switch.p4runtime.session import Session

Undo = Callable[[], None]


def inverse(session: Session, update: p4r.Update) -> list[Undo]:
    """Return the steps that restore the state which `update` will change. Raises RequestError if it is malformed."""
    if update.type == p4r.Update.INSERT:
        return [_written(session, p4r.Update.DELETE, update.entity)]
    entity = update.entity
    match entity.WhichOneof("entity"):
        case "table_entry":
            found = session.tables.existing(entity.table_entry)
            return [] if found is None else _restore_entry(session, update, found)
        case "meter_entry":
            cells = session.meters.states(entity.meter_entry)
            return [partial(session.backend.meter_restore, *cell) for cell in cells]
        case "direct_meter_entry":
            return _restore_meter(session, entity.direct_meter_entry.table_entry)
    kind = _restoring_type(update.type)
    return [_written(session, kind, found) for found in session.read(entity)]


def _written(session: Session, update_type: p4r.Update.Type.ValueType, entity: p4r.Entity) -> Undo:
    return partial(session.write, p4r.Update(type=update_type, entity=entity))


def _restoring_type(update_type: p4r.Update.Type.ValueType) -> p4r.Update.Type.ValueType:
    return p4r.Update.INSERT if update_type == p4r.Update.DELETE else update_type


def _restore_meter(session: Session, entry: p4r.TableEntry) -> list[Undo]:
    table, key, priority = session.tables.resolve(entry)
    if table.meter_type is None:
        return []
    state = session.backend.direct_meter_read(table.name, key, priority)
    return [partial(session.backend.direct_meter_restore, table.name, key, priority, state)]


def _restore_entry(session: Session, update: p4r.Update, entry: p4r.TableEntry) -> list[Undo]:
    meter = _restore_meter(session, entry)
    if update.type == p4r.Update.MODIFY and not update.entity.table_entry.HasField("counter_data"):
        entry.ClearField("counter_data")  # the update leaves it alone, and packets go on counting
    counter: list[Undo] = []
    if entry.is_const:
        entry.ClearField("action")  # only its direct resources can have changed
        entry.is_const = False
    if entry.is_default_action and not session.tables.has_written_default(entry.table_id):
        entry.ClearField("action")  # back to the program's own; that leaves the counter alone
        if entry.HasField("counter_data"):
            reference = p4r.TableEntry(table_id=entry.table_id, is_default_action=True)
            data = p4r.DirectCounterEntry(table_entry=reference, data=entry.counter_data)
            counter = [_written(session, p4r.Update.MODIFY, p4r.Entity(direct_counter_entry=data))]
    kind = _restoring_type(update.type)
    return [_written(session, kind, p4r.Entity(table_entry=entry)), *counter, *meter]
