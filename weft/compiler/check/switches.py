"""Checking of switch statements (specification, section 12.7)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import check_expression
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.statements import check_block
from weft.compiler.check.table_actions import action_name
from weft.compiler.types import ERROR, UNKNOWN, ActionRunType, BitsType, EnumType, Type
from weft.compiler.wording import choices


def check_switch(context: CheckContext, statement: ast.Switch) -> None:
    """A switch on the action that a table ran, or on a value."""
    type_ = infer(context, statement.selector)
    if isinstance(type_, ActionRunType):
        _action_switch(context, statement, type_)
    elif type_ is not UNKNOWN:
        _value_switch(context, statement, type_)
    if statement.cases and statement.cases[-1].body is None:
        statement.cases[-1].body = ast.Block(statement.cases[-1].span, [])
    for case in statement.cases:
        if case.body is not None:
            check_block(context, case.body)
    for before, after in zip(statement.cases, statement.cases[1:], strict=False):
        if before.label is None or isinstance(before.label, ast.DefaultExpression):
            context.error("'default' is the last label of a switch", after).note("'default' stands here", before.span)


def _action_switch(context: CheckContext, statement: ast.Switch, type_: ActionRunType) -> None:
    statement.table = type_.declaration
    names = [action_name(reference.call) for reference in type_.declaration.actions]
    seen: set[str] = set()
    for case in statement.cases:
        if case.label is None:
            label = "default"
        elif isinstance(case.label, ast.Name | ast.DefaultExpression):
            label = case.label.name if isinstance(case.label, ast.Name) else "default"
            if label not in names and label != "default":
                context.error(f"'{label}' is not an action of table '{type_.name}' {choices(names)}", case.label)
        else:
            context.error("a label of this switch is an action's name", case.label)
            continue
        if label in seen:
            context.error(f"label '{label}' is given twice", case)
        seen.add(label)


def _value_switch(context: CheckContext, statement: ast.Switch, type_: Type) -> None:
    if not isinstance(type_, BitsType | EnumType) and type_ is not ERROR:
        context.error(f"cannot switch on a value of type '{type_}'", statement.selector)
        return
    seen: set[int] = set()
    for case in statement.cases:
        if case.label is None or isinstance(case.label, ast.DefaultExpression):
            continue
        check_expression(context, case.label, type_)
        if case.label.type is UNKNOWN:
            continue
        if case.label.value is None:
            context.error("a label must be known at compile time", case.label)
        elif case.label.value in seen:
            context.error(f"label {case.label.value} is given twice", case.label)
        else:
            seen.add(case.label.value)
