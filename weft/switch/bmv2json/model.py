"""The frozen model of a BMv2 JSON program.

All names and ids in it have been resolved and checked by the loader.

Source: behavioral-model docs/JSON_format.md, format version 2.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from weft.switch.bmv2json.expressions import Constant, Expression, FieldRef, HeaderRef
from weft.switch.bmv2json.model_headers import Header, HeaderStack, HeaderType, HeaderUnion, HeaderUnionStack
from weft.switch.bmv2json.model_parsers import Deparser, Parser, ValueSet
from weft.switch.bmv2json.model_pipelines import Action, ActionProfile, Pipeline, Table

_COUNTER_BYTES = 16
_METER_BYTES = 256


@dataclass(frozen=True, slots=True)
class Payload:
    """In a calculation: the headers after the last one listed, and the unparsed payload."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A hash over `input`; invalid headers are skipped; a Constant has its width."""

    name: str
    id: int
    algorithm: str
    input: tuple[FieldRef | Constant | HeaderRef | Payload, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """Verified after the parser, updated before the deparser, if `condition` (None: always) holds."""

    name: str
    id: int
    target: FieldRef
    calculation: str
    verify: bool
    update: bool
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class CounterArray:
    """Counts packets and bytes; `table` is set for a direct counter."""

    name: str
    id: int
    size: int
    table: str | None


@dataclass(frozen=True, slots=True)
class MeterArray:
    """`counts_bytes` or packets; `table` and `result` are set for a direct meter."""

    name: str
    id: int
    size: int
    rate_count: int
    counts_bytes: bool
    table: str | None
    result: FieldRef | None


@dataclass(frozen=True, slots=True)
class RegisterArray:
    """`size` cells of `width_bits`."""

    name: str
    id: int
    size: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class FieldList:
    """Fields preserved by clone, resubmit and recirculate, or sent in a digest."""

    name: str
    id: int
    elements: tuple[Expression, ...]


@dataclass(frozen=True)
class Program:
    """A whole program. Mappings keep the order of the document."""

    version: tuple[int, int]
    compiler: str
    content_hash: str
    """SHA-256 of the document's bytes, in hexadecimal."""
    header_types: Mapping[str, HeaderType]
    headers: Mapping[str, Header]
    header_stacks: Mapping[str, HeaderStack]
    header_unions: Mapping[str, HeaderUnion]
    header_union_stacks: Mapping[str, HeaderUnionStack]
    errors: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]
    parsers: Mapping[str, Parser]
    value_sets: Mapping[str, ValueSet]
    deparsers: Mapping[str, Deparser]
    counter_arrays: Mapping[str, CounterArray]
    meter_arrays: Mapping[str, MeterArray]
    register_arrays: Mapping[str, RegisterArray]
    actions: Mapping[int, Action]
    pipelines: Mapping[str, Pipeline]
    calculations: Mapping[str, Calculation]
    checksums: Mapping[str, Checksum]
    field_lists: Mapping[int, FieldList]
    learn_lists: Mapping[int, FieldList]
    field_aliases: Mapping[str, FieldRef]
    source: str = ""
    """The compiled file, if the compiler recorded it."""

    @cached_property
    def array_bytes(self) -> dict[str, int]:
        """Bytes that a switch needs for each register, counter and meter array."""
        sizes_bytes = {
            f"register {name!r}": array.size * max(8, (array.width_bits + 7) // 8)
            for name, array in self.register_arrays.items()
        }
        for name, counter in self.counter_arrays.items():
            sizes_bytes[f"counter {name!r}"] = _COUNTER_BYTES * (counter.size if counter.table is None else 0)
        for name, meter in self.meter_arrays.items():
            sizes_bytes[f"meter {name!r}"] = _METER_BYTES * (meter.size if meter.table is None else 0)
        return sizes_bytes

    @cached_property
    def tables(self) -> dict[str, Table]:
        """All tables of all pipelines by name (names are unique over pipelines)."""
        return {table.name: table for pipeline in self.pipelines.values() for table in pipeline.tables}

    @cached_property
    def table_numbers(self) -> dict[str, int]:
        """Numbers of the tables in the native switch. Tables with lookups come first, close together."""
        return {name: number for number, name in enumerate(sorted(self.tables, key=self._is_never_looked_up))}

    def _is_never_looked_up(self, table: str) -> bool:
        return self.tables[table].has_fixed_action

    @cached_property
    def action_profiles(self) -> dict[str, ActionProfile]:
        """All action profiles of all pipelines by name."""
        return {
            name: profile for pipeline in self.pipelines.values() for name, profile in pipeline.action_profiles.items()
        }

    @cached_property
    def actions_of_profiles(self) -> dict[str, dict[str, Action]]:
        """For each action profile that tables use, all actions of these tables by name."""
        found: dict[str, dict[str, Action]] = {}
        for table in self.tables.values():
            if table.action_profile is not None:
                of_profile = found.setdefault(table.action_profile, {})
                for action in table.actions:
                    of_profile.setdefault(action.name, action)
        return found

    def intrinsic(self, name: str) -> FieldRef | None:
        """The field for simple_switch's `name` ("standard_metadata.egress_spec"), after applying aliases."""
        if name in self.field_aliases:
            return self.field_aliases[name]
        header_name, _, field_name = name.partition(".")
        header = self.headers.get(header_name)
        if header is None:
            return None
        try:
            field = header.type.field(field_name)
        except KeyError:
            return None
        return FieldRef(header_name, field_name, field.width_bits, field.signed)
