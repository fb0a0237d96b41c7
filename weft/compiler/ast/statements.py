"""Statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.compiler.ast.expressions import Expression
from weft.compiler.ast.nodes import Annotations, Node

if TYPE_CHECKING:
    from weft.compiler.ast.declarations import VariableDeclaration


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
