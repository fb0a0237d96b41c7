"""Names in scope and their declarations."""

from __future__ import annotations

from difflib import get_close_matches

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

    def nearest(self, name: str) -> str | None:
        """A declared name that looks like `name`."""
        known: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            known += scope.names
            scope = scope.parent
        matches = get_close_matches(name, known, 1, 0.7)
        return matches[0] if matches else None


def hint(name: str | None) -> str:
    """The end of a message that proposes a name."""
    return f"; did you mean '{name}'?" if name else ""


def article(word: str) -> str:
    """A word with `a` or `an` before it."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural but for 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def choices(names: object, limit: int = 8) -> str:
    """`(valid: 'a', 'b')` for a message."""
    assert hasattr(names, "__iter__")
    listed = [f"'{name}'" for name in names]
    if not listed:
        return "(there are none)"
    shown = ", ".join(listed[:limit]) + (", …" if len(listed) > limit else "")
    return f"(valid: {shown})"
