"""Tables, parse states, arrays and the whole program."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.compiler.ir.expressions import Const, Expr, FieldRef, bit_width
from weft.compiler.ir.statements import Stmt
from weft.compiler.source import Span
from weft.compiler.types import Type, VarbitType


@dataclass(slots=True)
class HeaderType:
    """`fields`: (name, type); `max_length_bytes` for a header with a varbit."""

    name: str
    fields: list[tuple[str, Type]]

    @property
    def max_length_bytes(self) -> int | None:
        """Greatest length, for a header with a varbit field."""
        if not any(isinstance(type_, VarbitType) for _, type_ in self.fields):
            return None
        return (sum(bit_width(type_) for _, type_ in self.fields) + 7) // 8


@dataclass(slots=True)
class HeaderInstance:
    """A header or metadata instance."""

    name: str
    type_name: str
    metadata: bool


@dataclass(slots=True)
class StackInstance:
    """A header stack (or union stack): the names of its elements."""

    name: str
    type_name: str
    elements: list[str]


@dataclass(slots=True)
class UnionInstance:
    """A header union: the names of its members' header instances."""

    name: str
    type_name: str
    members: list[str]


@dataclass(slots=True)
class ActionParameter:
    """Action data."""

    name: str
    type: Type
    width: int


@dataclass(slots=True)
class Action:
    """An action; `name` is the control plane's."""

    name: str
    parameters: list[ActionParameter]
    body: list[Stmt]
    span: Span | None = None
    hidden: bool = False


@dataclass(slots=True)
class KeyField:
    """A key: `target` is a FieldRef or Valid, `mask` a static mask."""

    match_kind: str
    target: Expr
    mask: int | None
    name: str
    width: int


@dataclass(slots=True)
class Entry:
    """An entry; `keys` holds per key None (any), an int, ("mask", value, mask) or ("range", low, high).

    The smallest `priority` wins, as in BMv2; the largest `control_priority` wins, as in P4Runtime.
    """

    keys: list[object]
    action: Action
    arguments: list[Const]
    priority: int
    control_priority: int
    is_const: bool
    span: Span | None


@dataclass(slots=True)
class ActionProfile:
    """An action profile or selector; `selector_input` is filled by the tables that use it."""

    name: str
    size: int
    algorithm: str | None
    selector_input: list[Expr] | None
    span: Span | None


@dataclass(slots=True)
class Table:
    """A table of a pipeline."""

    name: str
    keys: list[KeyField]
    actions: list[Action]
    default_action: Action | None
    default_arguments: list[Const]
    default_is_const: bool
    size: int
    span: Span | None
    entries: list[Entry] | None = None
    entries_const: bool = False
    profile: ActionProfile | None = None
    with_counters: bool = False
    support_timeout: bool = False
    direct_meter: str | None = None
    hidden: bool = False


@dataclass(slots=True)
class KeysetMatch:
    """One select case: value and mask over the concatenated, byte-padded keys, or a value set, or default."""

    value: int | None
    mask: int | None
    value_set: str | None
    next_state: str | None
    span: Span | None = None


@dataclass(slots=True)
class ParseState:
    """A state: operations, then a transition by `keys`."""

    name: str
    operations: list[Stmt]
    keys: list[Expr]
    matches: list[KeysetMatch]
    span: Span | None = None


@dataclass(slots=True)
class ValueSet:
    """A parser value set."""

    name: str
    width: int
    size: int


@dataclass(slots=True)
class Counter:
    """A counter array, direct when bound to a table."""

    name: str
    size: int | None
    table: str | None
    span: Span | None


@dataclass(slots=True)
class Meter:
    """A meter array; `unit` is packets or bytes."""

    name: str
    unit: str
    size: int | None
    table: str | None
    result: FieldRef | None
    span: Span | None


@dataclass(slots=True)
class Register:
    """A register array."""

    name: str
    size: int
    width: int
    span: Span | None


@dataclass(slots=True)
class Calculation:
    """Input of a checksum or hash; `payload` appends the packet's payload."""

    name: str
    algorithm: str
    inputs: list[Expr]
    payload: bool
    span: Span | None


@dataclass(slots=True)
class Checksum:
    """A checksum to verify or update."""

    name: str
    target: FieldRef
    calculation: str
    verify: bool
    condition: Expr
    span: Span | None


@dataclass(slots=True)
class FieldList:
    """A list of fields: preserved by clones, or learned by digests."""

    id: int
    name: str
    elements: list[Expr]
    span: Span | None


@dataclass(slots=True)
class Pipeline:
    """Ingress or egress."""

    name: str
    body: list[Stmt]
    span: Span | None
    tables: list[Table] = field(default_factory=list)
    profiles: list[ActionProfile] = field(default_factory=list)


@dataclass(slots=True)
class LoweredProgram:
    """Everything the JSON holds."""

    source_name: str
    header_types: dict[str, HeaderType] = field(default_factory=dict)
    headers: list[HeaderInstance] = field(default_factory=list)
    stacks: list[StackInstance] = field(default_factory=list)
    union_types: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    unions: list[UnionInstance] = field(default_factory=list)
    union_stacks: list[StackInstance] = field(default_factory=list)
    scalars: list[tuple[str, Type]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    aliases: list[tuple[str, str, str]] = field(default_factory=list)
    states: list[ParseState] = field(default_factory=list)
    value_sets: list[ValueSet] = field(default_factory=list)
    deparser_order: list[str] = field(default_factory=list)
    deparser_operations: list[Stmt] = field(default_factory=list)
    deparser_span: Span | None = None
    actions: list[Action] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    meters: list[Meter] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    learn_lists: list[FieldList] = field(default_factory=list)
