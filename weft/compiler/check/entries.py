"""Checking of key sets and table entries (specification, sections 8.15, 14.2.1.4)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.statements import Statements
from weft.compiler.subexpressions import walk
from weft.compiler.types import INTEGER, UNKNOWN, BitsType, EnumType, NewType, SetType, Type, strip_new

# Match kinds under which entries can overlap.
_PRIORITIZED = ("ternary", "range", "optional")


class Entries(Statements):
    """`check_keyset` for select cases and entries, `check_entries` for those of a table."""

    def check_keyset(self, keyset: ast.Expression, types: list[Type], what: str) -> None:
        """A key set against the types it must match."""
        elements = keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
        if len(elements) == 1 and isinstance(elements[0], ast.DefaultExpression):
            elements[0].type = types[0] if types else UNKNOWN
            return
        if len(elements) == 1 and len(types) > 1 and isinstance(keyset, ast.Name):
            # A value set of a struct or tuple matches all keys at once.
            self.infer(keyset)
            return
        if len(elements) != len(types):
            self.error(f"{what} needs {len(types)} values, {len(elements)} given", keyset)
            return
        for element, type_ in zip(elements, types, strict=True):
            if isinstance(element, ast.DefaultExpression):
                element.type = type_
                continue
            if any(isinstance(part, ast.Call) and part.callee is not None for part in walk(element)):
                self._no_calls(element, what)
            if type_ is UNKNOWN:
                self.infer(element)
                continue
            found = self.infer(element, SetType(type_))
            if isinstance(found, SetType):
                self._check_set(element, found, type_)
            else:
                self.coerce(element, type_, what)

    def _check_set(self, element: ast.Expression, found: SetType, wanted: Type) -> None:
        plain = strip_new(wanted)
        if isinstance(element, ast.Binary) and found.element is INTEGER:
            self.coerce(element.left, plain)
            self.coerce(element.right, plain)
            element.type = SetType(plain)
        elif found.element not in (wanted, plain, UNKNOWN) and not (
            isinstance(wanted, EnumType) and found.element == wanted.underlying
        ):
            width_fits = isinstance(element, ast.Name)
            if not width_fits or isinstance(found.element, BitsType | NewType):
                self.error(f"expected values of '{wanted}', found '{found.element}'", element)

    def _no_calls(self, element: ast.Expression, what: str) -> None:
        self.infer(element)
        if element.value is None or any(
            isinstance(part, ast.Call) and part.kind in ("function", "method") for part in walk(element)
        ):
            self.error(f"{what} calls nothing: it is known at compile time", element)

    def action_arguments(
        self, table: ast.TableDeclaration, expression: ast.Expression, what: str
    ) -> ast.ActionReference | None:
        """An action with its arguments."""
        raise NotImplementedError

    def check_entries(
        self, table: ast.TableDeclaration, entries: list[ast.TableEntry], key_types: list[Type]
    ) -> None:
        """The entries written in a table."""
        for entry in entries:
            self._entry(table, entry, key_types)
        kinds = [key.match_kind.name for key in table.keys]
        given = [entry for entry in entries if entry.priority is not None]
        if given and not any(kind in _PRIORITIZED for kind in kinds):
            self.error(
                "the entries of a table without ternary, range or optional keys have no priorities", given[0]
            )

    def _entry(self, table: ast.TableDeclaration, entry: ast.TableEntry, key_types: list[Type]) -> None:
        self.check_keyset(entry.keyset, key_types, "an entry")
        reference = self.action_arguments(table, entry.action, "an entry")
        if reference is not None and has_note(reference, "defaultonly"):
            self.error("a @defaultonly action cannot be that of an entry", entry.action).note(
                "listed here", reference.span
            )
        if entry.priority is not None:
            self.constant(entry.priority, "a priority")


def has_note(reference: ast.ActionReference, name: str) -> bool:
    """Whether an action in a table's list has an annotation."""
    return any(annotation.name == name for annotation in reference.annotations)
