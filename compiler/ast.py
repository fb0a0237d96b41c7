"""The syntax tree of P4_16 (specification, appendix G).

The type checker annotates it: every expression gets its `type` and, when its value is known at compile
time, `value`; a name gets its `declaration`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compiler.source import Span, Token

if TYPE_CHECKING:
    from compiler.types import Type


@dataclass(slots=True, eq=False)
class Node:
    """Anything with a place in the source."""

    span: Span


@dataclass(slots=True, eq=False)
class AnnotationElement(Node):
    """One value, maybe with its key, of a structured annotation."""

    name: str | None
    expression: Expression


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """`@name(…)`: `tokens` is the body unparsed; or `@name[…]`: `elements` are its values."""

    name: str
    tokens: list[Token]
    elements: list[AnnotationElement] | None = None

    def strings(self) -> list[str]:
        """The string literals of the body, unquoted."""
        return [unquote(token.text) for token in self.tokens if token.kind == "text"]

    def integers(self) -> list[int]:
        """The integer literals of the body."""
        return [parse_integer(token.text)[0] for token in self.tokens if token.kind == "integer"]


Annotations = list[Annotation]


# ---------------------------------------------------------------------------------------------- types


@dataclass(slots=True, eq=False)
class TypeNode(Node):
    """A type as written."""


@dataclass(slots=True, eq=False)
class BaseTypeNode(TypeNode):
    """bool, error, match_kind, string, void, `int` without width, or `_`."""

    name: str


@dataclass(slots=True, eq=False)
class BitsTypeNode(TypeNode):
    """bit<W>, int<W> or varbit<W> (`kind`); without `width`, bit is bit<1>."""

    kind: str
    width: Expression | None


@dataclass(slots=True, eq=False)
class NamedTypeNode(TypeNode):
    """A type's name, with `absolute` for a leading dot."""

    name: str
    absolute: bool = False


@dataclass(slots=True, eq=False)
class SpecializedTypeNode(TypeNode):
    """A generic type with arguments, `tuple<…>` and `list<…>` included."""

    base: NamedTypeNode
    arguments: list[TypeNode]


@dataclass(slots=True, eq=False)
class StackTypeNode(TypeNode):
    """element[size]."""

    element: TypeNode
    size: Expression


# ---------------------------------------------------------------------------------------- expressions


@dataclass(slots=True, eq=False)
class Expression(Node):
    """An expression; `value` is an int, bool, str, or a list of values when known at compile time."""

    type: Type | None = field(default=None, init=False)
    value: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class IntegerLiteral(Expression):
    """An integer; `width` is None for an arbitrary-precision one."""

    number: int
    width: int | None
    signed: bool


@dataclass(slots=True, eq=False)
class BooleanLiteral(Expression):
    """true or false."""

    truth: bool


@dataclass(slots=True, eq=False)
class StringLiteral(Expression):
    """A string, unquoted."""

    text: str


@dataclass(slots=True, eq=False)
class Name(Expression):
    """A name, with `absolute` for a leading dot."""

    name: str
    absolute: bool = False
    declaration: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class TypeExpression(Expression):
    """A type used as the left side of a dot, as a constructor or as `error`."""

    node: TypeNode


@dataclass(slots=True, eq=False)
class Member(Expression):
    """base.name."""

    base: Expression
    name: str
    name_token: Token


@dataclass(slots=True, eq=False)
class Index(Expression):
    """base[index]."""

    base: Expression
    index: Expression


@dataclass(slots=True, eq=False)
class Slice(Expression):
    """base[high:low]; for `base[low +: width]`, `plus` is True and `high` holds low, `low` the width."""

    base: Expression
    high: Expression
    low: Expression
    plus: bool = False


@dataclass(slots=True, eq=False)
class Unary(Expression):
    """Operator `!`, `~`, `-` or `+` on an operand."""

    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """An infix operator, `&&&` and `..` included."""

    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Ternary(Expression):
    """condition ? first : second."""

    condition: Expression
    first: Expression
    second: Expression


@dataclass(slots=True, eq=False)
class Cast(Expression):
    """(type) operand."""

    target: TypeNode
    operand: Expression


@dataclass(slots=True, eq=False)
class Argument(Node):
    """An argument, maybe by name; `expression` None is `_` (ignored output)."""

    name: str | None
    expression: Expression | None


@dataclass(slots=True, eq=False)
class Call(Expression):
    """callee<type arguments>(arguments): function, method, action, table apply, constructor.

    The checker fills `kind` (see check/calls.py), `target` with what is called and `bindings` with the type
    arguments by parameter, `ordered` with one argument (or None) per parameter.
    """

    callee: Expression
    type_arguments: list[TypeNode]
    arguments: list[Argument]
    kind: str = field(default="", init=False)
    target: Any = field(default=None, init=False)
    bindings: dict[Any, Any] = field(default_factory=dict, init=False)
    ordered: list[Any] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class ListExpression(Expression):
    """{a, b}; `rest` when it ends in `...` (default values)."""

    elements: list[Expression]
    rest: bool = False


