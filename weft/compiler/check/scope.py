"""Names in scope and their declarations (specification, section 6.9)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics

TypeDeclaration = (
    ast.StructDeclaration, ast.EnumDeclaration, ast.TypedefDeclaration, ast.ExternDeclaration,
    ast.ControlDeclaration, ast.ParserDeclaration, ast.PackageDeclaration, ast.TypeParameter,
)  # fmt: skip


class Scope:
    """One level of names; functions of one name are kept together as overloads."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, ast.Declaration | list[ast.FunctionDeclaration]] = {}

    def lookup(self, name: str) -> ast.Declaration | list[ast.FunctionDeclaration] | None:
        """The innermost declaration of a name."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def declare(self, declaration: ast.Declaration, diagnostics: Diagnostics) -> None:
        """Add a name; a second declaration in the same scope is an error unless it overloads a function."""
        existing = self.names.get(declaration.name)
        if isinstance(declaration, ast.FunctionDeclaration):
            if existing is None:
                self.names[declaration.name] = [declaration]
                return
            if isinstance(existing, list):
                existing.append(declaration)
                return
        if existing is not None:
            earlier = existing[0] if isinstance(existing, list) else existing
            diagnostics.error(f"'{declaration.name}' is declared twice", declaration.span).note(
                f"'{declaration.name}' first declared here", earlier.span
            )
            return
        self.names[declaration.name] = declaration

    def visible(self) -> list[str]:
        """All names that can be seen from here, innermost first."""
        names: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            names += scope.names
            scope = scope.parent
        return names
