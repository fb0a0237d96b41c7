"""Checking of statements: the dispatch and the simple ones (specification, section 12)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import check_expression, coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.writable import check_writable
from weft.compiler.types import BOOL, UNKNOWN, VOID
from weft.compiler.wording import article


def check_statement(context: CheckContext, statement: ast.Node) -> None:
    """One statement or local declaration."""
    context.statements[type(statement)](context, statement)


def check_block(context: CheckContext, block: ast.Block) -> None:
    """A block in a scope of its own."""
    with context.inner_scope():
        for statement in block.statements:
            check_statement(context, statement)


def check_branch(context: CheckContext, statement: ast.Statement) -> None:
    """The statement of a branch or loop, in a scope of its own."""
    with context.inner_scope():
        check_statement(context, statement)


def check_condition(context: CheckContext, expression: ast.Expression, word: str) -> None:
    """The condition of an `if` or loop (`word`)."""
    type_ = infer(context, expression)
    if type_ is not BOOL and type_ is not UNKNOWN:
        context.error(f"the condition of '{word}' is a bool, not '{type_}'", expression)


def check_assignment(context: CheckContext, statement: ast.Assignment) -> None:
    """`target = expression` or `target op= expression`."""
    target = infer(context, statement.target)
    if target is not UNKNOWN:
        check_writable(context, statement.target, "an assignment")
    if not statement.operator:
        check_expression(context, statement.expression, target)
        return
    # a op= b has the types of a = a op b.
    combined = ast.Binary(statement.span, statement.operator, statement.target, statement.expression)
    statement.combined = combined
    if infer(context, combined, target) is not UNKNOWN and target is not UNKNOWN:
        coerce(context, combined, target)


def check_call(context: CheckContext, statement: ast.CallStatement) -> None:
    """A call for its effects."""
    infer(context, statement.call)


def check_if(context: CheckContext, statement: ast.If) -> None:
    """`if (condition) … else …`."""
    check_condition(context, statement.condition, "if")
    check_branch(context, statement.then)
    if statement.otherwise is not None:
        check_branch(context, statement.otherwise)


def check_empty(context: CheckContext, statement: ast.Empty) -> None:
    """A lone semicolon: nothing to check."""


def check_exit(context: CheckContext, statement: ast.Exit) -> None:
    """`exit` is for controls and actions."""
    if context.enclosing.kind in ("parser", "function"):
        context.error(f"'exit' cannot stand in {article(context.enclosing.kind)}", statement)


def check_break(context: CheckContext, statement: ast.Break) -> None:
    """`break` stands in a loop."""
    _inside_loop(context, statement, "break")


def check_continue(context: CheckContext, statement: ast.Continue) -> None:
    """`continue` stands in a loop."""
    _inside_loop(context, statement, "continue")


def _inside_loop(context: CheckContext, statement: ast.Statement, word: str) -> None:
    if not context.enclosing.loop_depth:
        context.error(f"'{word}' stands outside of any loop", statement)


def check_return(context: CheckContext, statement: ast.Return) -> None:
    """`return`, with a value of the function's type if it has one."""
    wanted = context.enclosing.result
    if context.enclosing.kind == "parser":
        context.error("'return' cannot stand in a parser: a state ends with its transition", statement)
    if statement.expression is None:
        if wanted is not None and wanted is not VOID:
            context.error(f"'{context.enclosing.name}' returns '{wanted}': the value is missing", statement)
        return
    if wanted is None or wanted is VOID:
        infer(context, statement.expression)
        where = f"'{context.enclosing.name}'" if context.enclosing.name else f"a {context.enclosing.kind}"
        context.error(f"{where} returns no value", statement)
        return
    check_expression(context, statement.expression, wanted, "the returned value")
