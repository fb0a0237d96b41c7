"""The frozen model of a BMv2 JSON program.

All names and ids in it have been resolved and checked by the loader.

Source: behavioral-model docs/JSON_format.md, format version 2.x.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from switch.bmv2json.expressions import (
    Constant,
    Expression,
    FieldRef,
    HeaderRef,
    Lookahead,
    StackField,
    StackRef,
    UnionStackField,
)
from switch.bmv2json.primitives import PrimitiveCall

PARSER_STEP_LIMIT = 4096
"""States a packet may pass through in a parser; one more is the error ParserTimeout.

Every executor keeps to it.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a header type; `width_bits` of a variable-length field is its largest width."""

    name: str
    width_bits: int
    signed: bool = False
    variable: bool = False


@dataclass(frozen=True, slots=True)
class HeaderType:
    """`fields` in wire order; `width_bits` includes the largest variable-length field."""

    name: str
    id: int
    fields: tuple[Field, ...]

    @property
    def width_bits(self) -> int:
        """Largest width of the whole header."""
        return sum(field.width_bits for field in self.fields)

    @property
    def variable_field(self) -> Field | None:
        """The variable-length field, if there is one."""
        return next((field for field in self.fields if field.variable), None)

    def field(self, name: str) -> Field:
        """The field called `name`; KeyError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Header:
    """A header instance, or a metadata instance (always valid, never on the wire)."""

    name: str
    id: int
    type: HeaderType
    metadata: bool


