"""Expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.compiler.ast.nodes import Node
from weft.compiler.ast.types import TypeNode
from weft.compiler.source import Token

if TYPE_CHECKING:
    from weft.compiler.types import Type


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

    The checker fills `bindings` with the type arguments by parameter, `ordered` with one argument (or None) per
    parameter, `kind` and `target` with what is called:

    - "function": an extern or P4 function; its FunctionDeclaration
    - "method": an extern's method; its FunctionDeclaration
    - "action": its ActionDeclaration
    - "apply": `instance.apply()` of a control or parser; its declaration
    - "type_apply": `Control.apply()` without an instance; its declaration
    - "table": `table.apply()`; its TableDeclaration
    - "constructor": the type that is built
    - "builtin": a header's or stack's method, or a size; its name
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
