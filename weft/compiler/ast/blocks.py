"""Tables, controls, parsers, packages and the whole program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.compiler.ast.declarations import Declaration, Parameter, TypeParameter
from weft.compiler.ast.expressions import Expression, Name
from weft.compiler.ast.nodes import Annotation, Annotations, Node
from weft.compiler.ast.statements import Block


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
    """A table; `entries_const` is whether they are `const entries`; `given` names the properties written."""

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
