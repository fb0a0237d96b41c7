"""Checking of the actions of a table (specification, section 14.2.1.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import check_expression
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.writable import check_writable
from weft.compiler.subexpressions import same_expression
from weft.compiler.types import UNKNOWN
from weft.compiler.wording import choices, counted, hint


def action_name(expression: ast.Expression) -> str:
    """The name by which a table refers to an action."""
    if isinstance(expression, ast.Call):
        return action_name(expression.callee)
    return expression.name if isinstance(expression, ast.Name) else ""


def has_note(reference: ast.ActionReference, name: str) -> bool:
    """Whether an action in a table's list has an annotation."""
    return any(annotation.name == name for annotation in reference.annotations)


def check_action_reference(context: CheckContext, reference: ast.ActionReference) -> None:
    """An action in a table's list: its name, and the arguments that the table binds."""
    call = reference.call
    name = call.callee if isinstance(call, ast.Call) else call
    if not isinstance(name, ast.Name):
        context.error("expected an action's name", call)
        return
    scope = context.scope_of(name)
    declaration = scope.lookup(name.name)
    if declaration is None:
        context.error(f"action '{name.name}' is not declared{hint(name.name, scope.visible())}", name)
        return
    if not isinstance(declaration, ast.ActionDeclaration):
        first = declaration[0] if isinstance(declaration, list) else declaration
        context.error(f"'{name.name}' is not an action", name).note("declared here", first.span)
        return
    reference.declaration = declaration
    name.declaration = declaration
    directed = [parameter for parameter in declaration.parameters if parameter.direction]
    given = call.arguments if isinstance(call, ast.Call) else []
    if len(given) != len(directed):
        context.error(
            f"action '{name.name}' has {len(directed)} parameters with a direction, which the table must bind: "
            f"{len(given)} arguments given",
            reference,
        ).note("declared here", declaration.span)
        return
    for argument, parameter in zip(given, directed, strict=True):
        if argument.expression is not None:
            check_expression(context, argument.expression, parameter.type or UNKNOWN, f"argument '{parameter.name}'")
            if parameter.direction != "in":
                check_writable(context, argument.expression, f"argument '{parameter.name}'")


def check_repeated_actions(context: CheckContext, table: ast.TableDeclaration) -> None:
    """Each action is listed once."""
    seen: dict[str, ast.ActionReference] = {}
    for reference in table.actions:
        name = action_name(reference.call)
        if name in seen:
            context.error(f"action '{name}' is listed twice", reference).note("first listed here", seen[name].span)
        seen.setdefault(name, reference)


def action_arguments(
    context: CheckContext, table: ast.TableDeclaration, expression: ast.Expression, what: str
) -> ast.ActionReference | None:
    """Check `action` or `action(arguments)` of a default action or an entry; values must be constants."""
    name = expression.callee if isinstance(expression, ast.Call) else expression
    if not isinstance(name, ast.Name):
        context.error(f"{what}: expected an action", expression)
        return None
    reference = next((entry for entry in table.actions if action_name(entry.call) == name.name), None)
    if reference is None:
        names = [action_name(entry.call) for entry in table.actions]
        context.error(f"{what}: '{name.name}' is not an action of table '{table.name}' {choices(names)}", name)
        return None
    if reference.declaration is None:
        return None
    declaration = context.scope_of(name).lookup(name.name)
    if declaration is not None and declaration is not reference.declaration:
        context.error(f"{what}: this '{name.name}' is not the one of table '{table.name}'", name).note(
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
        context.error(
            f"{what}: action '{name.name}' takes {counted(len(undirected), 'argument')} here, {len(given)} given",
            expression,
        ).note("declared here", reference.declaration.span)
        return None
    if len(given) == len(parameters):
        _as_listed(context, name, reference, given, parameters)
    for argument, parameter in zip(given, expected, strict=True):
        if argument.expression is None:
            continue
        value = argument.expression
        if not check_expression(context, value, parameter.type or UNKNOWN, f"argument '{parameter.name}'"):
            continue
        if (
            not parameter.direction
            and value.value is None
            and value.type is not UNKNOWN
            and not depends_on_instance(value)
        ):
            context.error(f"{what}: argument '{parameter.name}' must be known at compile time", value)
    return reference


def _as_listed(
    context: CheckContext,
    name: ast.Name,
    reference: ast.ActionReference,
    given: list[ast.Argument],
    parameters: list[ast.Parameter],
) -> None:
    """Arguments with a direction repeat those in the table's list of actions."""
    listed = reference.call.arguments if isinstance(reference.call, ast.Call) else []
    directed = [argument for argument, parameter in zip(given, parameters, strict=True) if parameter.direction]
    for argument, known in zip(directed, listed, strict=False):
        if argument.expression is None or known.expression is None:
            continue
        infer(context, argument.expression)
        if not same_expression(argument.expression, known.expression):
            context.error(f"this argument of '{name.name}' differs from the one in the list of actions", argument).note(
                "listed here", known.span
            )


def depends_on_instance(expression: ast.Expression) -> bool:
    """Whether the value may come from a constructor parameter, known only when instantiated."""
    if isinstance(expression, ast.Name):
        declaration = expression.declaration
        if isinstance(declaration, ast.Parameter):
            return not declaration.direction
        return isinstance(declaration, ast.ConstantDeclaration)
    if isinstance(expression, ast.Member):
        return depends_on_instance(expression.base)
    if isinstance(expression, ast.Binary):
        return depends_on_instance(expression.left) or depends_on_instance(expression.right)
    if isinstance(expression, ast.Cast | ast.Unary):
        return depends_on_instance(expression.operand)
    return isinstance(expression, ast.ListExpression | ast.StructExpression)
