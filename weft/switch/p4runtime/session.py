"""The entities of one loaded pipeline: dispatches updates and reads by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from finsy.proto import p4r

from weft.switch.backend import BackendError, SwitchBackend
from weft.switch.p4runtime.counters import Counters
from weft.switch.p4runtime.digests import Digests
from weft.switch.p4runtime.direct import DirectResources
from weft.switch.p4runtime.errors import UNIMPLEMENTED, RequestError, backend_code, choices, invalid
from weft.switch.p4runtime.meters import Meters
from weft.switch.p4runtime.pipeline import Pipeline
from weft.switch.p4runtime.plain_inserts import PlainInserts
from weft.switch.p4runtime.profiles import Profiles
from weft.switch.p4runtime.reach import Reach
from weft.switch.p4runtime.registers import Registers
from weft.switch.p4runtime.replication import Replication
from weft.switch.p4runtime.tables import Tables
from weft.switch.p4runtime.translation import Ports
from weft.switch.p4runtime.value_sets import ValueSets

_CELLS = ("counter_entry", "meter_entry", "register_entry")
_UPDATE_TYPES = (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE)


class Session:
    """A pipeline that `backend` has loaded, and the controllers' writes to it."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend, ports: Ports) -> None:
        self.pipeline = pipeline
        self.backend = backend
        self.reach = Reach(pipeline)
        self.digests = Digests(pipeline)
        profiles = Profiles(pipeline, backend, ports)
        self.tables = Tables(pipeline, backend, profiles)
        self.plain_inserts = PlainInserts.of(pipeline, backend, self.tables)
        direct = DirectResources(pipeline, backend, self.tables)
        counters, self.meters = Counters(pipeline, backend), Meters(pipeline, backend)
        self.registers, value_sets = Registers(pipeline, backend), ValueSets(pipeline, backend)
        replication = Replication(backend, ports.cpu_port, pipeline.translations.of_ports())
        self._writers: dict[str, Callable[[int, Any], None]] = {
            "table_entry": self.tables.write,
            "action_profile_member": profiles.write_member,
            "action_profile_group": profiles.write_group,
            "counter_entry": counters.write,
            "direct_counter_entry": direct.write_counter,
            "meter_entry": self.meters.write,
            "direct_meter_entry": direct.write_meter,
            "register_entry": self.registers.write,
            "packet_replication_engine_entry": replication.write,
            "value_set_entry": value_sets.write,
            "digest_entry": self.digests.write,
        }
        self._readers: dict[str, Callable[[Any], Iterator[Any]]] = {
            "table_entry": self.tables.read,
            "action_profile_member": profiles.read_members,
            "action_profile_group": profiles.read_groups,
            "counter_entry": counters.read,
            "direct_counter_entry": direct.read_counters,
            "meter_entry": self.meters.read,
            "direct_meter_entry": direct.read_meters,
            "register_entry": self.registers.read,
            "packet_replication_engine_entry": replication.read,
            "value_set_entry": value_sets.read,
            "digest_entry": self.digests.read,
        }

    def write(self, update: p4r.Update) -> None:
        """Apply one update. Raises RequestError if it is refused."""
        if update.type not in _UPDATE_TYPES:
            raise invalid(f"update type {update.type} is unknown", valid="INSERT, MODIFY, DELETE")
        kind = self._kind(update.entity)
        try:
            self._writers[kind](update.type, getattr(update.entity, kind))
        except BackendError as error:
            raise RequestError(backend_code(error), error) from error

    def read(self, query: p4r.Entity) -> Iterator[p4r.Entity]:
        """Return the entities that `query` selects. Raises RequestError if it is refused, now or during iteration.

        If `is_of_cells`, the values are copied now.
        """
        kind = self._kind(query)
        try:
            found = self._readers[kind](getattr(query, kind))
        except BackendError as error:
            raise RequestError(backend_code(error), error) from error
        return _entities(kind, found)

    def is_of_cells(self, query: p4r.Entity) -> bool:
        """Return whether a query is about arrays, which may have many cells."""
        return query.WhichOneof("entity") in _CELLS

    def _kind(self, entity: p4r.Entity) -> str:
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid("no entity is set", valid=choices(self._writers, limit=20))
        if kind not in self._writers:
            raise RequestError(UNIMPLEMENTED, f"{kind} is not supported", valid=choices(self._writers, limit=20))
        return kind


def _entities(kind: str, found: Iterator[Any]) -> Iterator[p4r.Entity]:
    try:
        for each in found:
            yield p4r.Entity(**{kind: each})
    except BackendError as error:
        raise RequestError(backend_code(error), error) from error
