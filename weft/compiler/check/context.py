"""The first argument of every function of the checker: where it is, what is declared, where errors go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from weft.compiler import ast
from weft.compiler.check.scope import Scope
from weft.compiler.diagnostics import Diagnostic, Diagnostics
from weft.compiler.source import Span, Token
from weft.compiler.types import UNKNOWN, Type
from weft.compiler.warnings.kinds import Kind

ExpressionHandler = Callable[["CheckContext", Any, Type | None], Type]
"""Types an expression and sets its `value` if it is known; the last argument is the type expected there, if any."""
StatementHandler = Callable[["CheckContext", Any], None]


@dataclass(frozen=True, slots=True)
class Handlers:
    """The function for each kind of expression, statement and declaration."""

    expressions: Mapping[type[ast.Node], ExpressionHandler]
    statements: Mapping[type[ast.Node], StatementHandler]
    declarations: Mapping[type[ast.Node], StatementHandler]


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The block around a statement or declaration: "top", "parser", "control", "action", "function" or "table"."""

    kind: str
    name: str = ""
    result: Type | None = None
    loop_depth: int = 0


@dataclass(slots=True)
class Symbols:
    """All that a program declares. The checker yields this and the annotated tree.

    `root` is the scope of the top level, `types` are by the identity of their declarations. Members of error and
    match_kind accumulate over several declarations; the order of errors numbers them.
    """

    root: Scope = field(default_factory=Scope)
    types: dict[int, Type] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    error_declarations: dict[str, ast.Declaration] = field(default_factory=dict)
    match_kinds: dict[str, ast.Declaration] = field(default_factory=dict)


class CheckContext:
    """The state of a check, and the function for each kind of node (`expressions`, `statements`, `declarations`)."""

    def __init__(self, diagnostics: Diagnostics, handlers: Handlers) -> None:
        self.diagnostics = diagnostics
        self.expressions = handlers.expressions
        self.statements = handlers.statements
        self.declarations = handlers.declarations
        self.symbols = Symbols()
        self.scope = self.symbols.root
        self.enclosing = Enclosing("top")
        self.open_declarations: list[ast.Declaration] = []
        """The current place is in the bodies of these, so it cannot refer to them."""
        self.part_counts: dict[Type, int] = {}
        """Fields and elements of types, counted once."""

    def error(self, message: str, where: ast.Node | Span | Token) -> Diagnostic:
        """Report an error."""
        return self.diagnostics.error(message, where.span if isinstance(where, ast.Node) else where)

    def warning(self, message: str, where: ast.Node | Span | Token, kind: Kind) -> Diagnostic:
        """Report a warning."""
        return self.diagnostics.warning(message, where.span if isinstance(where, ast.Node) else where, kind)

    def fail(self, expression: ast.Expression, message: str, where: ast.Node | None = None) -> Type:
        """Report an error about an expression and give it the unknown type."""
        self.error(message, where or expression)
        expression.type = UNKNOWN
        return UNKNOWN

    def scope_of(self, name: ast.Name | ast.NamedTypeNode) -> Scope:
        """Where a name is looked up: from the current scope on, or at the top level if it has a leading dot."""
        return self.symbols.root if name.absolute else self.scope

    def declare(self, declaration: ast.Declaration) -> None:
        """Declare in the current scope."""
        self.scope.declare(declaration, self.diagnostics)

    @contextmanager
    def inner_scope(self) -> Iterator[None]:
        """A nested scope."""
        outer = self.scope
        self.scope = Scope(outer)
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def within(self, enclosing: Enclosing) -> Iterator[None]:
        """Statements of another block, action or function."""
        outer = self.enclosing
        self.enclosing = enclosing
        try:
            yield
        finally:
            self.enclosing = outer

    @contextmanager
    def inside(self, declaration: ast.Declaration) -> Iterator[None]:
        """A declaration's body, which cannot refer to the declaration."""
        self.open_declarations.append(declaration)
        try:
            yield
        finally:
            self.open_declarations.pop()

    def refers_to_itself(self, declaration: object, where: ast.Node) -> bool:
        """Whether a name stands for what encloses it; reported, for P4 has no recursion."""
        if not any(declaration is each for each in self.open_declarations):
            return False
        assert isinstance(declaration, ast.Declaration)
        self.error(f"'{declaration.name}' cannot refer to itself", where).note("declared here", declaration.span)
        return True
