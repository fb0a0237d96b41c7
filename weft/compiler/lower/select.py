"""`select` of parser states."""

from __future__ import annotations

from weft.compiler import ast, ir
from weft.compiler.budgets import SELECT_ALTERNATIVES
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign
from weft.compiler.lower.calculations import scalars
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.masks import combination_count, combine
from weft.compiler.lower.storage import matchable
from weft.compiler.lower.table_keys import keyset_value
from weft.compiler.lower.values import P4Value, SetValue, StructValue
from weft.compiler.types import BOOL, bits

NO_MATCH_STATE = "noMatch"


def lower_select(
    context: Context, select: ast.Select, names: dict[str, str | None]
) -> tuple[list[ir.Expr], list[ir.KeysetMatch]]:
    """Keys and transitions of a select; what it does not match raises NoMatch."""
    keys: list[ir.Expr] = []
    for expression in select.expressions:
        keys += _select_keys(context, expression)
    for case in select.cases:
        if len(select.cases) and _is_default(case.keyset) and case is select.cases[0]:
            return [], [ir.KeysetMatch(None, None, None, names[case.state.name], case.span)]
    widths = [ir.bit_width(key.type) for key in keys]
    matches: list[ir.KeysetMatch] = []
    complete = False
    for case in select.cases:
        matches += _case(context, case, widths, names)
        if _is_default(case.keyset):
            complete = True
            break
    if not complete:
        matches.append(ir.KeysetMatch(None, None, None, _no_match(context)))
    return keys, matches


def _select_keys(context: Context, expression: ast.Expression) -> list[ir.Expr]:
    value = evaluate(context, expression)
    if isinstance(value, StructValue):
        return [_select_key(context, leaf, expression) for leaf in scalars(context, value, expression)]
    return [_select_key(context, value, expression)]


def _select_key(context: Context, value: P4Value, where: ast.Expression) -> ir.Expr:
    # Not a lookahead: in a key, BMv2 reads on behind the packet's end; in an assignment it ends the parser.
    if isinstance(value, ir.FieldRef | ir.LastField | ir.UnionLastField):
        return value
    assert isinstance(value, ir.Expr)
    if value.type is BOOL:
        value = build.convert(value, bits(1))
    copy = context.scalar_temporary(matchable(value.type), "select_key")
    assign(context, copy, value, where.span)
    return copy


def _case(
    context: Context, case: ast.SelectCase, widths: list[int], names: dict[str, str | None]
) -> list[ir.KeysetMatch]:
    target = names[case.state.name]
    keyset = case.keyset
    if _is_default(keyset):
        return [ir.KeysetMatch(None, None, None, target, case.span)]
    elements = keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
    if len(elements) == 1 and isinstance(elements[0], ast.Name):
        declaration = elements[0].declaration
        if isinstance(declaration, ast.ValueSetDeclaration):
            value = evaluate(context, elements[0])
            assert isinstance(value, SetValue)
            return [ir.KeysetMatch(None, None, value.name, target, case.span)]
    flat: list[object] = []
    for element in elements:
        if isinstance(element, ast.ListExpression):
            flat += [keyset_value(context, part) for part in element.elements]
        elif isinstance(element, ast.Name) and isinstance(element.declaration, ast.ValueSetDeclaration):
            context.refuse("BMv2 matches a value set against all keys of a select at once", element)
        else:
            flat.append(keyset_value(context, element))
    count = combination_count(flat, widths)
    if count > SELECT_ALTERNATIVES:
        context.refuse(f"the ranges of this case need {count} transitions, more than {SELECT_ALTERNATIVES}", case)
    return [ir.KeysetMatch(value, mask, None, target, case.span) for value, mask in combine(flat, widths)]


def _no_match(
    context: Context,
) -> str:
    """The state that raises NoMatch, made on first use."""
    if not any(state.name == NO_MATCH_STATE for state in context.program.states):
        number = context.program.errors.get("NoMatch", 0)
        failing = ir.Verify(build.FALSE, build.constant(number, bits(32)))
        end = [ir.KeysetMatch(None, None, None, None)]
        context.program.states.append(ir.ParseState(NO_MATCH_STATE, [failing], [], end))
    return NO_MATCH_STATE


def _is_default(keyset: ast.Expression) -> bool:
    if isinstance(keyset, ast.KeysetTuple):
        return all(isinstance(element, ast.DefaultExpression) for element in keyset.elements)
    return isinstance(keyset, ast.DefaultExpression)
