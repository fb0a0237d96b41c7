"""Checking of tables (specification, section 14.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.base import Context
from weft.compiler.check.entries import Entries, has_note
from weft.compiler.check.scope import choices, counted, hint
from weft.compiler.check.statements import action_name
from weft.compiler.subexpressions import same_expression
from weft.compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    UNKNOWN,
    BitsType,
    EnumType,
    Type,
    VarbitType,
    strip_new,
)
from weft.compiler.warnings.kinds import Kind

PROPERTIES = (
    "default_action",
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)


class Tables(Entries):
    """Keys, actions and properties."""

    def check_table(self, table: ast.TableDeclaration) -> None:
        """Everything in a table; its name is in scope afterwards."""
        if "actions" not in table.given:
            self.error(f"table '{table.name}' has no 'actions' property", table)
        key_types = [self._key(key) for key in table.keys]
        # A key may apply a table, an argument may not: it is evaluated within the action.
        with self.in_context(Context("table", table.name)):
            for reference in table.actions:
                self._action_reference(reference)
        self._repeated_actions(table)
        for name, entry in table.properties.items():
            if name == "default_action":
                self._default_action(table, entry)
            elif name not in PROPERTIES:
                message = f"unknown table property '{name}' is ignored {choices(PROPERTIES)}"
                self.warning(message, entry, Kind.IGNORE_PROPERTY)
                self.infer(entry.expression)
            elif name == "size":
                self._size(entry.expression)
            else:
                self.infer(entry.expression)
        if table.entries and not table.keys:
            self.error(f"table '{table.name}' has entries but no key", table)
        elif table.entries is not None:
            self.check_entries(table, table.entries, key_types)
        self.declare(table)

    def _size(self, expression: ast.Expression) -> None:
        if self.infer(expression) is not UNKNOWN and not (expression.value is None and _depends(expression)):
            self.constant(expression, "a table's size")

    def _key(self, key: ast.KeyElement) -> Type:
        type_ = self.infer(key.expression)
        if key.match_kind.name not in self.match_kinds:
            self.error(
                f"'{key.match_kind.name}' is not a match kind {choices(self.match_kinds)}", key.match_kind
            )
        plain = strip_new(type_)
        if type_ is INTEGER:
            self.error("a key has a known width; 'int' has none", key.expression)
        elif not isinstance(plain, BitsType | EnumType | VarbitType) and plain not in (BOOL, ERROR, UNKNOWN):
            self.error(f"a key cannot be of type '{type_}'", key.expression)
        return type_

    def _action_reference(self, reference: ast.ActionReference) -> None:
        call = reference.call
        name = call.callee if isinstance(call, ast.Call) else call
        if not isinstance(name, ast.Name):
            self.error("expected an action's name", call)
            return
        scope = self.root if name.absolute else self.scope
        declaration = scope.lookup(name.name)
        if declaration is None:
            self.error(f"action '{name.name}' is not declared{hint(scope.nearest(name.name))}", name)
            return
        if not isinstance(declaration, ast.ActionDeclaration):
            first = declaration[0] if isinstance(declaration, list) else declaration
            self.error(f"'{name.name}' is not an action", name).note("declared here", first.span)
            return
        reference.declaration = declaration
        name.declaration = declaration
        directed = [parameter for parameter in declaration.parameters if parameter.direction]
        given = call.arguments if isinstance(call, ast.Call) else []
        if len(given) != len(directed):
            self.error(
                f"action '{name.name}' has {len(directed)} parameters with a direction, which the table must bind: "
                f"{len(given)} arguments given",
                reference,
            ).note("declared here", declaration.span)
            return
        for argument, parameter in zip(given, directed, strict=True):
            if argument.expression is not None:
                self.check(argument.expression, parameter.type or UNKNOWN, f"argument '{parameter.name}'")
                if parameter.direction != "in":
                    self.check_writable(argument.expression, f"argument '{parameter.name}'")

    def _repeated_actions(self, table: ast.TableDeclaration) -> None:
        seen: dict[str, ast.ActionReference] = {}
        for reference in table.actions:
            name = action_name(reference.call)
            if name in seen:
                self.error(f"action '{name}' is listed twice", reference).note(
                    "first listed here", seen[name].span
                )
            seen.setdefault(name, reference)

    def action_arguments(
        self, table: ast.TableDeclaration, expression: ast.Expression, what: str
    ) -> ast.ActionReference | None:
        """Check `action` or `action(arguments)` of a default action or an entry; values must be constants."""
        name = expression.callee if isinstance(expression, ast.Call) else expression
        if not isinstance(name, ast.Name):
            self.error(f"{what}: expected an action", expression)
            return None
        reference = next((entry for entry in table.actions if action_name(entry.call) == name.name), None)
        if reference is None:
            names = [action_name(entry.call) for entry in table.actions]
            self.error(
                f"{what}: '{name.name}' is not an action of table '{table.name}' {choices(names)}", name
            )
            return None
        if reference.declaration is None:
            return None
        declaration = (self.root if name.absolute else self.scope).lookup(name.name)
        if declaration is not None and declaration is not reference.declaration:
            self.error(f"{what}: this '{name.name}' is not the one of table '{table.name}'", name).note(
                "the table's is declared here", reference.declaration.span
            )
            return None
        name.declaration = reference.declaration
        parameters = reference.declaration.parameters
        given = list(expression.arguments) if isinstance(expression, ast.Call) else []
        undirected = [parameter for parameter in parameters if not parameter.direction]
        if len(given) == len(parameters):
            expected = list(parameters)
        elif len(given) == len(undirected):
            expected = undirected
        else:
            self.error(
                f"{what}: action '{name.name}' takes {counted(len(undirected), 'argument')} here, {len(given)} given",
                expression,
            ).note("declared here", reference.declaration.span)
            return None
        if len(given) == len(parameters):
            self._as_listed(name, reference, given, parameters)
        for argument, parameter in zip(given, expected, strict=True):
            if argument.expression is None:
                continue
            value = argument.expression
            if not self.check(value, parameter.type or UNKNOWN, f"argument '{parameter.name}'"):
                continue
            if (
                not parameter.direction
                and value.value is None
                and value.type is not UNKNOWN
                and not _depends(value)
            ):
                self.error(f"{what}: argument '{parameter.name}' must be known at compile time", value)
        return reference

    def _as_listed(
        self,
        name: ast.Name,
        reference: ast.ActionReference,
        given: list[ast.Argument],
        parameters: list[ast.Parameter],
    ) -> None:
        """Arguments with a direction repeat those in the table's list of actions."""
        listed = reference.call.arguments if isinstance(reference.call, ast.Call) else []
        directed = [
            argument for argument, parameter in zip(given, parameters, strict=True) if parameter.direction
        ]
        for argument, known in zip(directed, listed, strict=False):
            if argument.expression is None or known.expression is None:
                continue
            self.infer(argument.expression)
            if not same_expression(argument.expression, known.expression):
                self.error(
                    f"this argument of '{name.name}' differs from the one in the list of actions", argument
                ).note("listed here", known.span)

    def _default_action(self, table: ast.TableDeclaration, entry: ast.TableProperty) -> None:
        reference = self.action_arguments(table, entry.expression, "default_action")
        if reference is not None and has_note(reference, "tableonly"):
            self.error("a @tableonly action cannot be the default action", entry.expression).note(
                "listed here", reference.span
            )


def _depends(expression: ast.Expression) -> bool:
    """Whether the value may come from a constructor parameter, known only when instantiated."""
    if isinstance(expression, ast.Name):
        declaration = expression.declaration
        if isinstance(declaration, ast.Parameter):
            return not declaration.direction
        return isinstance(declaration, ast.ConstantDeclaration)
    if isinstance(expression, ast.Member):
        return _depends(expression.base)
    if isinstance(expression, ast.Binary):
        return _depends(expression.left) or _depends(expression.right)
    if isinstance(expression, ast.Cast | ast.Unary):
        return _depends(expression.operand)
    return isinstance(expression, ast.ListExpression | ast.StructExpression)