@dataclass(slots=True, eq=False)
class NamedElement(Node):
    """name = expression, within braces."""

    name: str
    expression: Expression


@dataclass(slots=True, eq=False)
class StructExpression(Expression):
    """{a = 1, b = 2}, with the type's name in front or not."""

    elements: list[NamedElement]
    target: TypeNode | None = None
    rest: bool = False


@dataclass(slots=True, eq=False)
class InvalidHeader(Expression):
    """{#}."""


@dataclass(slots=True, eq=False)
class DefaultExpression(Expression):
    """`default`, `_` or `...` as a key set or an initialiser."""


@dataclass(slots=True, eq=False)
class KeysetTuple(Expression):
    """(a, b): a tuple of key sets in select, entries."""

    elements: list[Expression]


@dataclass(slots=True, eq=False)
class This(Expression):
    """`this`, within an abstract method."""


# ----------------------------------------------------------------------------------------- statements


@dataclass(slots=True, eq=False)
class Statement(Node):
    """A statement."""


@dataclass(slots=True, eq=False)
class Assignment(Statement):
    """target operator= expression; `operator` is "" for a plain one.

    For `a op= b` the checker puts the typed `a op b` into `combined`.
    """

    target: Expression
    operator: str
    expression: Expression
    combined: Expression | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class CallStatement(Statement):
    """A call for its effects."""

    call: Expression


@dataclass(slots=True, eq=False)
class If(Statement):
    """if (condition) then else otherwise."""

    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(slots=True, eq=False)
class SwitchCase(Node):
    """One label; `body` None falls through to the next label's; `label` None is default."""

    label: Expression | None
    body: Block | None


@dataclass(slots=True, eq=False)
class Switch(Statement):
    """switch (selector) {…}; `table` is set by the checker for `t.apply().action_run`."""

    selector: Expression
    cases: list[SwitchCase]
    table: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Return(Statement):
    """return, maybe with a value."""

    expression: Expression | None


@dataclass(slots=True, eq=False)
class Exit(Statement):
    """exit."""


@dataclass(slots=True, eq=False)
class Empty(Statement):
    """A lone semicolon."""


@dataclass(slots=True, eq=False)
class Break(Statement):
    """break."""


@dataclass(slots=True, eq=False)
class Continue(Statement):
    """continue."""


@dataclass(slots=True, eq=False)
class For(Statement):
    """for (initialisers; condition; updates) body."""

    initialisers: list[Node]
    condition: Expression
    updates: list[Statement]
    body: Statement


@dataclass(slots=True, eq=False)
class ForIn(Statement):
    """for (variable in collection) body."""

    variable: VariableDeclaration
    collection: Expression
    body: Statement


@dataclass(slots=True, eq=False)
class Block(Statement):
    """{ … }."""

    statements: list[Node]
    annotations: Annotations = field(default_factory=list)


# --------------------------------------------------------------------------------------- declarations


@dataclass(slots=True, eq=False)
class Declaration(Node):
    """Something with a name. `name_span` points to the name."""

    name: str
    annotations: Annotations

    def annotation(self, name: str) -> Annotation | None:
        """The first annotation of that name."""
        for annotation in self.annotations:
            if annotation.name == name:
                return annotation
        return None

    def external_name(self) -> str:
        """The name for the control plane: @name's, or the declared one."""
        annotation = self.annotation("name")
        if annotation is not None:
            strings = annotation.strings()
            if strings:
                return strings[0]
        return self.name


@dataclass(slots=True, eq=False)
class Parameter(Declaration):
    """direction type name = default; `direction` is "", "in", "out" or "inout"."""

    direction: str
    node: TypeNode
    default: Expression | None
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class TypeParameter(Declaration):
    """A type variable."""

    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Field(Declaration):
    """A field of a header, struct or union."""

    node: TypeNode
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class StructDeclaration(Declaration):
    """`kind` is "header", "struct" or "header_union"."""

    kind: str
    type_parameters: list[TypeParameter]
    fields: list[Field]


@dataclass(slots=True, eq=False)
class EnumMember(Declaration):
    """A member, with a value in a serializable enum."""

    expression: Expression | None


@dataclass(slots=True, eq=False)
class EnumDeclaration(Declaration):
    """enum, or `enum bit<W>` with `underlying`."""

    underlying: TypeNode | None
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class MembersDeclaration(Declaration):
    """error {…} or match_kind {…} (`name`)."""

    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class TypedefDeclaration(Declaration):
    """typedef, or `type` when `is_new`."""

    node: TypeNode | None
    derived: Declaration | None
    is_new: bool


