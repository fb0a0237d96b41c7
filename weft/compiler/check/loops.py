"""Checking of loops (specification, section 12.8)."""

from __future__ import annotations

from dataclasses import replace

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.statements import check_branch, check_condition, check_statement
from weft.compiler.check.type_nodes import resolve
from weft.compiler.types import (
    INTEGER,
    UNKNOWN,
    BitsType,
    ListType,
    SetType,
    StackType,
    TupleType,
    Type,
    TypeVariable,
)


def check_for(context: CheckContext, statement: ast.For) -> None:
    """`for (initialisers; condition; updates)`."""
    with context.inner_scope():
        for initialiser in statement.initialisers:
            check_statement(context, initialiser)
        check_condition(context, statement.condition, "for")
        with context.within(replace(context.enclosing, loop_depth=context.enclosing.loop_depth + 1)):
            for update in statement.updates:
                check_statement(context, update)
            check_branch(context, statement.body)


def check_for_in(context: CheckContext, statement: ast.ForIn) -> None:
    """`for (type name in collection)`."""
    with context.inner_scope():
        variable = statement.variable
        wanted = variable.type = resolve(context, variable.node)
        collection = infer(context, statement.collection, SetType(wanted) if isinstance(wanted, BitsType) else None)
        element = _element_of(collection)
        if element is None and collection is not UNKNOWN:
            context.error(f"cannot loop over a value of type '{collection}'", statement.collection)
        elif element not in (wanted, UNKNOWN, INTEGER) and UNKNOWN not in (wanted, collection):
            context.error(f"the loop's variable is '{wanted}', the elements are '{element}'", variable)
        context.declare(variable)
        with context.within(replace(context.enclosing, loop_depth=context.enclosing.loop_depth + 1)):
            check_branch(context, statement.body)


def _element_of(collection: Type) -> Type | None:
    if isinstance(collection, SetType | StackType | ListType):
        return collection.element
    if isinstance(collection, TupleType):
        return collection.elements[0] if len(set(collection.elements)) == 1 else None
    if isinstance(collection, TypeVariable):
        return UNKNOWN
    return None