@dataclass(frozen=True, slots=True)
class HeaderStack:
    """`headers` are the names of the instances, from index 0."""

    name: str
    id: int
    type: HeaderType
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderUnionType:
    """`members` are pairs of member name and header type."""

    name: str
    id: int
    members: tuple[tuple[str, HeaderType], ...]

    def member_index(self, name: str) -> int:
        """Position of the member called `name`; KeyError if there is none."""
        for index, (member, _) in enumerate(self.members):
            if member == name:
                return index
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class HeaderUnion:
    """`headers` are the names of the instances, in the order of the type's members."""

    name: str
    id: int
    type: HeaderUnionType
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderUnionStack:
    """`unions` are the names of the unions, from index 0."""

    name: str
    id: int
    type: HeaderUnionType
    unions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnionStackMember:
    """The next union of a union stack, as its member `member` (target of an extraction)."""

    stack: str
    member: str


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract a header; `length_bits` is the width of its variable-length field, where it has one."""

    target: HeaderRef | StackRef | UnionStackMember
    length_bits: Expression | None = None


@dataclass(frozen=True, slots=True)
class SetField:
    """Assign in the parser; the source may be a Lookahead."""

    target: FieldRef
    source: Expression


@dataclass(frozen=True, slots=True)
class Verify:
    """Stop parsing with the error that `error` yields unless `condition` holds."""

    condition: Expression
    error: Expression


@dataclass(frozen=True, slots=True)
class Advance:
    """Skip `bits` (a multiple of 8) of the packet."""

    bits: Expression


@dataclass(frozen=True, slots=True)
class ParserPrimitive:
    """An action primitive called from a parser state."""

    call: PrimitiveCall


ParserOperation: TypeAlias = Extract | SetField | Verify | Advance | ParserPrimitive
TransitionKeyField: TypeAlias = FieldRef | StackField | UnionStackField | Lookahead


class TransitionKind(enum.Enum):
    """How a transition is selected."""

    DEFAULT = "default"
    VALUE = "hexstr"
    VALUE_SET = "parse_vset"


@dataclass(frozen=True, slots=True)
class Transition:
    """Taken if key & mask == value & mask.

    Values are the key fields, each padded to whole bytes, concatenated.

    `mask` None is all ones; `next_state` None ends the parser.
    """

    kind: TransitionKind
    next_state: str | None
    value: int = 0
    mask: int | None = None
    value_set: str | None = None


@dataclass(frozen=True, slots=True)
class ParseState:
    """Operations, then the first transition that fits.

    If none does, parsing ends without error (as in BMv2).
    """

    name: str
    id: int
    operations: tuple[ParserOperation, ...]
    transition_key: tuple[TransitionKeyField, ...]
    transitions: tuple[Transition, ...]

    @property
    def key_width_bits(self) -> int:
        """Width of the concatenated key, each field padded to whole bytes."""
        return sum((field.width_bits + 7) // 8 * 8 for field in self.transition_key)


@dataclass(frozen=True, slots=True)
class Parser:
    """`initial_state` None accepts at once."""

    name: str
    id: int
    initial_state: str | None
    states: Mapping[str, ParseState]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set; `width_bits` is that of its values without padding."""

    name: str
    id: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class Deparser:
    """`order` are header instance names; `primitives` run before anything is written."""

    name: str
    id: int
    order: tuple[str, ...]
    primitives: tuple[PrimitiveCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionParameter:
    """A parameter that a table entry supplies."""

    name: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class Action:
    """Names are not unique in a program (p4c repeats NoAction), ids are.

    Within a table names are unique, too.
    """

    name: str
    id: int
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[PrimitiveCall, ...]


class MatchKind(enum.Enum):
    """Of a table and of one of its key fields.

    P4's `optional` is `TERNARY` here, `selector` is no key field.
    """

    VALID = "valid"
    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class KeyField:
    """One field of a table's key; `name` is the control plane's name.

    `mask` is applied to the field before matching.
    """

    name: str
    kind: MatchKind
    field: FieldRef
    mask: int | None = None


class TableType(enum.Enum):
    """How a table's entries name their action."""

    SIMPLE = "simple"
    INDIRECT = "indirect"
    INDIRECT_WITH_SELECTOR = "indirect_ws"


@dataclass(frozen=True, slots=True)
class DefaultEntry:
    """The action of a miss that the program gives; `constant` if the control plane may not change it."""

    action: Action
    arguments: tuple[int, ...]
    constant: bool


@dataclass(frozen=True, slots=True)
class MatchValue:
    """One field of a constant entry, bits that do not count cleared. `second`.

    Prefix length, mask or end of range.
    """

    kind: MatchKind
    value: int
    second: int = 0


@dataclass(frozen=True, slots=True)
class ConstantEntry:
    """An entry of the program; a **lower** `priority` wins, as in BMv2."""

    key: tuple[MatchValue, ...]
    action: Action
    arguments: tuple[int, ...]
    priority: int


@dataclass(frozen=True, slots=True)
class Table:
    """`next_nodes` maps action ids to the next node (None: end of pipeline).

    `hit_next`/`miss_next` replace it if `branches_on_hit`.
    """

    name: str
    id: int
    kind: MatchKind
    type: TableType
    max_size: int
    key: tuple[KeyField, ...]
    actions: tuple[Action, ...]
    next_nodes: Mapping[int, str | None]
    branches_on_hit: bool
    hit_next: str | None
    miss_next: str | None
    base_default_next: str | None
    with_counters: bool
    supports_timeout: bool
    direct_meter: str | None
    action_profile: str | None
    default_entry: DefaultEntry | None
    constant_entries: tuple[ConstantEntry, ...]
    immutable: bool
    """True if the program lists entries, so that the control plane may not add or remove any."""

    def action(self, name: str) -> Action:
        """The action of this table called `name`; KeyError if there is none."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)

    @property
    def needs_priority(self) -> bool:
        """True where several entries may match and a priority decides."""
        return self.kind in (MatchKind.TERNARY, MatchKind.RANGE)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A branch of a pipeline."""

    name: str
    id: int
    expression: Expression
    true_next: str | None
    false_next: str | None


@dataclass(frozen=True, slots=True)
class ActionCallNode:
    """A direct call of an action without parameters."""

    name: str
    id: int
    action: Action
    next_node: str | None


PipelineNode: TypeAlias = Table | Conditional | ActionCallNode


@dataclass(frozen=True, slots=True)
class ActionProfile:
    """`selector_algorithm` and `selector_input` are set if the profile selects among members of groups."""

    name: str
    id: int
    max_size: int
    selector_algorithm: str | None
    selector_input: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`nodes` by name form an acyclic graph from `initial_node` (None: empty)."""

    name: str
    id: int
    initial_node: str | None
    nodes: Mapping[str, PipelineNode]
    action_profiles: Mapping[str, ActionProfile]

    @property
    def tables(self) -> list[Table]:
        """The tables among the nodes."""
        return [node for node in self.nodes.values() if isinstance(node, Table)]


@dataclass(frozen=True, slots=True)
class Payload:
    """In a calculation: the headers behind the last one listed, and what was not parsed."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A hash over `input`; invalid headers are skipped; a Constant has its width."""

    name: str
    id: int
    algorithm: str
    input: tuple[FieldRef | Constant | HeaderRef | Payload, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """Verified after the parser, updated before the deparser, where `condition` (None: always) holds."""

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


@dataclass(frozen=True, slots=True)
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

    @property
    def tables(self) -> dict[str, Table]:
        """All tables of all pipelines by name (names are unique over pipelines)."""
        return {table.name: table for pipeline in self.pipelines.values() for table in pipeline.tables}

    @property
    def action_profiles(self) -> dict[str, ActionProfile]:
        """All action profiles of all pipelines by name."""
        return {
            name: profile
            for pipeline in self.pipelines.values()
            for name, profile in pipeline.action_profiles.items()
        }

    def intrinsic(self, name: str) -> FieldRef | None:
        """The field that plays simple_switch's `name` ("standard_metadata.egress_spec"), aliases applied."""
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