@dataclass(slots=True, eq=False)
class FunctionDeclaration(Declaration):
    """A function, an extern function or method (`body` None), or a constructor (`result` None)."""

    result: TypeNode | None
    type_parameters: list[TypeParameter]
    parameters: list[Parameter]
    body: Block | None
    is_abstract: bool = False
    signature: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ExternDeclaration(Declaration):
    """An extern object type."""

    type_parameters: list[TypeParameter]
    methods: list[FunctionDeclaration]


@dataclass(slots=True, eq=False)
class ActionDeclaration(Declaration):
    """An action."""

    parameters: list[Parameter]
    body: Block


@dataclass(slots=True, eq=False)
class VariableDeclaration(Declaration):
    """type name = initial."""

    node: TypeNode
    initial: Expression | None
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ConstantDeclaration(Declaration):
    """const type name = initial."""

    node: TypeNode
    initial: Expression
    type: Type | None = field(default=None, init=False)
    value: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class InstanceDeclaration(Declaration):
    """type(arguments) name, maybe with a block of abstract methods' bodies."""

    node: TypeNode
    arguments: list[Argument]
    block: list[Declaration] | None
    type: Type | None = field(default=None, init=False)
    call: Call | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class ValueSetDeclaration(Declaration):
    """value_set<type>(size) name."""

    node: TypeNode
    size: Expression
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class KeyElement(Node):
    """expression : match_kind."""

    expression: Expression
    match_kind: Name
    annotations: Annotations


@dataclass(slots=True, eq=False)
class ActionReference(Node):
    """An action in a table's list; `call` is a Name or a Call with arguments."""

    call: Expression
    annotations: Annotations
    is_const: bool = False
    declaration: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class TableEntry(Node):
    """keyset : action; `priority` when given."""

    is_const: bool
    keyset: Expression
    action: Expression
    priority: Expression | None
    annotations: Annotations


@dataclass(slots=True, eq=False)
class TableProperty(Declaration):
    """name = value, const or not."""

    expression: Expression
    is_const: bool


@dataclass(slots=True, eq=False)
class TableDeclaration(Declaration):
    """A table; entries_const tells `const entries` from `entries`; `given` names the properties written."""

    keys: list[KeyElement]
    actions: list[ActionReference]
    entries: list[TableEntry] | None
    entries_const: bool
    properties: dict[str, TableProperty]
    given: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class ControlDeclaration(Declaration):
    """A control, or its type alone when `body` is None."""

    type_parameters: list[TypeParameter]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    body: Block | None


@dataclass(slots=True, eq=False)
class SelectCase(Node):
    """keyset : state."""

    keyset: Expression
    state: Name


@dataclass(slots=True, eq=False)
class Select(Node):
    """select (expressions) {cases}."""

    expressions: list[Expression]
    cases: list[SelectCase]


@dataclass(slots=True, eq=False)
class StateDeclaration(Declaration):
    """A parser state; `transition` is a Name, a Select or None (reject)."""

    statements: list[Node]
    transition: Name | Select | None


@dataclass(slots=True, eq=False)
class ParserDeclaration(Declaration):
    """A parser, or its type alone when `states` is None."""

    type_parameters: list[TypeParameter]
    parameters: list[Parameter]
    constructor_parameters: list[Parameter]
    locals: list[Declaration]
    states: list[StateDeclaration] | None


@dataclass(slots=True, eq=False)
class PackageDeclaration(Declaration):
    """A package type."""

    type_parameters: list[TypeParameter]
    parameters: list[Parameter]


@dataclass(slots=True, eq=False)
class Program(Node):
    """All top-level declarations in order, and the structured annotations anywhere."""

    declarations: list[Declaration]
    structured_annotations: list[Annotation] = field(default_factory=list)


def unquote(text: str) -> str:
    """The characters of a string literal."""
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\").replace("\\n", "\n")


def parse_integer(text: str) -> tuple[int, int | None, bool]:
    """Value, width (None: arbitrary precision) and signedness of an integer literal. Raises ValueError."""
    width: int | None = None
    signed = False
    digits = text
    for marker in "ws":
        head, found, tail = text.partition(marker)
        if found and head.isdigit():
            width, signed, digits = int(head), marker == "s", tail
            break
    digits = digits.replace("_", "").lower()
    prefixes = {"0x": 16, "0b": 2, "0o": 8, "0d": 10}
    base = prefixes.get(digits[:2], 10)
    return int(digits[2:] if digits[:2] in prefixes else digits, base), width, signed
