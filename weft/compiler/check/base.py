"""State shared by the parts of the type checker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from weft.compiler import ast
from weft.compiler.check.scope import Scope
from weft.compiler.diagnostics import Diagnostic, Diagnostics
from weft.compiler.source import Span, Token
from weft.compiler.types import UNKNOWN, Type
from weft.compiler.warnings.kinds import Kind


@dataclass(frozen=True, slots=True)
class Context:
    """Where the checker is: `kind` is "top", "parser", "control", "action", "function" or "table"."""

    kind: str
    name: str = ""
    result: Type | None = None
    loop_depth: int = 0


class CheckerBase:
    """Scopes, context and messages."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.scope = Scope()
        self.root = self.scope
        self.context = Context("top")
        # Error and match_kind members accumulate over several declarations; their order numbers them.
        self.errors: dict[str, int] = {}
        self.match_kinds: dict[str, ast.Declaration] = {}
        self.types: dict[int, Type] = {}
        self._parts: dict[Type, int] = {}
        # Declarations whose bodies we are in: these cannot refer to themselves.
        self.open_declarations: list[ast.Declaration] = []

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

    @contextmanager
    def inner_scope(self) -> Iterator[Scope]:
        """A nested scope."""
        outer = self.scope
        self.scope = Scope(outer)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def in_context(self, context: Context) -> Iterator[None]:
        """Another context."""
        outer = self.context
        self.context = context
        try:
            yield
        finally:
            self.context = outer

    @contextmanager
    def inside(self, declaration: ast.Declaration) -> Iterator[None]:
        """In a declaration's body."""
        self.open_declarations.append(declaration)
        try:
            yield
        finally:
            self.open_declarations.pop()

    def refers_to_itself(self, declaration: object, where: ast.Node) -> bool:
        """Whether a name stands for what it is within; reported, for P4 has no recursion."""
        if not any(declaration is each for each in self.open_declarations):
            return False
        assert isinstance(declaration, ast.Declaration)
        self.error(f"'{declaration.name}' cannot refer to itself", where).note(
            "declared here", declaration.span
        )
        return True

    def declare(self, declaration: ast.Declaration) -> None:
        """Declare in the current scope."""
        self.scope.declare(declaration, self.diagnostics)
