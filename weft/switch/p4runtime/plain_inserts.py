"""Inserts that a device applies in bulk: entries with only match, priority and a direct action.

Most updates of a fabric's controller are of this kind, and many are the same on many switches. A match, an action and a
whole update are decoded and checked once for all devices that run a pipeline; other devices find the prepared objects
by their bytes. Other updates, and any that the backend refuses, take the ordinary path, which reports the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy.proto import p4r
from google.protobuf.message import DecodeError

from weft.switch.backend import BackendError, PreparesInserts, SwitchBackend
from weft.switch.p4runtime.encoded_messages import EncodedUpdate
from weft.switch.p4runtime.errors import RequestError
from weft.switch.p4runtime.pipeline import BoundTable, Pipeline
from weft.switch.p4runtime.tables import Tables

_MOST_KEPT = 1 << 16
"""Most cached updates, keys or actions of a pipeline; entries of a single switch need not be kept."""
_LAST_PLAIN_FIELD = p4r.TableEntry.DESCRIPTOR.fields_by_name["priority"].number
"""Table, match, action and priority are the first fields of a TableEntry."""


@dataclass
class PreparedInserts:
    """Objects that a kind of backend has prepared for a pipeline, by their serialised bytes."""

    entries: dict[bytes, tuple[object, object]] = field(default_factory=dict)
    keys: dict[tuple[int | bytes, ...], object] = field(default_factory=dict)
    actions: dict[tuple[int, bytes], object] = field(default_factory=dict)


class PlainInserts:
    """The inserts of one device; prepared objects belong to the pipeline."""

    def __init__(self, pipeline: Pipeline, backend: PreparesInserts, tables: Tables, prepared: PreparedInserts) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._tables = tables
        self._prepared = prepared

    @classmethod
    def of(cls, pipeline: Pipeline, backend: SwitchBackend, tables: Tables) -> PlainInserts | None:
        """Return a device's inserts; None if its backend inserts entries one by one."""
        if not isinstance(backend, PreparesInserts):
            return None
        prepared = pipeline.prepared_inserts.setdefault(type(backend), PreparedInserts())
        assert isinstance(prepared, PreparedInserts)
        return cls(pipeline, backend, tables, prepared)

    def prepare_all(self, encoded: Sequence[bytes]) -> list[object | None]:
        """Return each update prepared for `insert`; None if it must take the ordinary path."""
        prepared: list[object | None] = list(map(self._prepared.entries.get, encoded))
        if None in prepared:
            for number, found in enumerate(prepared):
                if found is None:
                    prepared[number] = self._prepare(encoded[number])
        return prepared

    def insert(self, prepared: Sequence[object | None]) -> int:
        """Insert in order; return how many were inserted before one that the backend refused."""
        return self._backend.insert_prepared(prepared)

    def _prepare(self, encoded: bytes) -> tuple[object, object] | None:
        try:
            update = EncodedUpdate.FromString(encoded)
            # Non-canonical bytes may have another meaning when parsed as a whole.
            if update.type != p4r.Update.INSERT or update.ByteSize() != len(encoded):
                return None
            entry = update.entity.table_entry
            table = self._pipeline.tables.get(entry.table_id)
            if table is None or not self._tables.takes_plain_inserts(table) or not entry.action:
                return None
            # Idle timeouts, metadata, meters and the like need the ordinary way.
            if entry.ListFields()[-1][0].number > _LAST_PLAIN_FIELD or len(update.entity.ListFields()) > 1:
                return None
            action = self._action(table, entry.action)
            prepared = None if action is None else (self._key(table, entry), action)
        except (RequestError, BackendError, DecodeError):
            return None
        if prepared is not None:
            _keep(self._prepared.entries, encoded, prepared)
        return prepared

    def _key(self, table: BoundTable, entry: Any) -> object:
        matches = entry.match
        place = (table.id, entry.priority, *matches)
        found = self._prepared.keys.get(place)
        if found is None:
            decoded = [p4r.FieldMatch.FromString(match) for match in matches]
            key = self._tables.decode_key(table, decoded, entry.priority)
            found = self._backend.prepare_key(table.name, key, entry.priority)
            _keep(self._prepared.keys, place, found)
        return found

    def _action(self, table: BoundTable, encoded: bytes) -> object | None:
        found = self._prepared.actions.get((table.id, encoded))
        if found is None:
            action = self._tables.decode_own_action(table, p4r.TableAction.FromString(encoded))
            if action is None:
                return None
            found = self._backend.prepare_action(table.name, action)
            _keep(self._prepared.actions, (table.id, encoded), found)
        return found


def _keep(kept: dict[Any, Any], key: object, prepared: object) -> None:
    if len(kept) >= _MOST_KEPT:
        # All at once: entries that many switches have come again soon, and a list of the least used would cost each
        # look-up.
        kept.clear()
    kept[key] = prepared
