"""Assignments, calls, branches and jumps."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Exit, Expr, If, Jump, Stmt
from weft.compiler.lower.arguments import copy_back
from weft.compiler.lower.assign import assign
from weft.compiler.lower.calls import evaluate_call
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar, lower_statement, lower_statements
from weft.compiler.lower.operators import combine_operands
from weft.compiler.lower.packets import direct_lookahead, is_lookahead
from weft.compiler.lower.tables import apply_table
from weft.compiler.lower.targets import evaluate_frozen_target, evaluate_target, read_target
from weft.compiler.lower.values import P4Value
from weft.compiler.subexpressions import walk


def lower_assignment(context: Context, statement: ast.Assignment) -> None:
    """target = value and target op= value."""
    expression = statement.expression
    if statement.combined is not None:
        _combined(context, statement, statement.combined)
        return
    if is_lookahead(expression):
        assert isinstance(expression, ast.Call)
        target = evaluate_target(context, statement.target)
        direct = direct_lookahead(context, expression)
        if direct is not None and isinstance(target, Expr) and target.type == direct.type:
            assign(context, target, direct, statement.span)
            return
    target, value = _both(context, statement.target, expression)
    assign(context, target, value, statement.span)


def _both(context: Context, left: ast.Expression, right: ast.Expression) -> tuple[P4Value, P4Value]:
    """Target, then value; a target's index is computed first (specification, section 8)."""
    target = evaluate_frozen_target(context, left) if _has_call(right) else evaluate_target(context, left)
    return target, evaluate(context, right)


def _has_call(expression: ast.Expression) -> bool:
    """Whether evaluating it may change something."""
    return any(isinstance(each, ast.Call) and each.kind not in ("builtin", "constructor") for each in walk(expression))


def _combined(context: Context, statement: ast.Assignment, combined: ast.Expression) -> None:
    """target op= value: the target is evaluated once."""
    target = evaluate_frozen_target(context, statement.target)
    left = read_target(target)
    with context.collecting() as before:
        right = evaluate(context, statement.expression)
    if before and isinstance(left, Expr):
        left = context.snapshot(left)
    context.out += before
    assign(context, target, combine_operands(context, statement.operator, left, right, combined), statement.span)


def lower_call(context: Context, statement: ast.CallStatement) -> None:
    """A call as a statement: nobody takes its result."""
    call = statement.call
    assert isinstance(call, ast.Expression)
    if isinstance(call, ast.Member):
        evaluate(context, call)
        return
    evaluate_call(context, call)  # type: ignore[arg-type]


def lower_block(context: Context, statement: ast.Block) -> None:
    """{ statements }."""
    lower_statements(context, statement.statements)


def lower_if(context: Context, statement: ast.If) -> None:
    """if, on a value or on a table's hit or miss."""
    condition, negated = statement.condition, False
    while isinstance(condition, ast.Unary) and condition.operator == "!":
        condition, negated = condition.operand, not negated
    if _is_table_result(condition):
        _if_table(context, statement, condition, negated)
        return
    value = evaluate_scalar(context, statement.condition)
    if isinstance(value, Const):
        chosen = statement.then if value.value else statement.otherwise
        if chosen is not None:
            lower_statement(context, chosen)
        return
    then = lower_branch(context, statement.then)
    otherwise = lower_branch(context, statement.otherwise)
    if then or otherwise:
        context.emit(If(value, then, otherwise, statement.condition.span))


def _if_table(context: Context, statement: ast.If, condition: ast.Expression, negated: bool) -> None:
    assert isinstance(condition, ast.Member)
    call = condition.base
    assert isinstance(call, ast.Call)
    then, otherwise = lower_branch(context, statement.then), lower_branch(context, statement.otherwise)
    on_hit = (condition.name == "hit") != negated
    hit, miss = (then, otherwise) if on_hit else (otherwise, then)
    apply_table(context, call, hit, miss)


def _is_table_result(expression: ast.Expression) -> bool:
    return (
        isinstance(expression, ast.Member)
        and expression.name in ("hit", "miss")
        and isinstance(expression.base, ast.Call)
        and expression.base.kind == "table"
    )


def lower_branch(context: Context, statement: ast.Node | None) -> list[Stmt]:
    """The statements of a branch, where there is one."""
    with context.collecting() as code:
        if statement is not None:
            lower_statement(context, statement)
    return code


def lower_return(context: Context, statement: ast.Return) -> None:
    """return: a jump to the end of the inlined body."""
    frame = context.frame
    while frame.return_label is None and frame.parent is not None:
        frame = frame.parent
    if statement.expression is not None:
        assign(context, frame.return_value, evaluate(context, statement.expression), statement.span)
    assert frame.return_label is not None
    context.emit(Jump(frame.return_label, statement.span))


def lower_exit(context: Context, statement: ast.Exit) -> None:
    """exit, after the copies that the calls around must still make."""
    # Leaving a call copies its `out` and `inout` arguments back (specification, section 12.5).
    for pairs in reversed(context.calls.pending_copies):
        copy_back(context, pairs, statement.span)
    context.emit(Exit(statement.span))


def lower_empty(context: Context, statement: ast.Empty) -> None:
    """Nothing."""
    del statement
