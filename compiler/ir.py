"""The lowered program: what BMv2 executes, before it is written as JSON.

Expressions are scalars (bit<W>, int<W>, bool); headers, stacks and externs are referred to by name.
Statements are structured; the emitters turn them into primitives, conditionals and parse states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler.source import Span
from compiler.types import BOOL, BitsType, Type, VarbitType

# ---------------------------------------------------------------------------------------- expressions


class Expr:
    """A scalar; every subclass has `type` (BitsType, BOOL or, for a field, VarbitType)."""

    __slots__ = ()
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return ()


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A constant; bool for BOOL."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class FieldRef(Expr):
    """A field of a header or metadata instance."""

    header: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class LastField(Expr):
    """A field of the last valid element of a header stack (parsers)."""

    stack: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class UnionLastField(Expr):
    """A field of a member of the last valid union of a stack (select keys)."""

    stack: str
    member: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class ElementField(Expr):
    """A field of stack[index] with an index known at run time; `offset` is the field's position."""

    stack: str
    index: Expr
    offset: int
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Valid(Expr):
    """Validity of a header."""

    header: str
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class UnionValid(Expr):
    """Validity of a header union."""

    union: str
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class LastIndex(Expr):
    """Index of the last valid element of a stack."""

    stack: str
    type: Type


@dataclass(frozen=True, slots=True)
class ParamRef(Expr):
    """Action data number `index`."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Lookahead(Expr):
    """`width` bits of the packet, `offset` bits ahead."""

    offset: int
    type: BitsType


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`!`, `~` or `-`."""

    operator: str
    operand: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """A P4 operator on operands of one type (shifts: any unsigned right side)."""

    operator: str
    left: Expr
    right: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Choice(Expr):
    """condition ? first : second."""

    condition: Expr
    first: Expr
    second: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.condition, self.first, self.second)


@dataclass(frozen=True, slots=True)
class Convert(Expr):
    """A cast between bit types and between bool and bit<1>."""

    operand: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.operand,)


def walk(expression: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    yield expression
    for child in expression.children():
        yield from walk(child)


# ---------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Reference:
    """A named object as a primitive's parameter: `kind` is its JSON type."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of values as a primitive's parameter (log_msg)."""

    items: tuple[Expr, ...]


Operand = Expr | Reference | Vector


class Stmt:
    """A statement; `span` is its source."""

    __slots__ = ()
    span: Span | None


@dataclass(slots=True)
class Assign(Stmt):
    """target = value; the target is a FieldRef, LastField or ElementField."""

    target: Expr
    value: Expr
    span: Span | None = None


@dataclass(slots=True)
class Primitive(Stmt):
    """A call of one of the target's primitives."""

    name: str
    operands: list[Operand]
    span: Span | None = None


@dataclass(slots=True)
class If(Stmt):
    """if (condition) then else otherwise."""

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Labeled(Stmt):
    """A body that Jump(label) leaves; the label is unique."""

    label: int
    body: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Jump(Stmt):
    """Go to the end of the Labeled statement around."""

    label: int
    span: Span | None = None


@dataclass(slots=True)
class Loop(Stmt):
    """while (condition) body, where `condition` is evaluated by `head` first; left by a Jump to a label around."""

    head: list[Stmt]
    condition: Expr
    body: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Exit(Stmt):
    """End the pipeline."""

    span: Span | None = None


@dataclass(slots=True)
class Apply(Stmt):
    """Apply a table; then `hit` or `miss`, or the branch of the action that ran (`default` for the others)."""

    table: Table
    hit: list[Stmt] | None = None
    miss: list[Stmt] | None = None
    branches: dict[str, list[Stmt]] | None = None
    default: list[Stmt] | None = None
    span: Span | None = None


@dataclass(slots=True)
class Extract(Stmt):
    """Extract a header (`kind` regular), the next of a stack, or a member of a union stack's next."""

    kind: str
    target: str
    member: str | None
    length: Expr | None
    span: Span | None = None


@dataclass(slots=True)
class Advance(Stmt):
    """Skip bits of the packet."""

    amount: Expr
    span: Span | None = None


@dataclass(slots=True)
class Verify(Stmt):
    """Raise a parser error unless the condition holds."""

    condition: Expr
    error: Expr
    span: Span | None = None


# ---------------------------------------------------------------------------------------- objects


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
    """An entry; `keys` holds per key None (any), an int, ("mask", value, mask) or ("range", low, high)."""

    keys: list[object]
    action: Action
    arguments: list[Const]
    priority: int
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


def bit_width(type_: Type) -> int:
    """Width of a scalar in the JSON: bool is 1 bit."""
    if isinstance(type_, BitsType | VarbitType):
        return type_.width
    return 1
