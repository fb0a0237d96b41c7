"""Checking of statements: the dispatch and the simple ones (specification, section 12).

How each kind of statement is checked is a rule in a table by the node's class; `switches`, `loops`, `variables` and
`instances` register theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft.compiler import ast
from weft.compiler.check.coerce import check_expression, coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.writable import check_writable
from weft.compiler.types import BOOL, UNKNOWN, VOID
from weft.compiler.wording import article

AnyStatement = TypeVar("AnyStatement", bound=ast.Node)
Rule = Callable[[CheckContext, AnyStatement], None]

_RULES: dict[type[ast.Node], Rule[Any]] = {}


def statement_rule(kind: type[AnyStatement]) -> Callable[[Rule[AnyStatement]], Rule[AnyStatement]]:
    """Register the rule for a class of statements, or of declarations that stand among them."""

    def register(rule: Rule[AnyStatement]) -> Rule[AnyStatement]:
        _RULES[kind] = rule
        return rule

    return register


def check_statement(context: CheckContext, statement: ast.Node) -> None:
    """One statement or local declaration."""
    _RULES[type(statement)](context, statement)


@statement_rule(ast.Block)
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


@statement_rule(ast.Assignment)
def _assignment(context: CheckContext, statement: ast.Assignment) -> None:
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


@statement_rule(ast.CallStatement)
def _call(context: CheckContext, statement: ast.CallStatement) -> None:
    type_ = infer(context, statement.call)
    call = statement.call
    if isinstance(call, ast.Call) and call.kind == "constructor" and type_ is not UNKNOWN:
        context.error("a constructor call is not a statement; give the instance a name", statement)


@statement_rule(ast.If)
def _if(context: CheckContext, statement: ast.If) -> None:
    check_condition(context, statement.condition, "if")
    check_branch(context, statement.then)
    if statement.otherwise is not None:
        check_branch(context, statement.otherwise)


@statement_rule(ast.Empty)
def _empty(context: CheckContext, statement: ast.Empty) -> None:
    pass


@statement_rule(ast.Exit)
def _exit(context: CheckContext, statement: ast.Exit) -> None:
    if context.enclosing.kind in ("parser", "function"):
        context.error(f"'exit' cannot stand in {article(context.enclosing.kind)}", statement)


@statement_rule(ast.Break)
def _break(context: CheckContext, statement: ast.Break) -> None:
    _inside_loop(context, statement, "break")


@statement_rule(ast.Continue)
def _continue(context: CheckContext, statement: ast.Continue) -> None:
    _inside_loop(context, statement, "continue")


def _inside_loop(context: CheckContext, statement: ast.Statement, word: str) -> None:
    if not context.enclosing.loop_depth:
        context.error(f"'{word}' stands outside of any loop", statement)


@statement_rule(ast.Return)
def _return(context: CheckContext, statement: ast.Return) -> None:
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
