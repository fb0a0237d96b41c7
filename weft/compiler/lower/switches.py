"""`switch` on a table's action and on a value."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, If, Stmt
from weft.compiler.lower import build
from weft.compiler.lower.actions import action_label
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.sizes import shallow
from weft.compiler.lower.statements import lower_branch
from weft.compiler.lower.tables import apply_table
from weft.compiler.lower.values import TableValue


def lower_switch(context: Context, statement: ast.Switch) -> None:
    """switch, on a table's action or on a value."""
    if statement.table is not None:
        _action_switch(context, statement)
    else:
        _value_switch(context, statement)


def _action_switch(context: Context, statement: ast.Switch) -> None:
    selector = statement.selector
    assert isinstance(selector, ast.Member)
    call = selector.base
    assert isinstance(call, ast.Call)
    callee = call.callee
    assert isinstance(callee, ast.Member)
    value = evaluate(context, callee.base)
    assert isinstance(value, TableValue)
    branches: dict[str, list[Stmt]] = {}
    default: list[Stmt] | None = None
    pending: list[str | None] = []
    for case in statement.cases:
        label = case.label.name if isinstance(case.label, ast.Name) else None
        pending.append(label)
        if case.body is None:
            continue
        for each in pending:
            body = lower_branch(context, case.body)
            if each is None:
                default = body
            else:
                branches[action_label(context, value, each)] = body
        pending = []
    apply_table(context, call, branches=branches, default=default)


def _value_switch(context: Context, statement: ast.Switch) -> None:
    selector = evaluate_scalar(context, statement.selector)
    if not isinstance(selector, Const):
        selector = context.simple(selector)
    chains: list[tuple[Expr, ast.SwitchCase, ast.Block]] = []
    default: ast.Block | None = None
    labels: list[Expr] = []
    is_default = False
    for case in statement.cases:
        if case.label is None or isinstance(case.label, ast.DefaultExpression):
            is_default = True
        else:
            label = evaluate_scalar(context, case.label)
            labels.append(build.binary("==", selector, build.convert(label, selector.type)))
        if case.body is None:
            continue
        if is_default:
            default = case.body
        if labels:
            condition: Expr = build.FALSE
            for each in labels:
                condition = shallow(context, build.either(condition, each), statement)
            chains.append((condition, case, case.body))
        labels, is_default = [], False
    code: list[Stmt] = lower_branch(context, default)
    for condition, case, body in reversed(chains):
        then = lower_branch(context, body)
        if isinstance(condition, Const):
            code = then if condition.value else code
        elif then or code:
            code = [If(condition, then, code, case.span)]
    context.out += code
