"""Finds the program's pipelines that read the state changed by an update.

A packet waits in a queue between ingress and egress, so a batch is atomic for every packet only if a single
pipeline reads all state that it changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property

from finsy.proto import p4r

from weft.switch.bmv2json import Program
from weft.switch.bmv2json.expressions import CounterArrayRef, MeterArrayRef, RegisterArrayRef, RegisterRef
from weft.switch.p4runtime.pipeline import Pipeline

INGRESS, EGRESS = "ingress", "egress"
_EVERYWHERE = frozenset((INGRESS, EGRESS))
_ARRAY_REFS = (CounterArrayRef, MeterArrayRef, RegisterArrayRef, RegisterRef)


class Reach:
    """The pipelines that use the entities of one forwarding pipeline config."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def of(self, entity: p4r.Entity) -> frozenset[str]:
        """Return names of pipelines; all for an unknown entity, as its update will be refused anyway."""
        kind = entity.WhichOneof("entity")
        match kind:
            case "table_entry":
                return self._of_table(entity.table_entry.table_id)
            case "direct_counter_entry" | "direct_meter_entry":
                return self._of_table(getattr(entity, kind).table_entry.table_id)
            case "action_profile_member" | "action_profile_group":
                profile = self._pipeline.profiles.get(getattr(entity, kind).action_profile_id)
                users = () if profile is None else profile.info.table_ids
                return frozenset[str]().union(*(self._of_table(number) for number in users))
            case "counter_entry":
                return self._of_array(self._pipeline.counters.get(entity.counter_entry.counter_id))
            case "meter_entry":
                return self._of_array(self._pipeline.meters.get(entity.meter_entry.meter_id))
            case "register_entry":
                return self._of_array(self._pipeline.registers.get(entity.register_entry.register_id))
            case "value_set_entry":
                return frozenset((INGRESS,))  # the parser runs with it
            case "packet_replication_engine_entry":
                # multicast follows ingress; clones are made after both
                is_group = entity.packet_replication_engine_entry.HasField("multicast_group_entry")
                return frozenset((INGRESS,)) if is_group else _EVERYWHERE
            case "digest_entry":
                return frozenset()  # no packet sees it
        return _EVERYWHERE

    def _of_table(self, number: int) -> frozenset[str]:
        table = self._pipeline.tables.get(number)
        if table is None:
            return _EVERYWHERE
        pipelines = self._pipeline.program.pipelines.values()
        return frozenset(each.name for each in pipelines if table.name in each.nodes)

    def _of_array(self, info: object) -> frozenset[str]:
        name = getattr(getattr(info, "preamble", None), "name", None)
        return self._array_users.get(name, frozenset()) if isinstance(name, str) else _EVERYWHERE

    @cached_property
    def _array_users(self) -> dict[str, frozenset[str]]:
        users: dict[str, set[str]] = {}
        for pipeline, name in _array_references(self._pipeline.program):
            users.setdefault(name, set()).add(pipeline)
        return {name: frozenset(pipelines) for name, pipelines in users.items()}


def _array_references(program: Program) -> Iterator[tuple[str, str]]:
    """Yield (pipeline, array) for every array used in a pipeline."""
    for pipeline in program.pipelines.values():
        for node in pipeline.nodes.values():
            for part in _parts(node):
                if isinstance(part, _ARRAY_REFS):
                    yield pipeline.name, part.array if isinstance(part, RegisterRef) else part.name


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, tuple):
        for item in value:
            yield from _parts(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _parts(getattr(value, field.name))
