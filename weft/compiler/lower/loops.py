"""Loops: unrolled when their bounds are known, else jumps within an action (specification, section 12.8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from weft.compiler import ast
from weft.compiler.ir import Apply, Const, Expr, If, Jump, Labeled, Loop, Stmt
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar, lower_statement
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.labels import labeled
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.targets import evaluate_in_order
from weft.compiler.lower.values import P4Value, StackValue, StructValue
from weft.compiler.types import BitsType

UNROLL_LIMIT = 256
"""Longer loops become jumps, where the place allows it."""


def lower_for(context: Context, statement: ast.For) -> None:
    """for (initialisers; condition; updates) body: unrolled when it only counts, else a loop of jumps."""
    rounds = _count_rounds(context, statement)
    if rounds is not None:
        _unroll_rounds(context, statement, rounds)
        return
    for initialiser in statement.initialisers:
        lower_statement(context, initialiser)
    after, next_round = context.new_label(), context.new_label()
    with context.collecting() as head:
        condition = evaluate_scalar(context, statement.condition)
    if isinstance(condition, Const) and not condition.value:
        context.out += head
        return
    with context.collecting() as body:
        _round(context, statement.body, after, next_round)
    with context.collecting() as updates:
        for update in statement.updates:
            lower_statement(context, update)
    rounds_body = labeled(next_round, body, statement.span) + updates
    _append_loop(context, Loop(head, condition, rounds_body, statement.span), after)


def _append_loop(context: Context, loop: Loop, after: int) -> None:
    """A loop of jumps. They are primitives of an action, which applies no table."""
    for applied in _applications([*loop.head, *loop.body]):
        context.refuse(
            f"table '{applied.table.name}' is applied in a loop that BMv2 would have to run: its rounds are not known "
            f"at compile time, or are more than {UNROLL_LIMIT}",
            applied.span,
        )
    context.out += labeled(after, [loop], loop.span)


def _applications(statements: list[Stmt]) -> Iterator[Apply]:
    """Every application of a table in them and within them."""
    for statement in statements:
        if isinstance(statement, Apply):
            yield statement
        elif isinstance(statement, If):
            yield from _applications([*statement.then, *statement.otherwise])
        elif isinstance(statement, Labeled):
            yield from _applications(statement.body)
        elif isinstance(statement, Loop):
            yield from _applications([*statement.head, *statement.body])


def _counters(context: Context, statement: ast.For) -> list[ast.VariableDeclaration]:
    """Variables declared by the loop that its body leaves alone."""
    changed = _written_in(context, statement.body)
    return [
        entry
        for entry in statement.initialisers
        if isinstance(entry, ast.VariableDeclaration) and entry.initial is not None and entry.name not in changed
    ]


def _count_rounds(context: Context, statement: ast.For) -> list[dict[int, Const]] | None:
    """The counters' values in every round (and after the last), or None when they are not known."""
    counters = {entry.name: entry for entry in _counters(context, statement)}
    values: dict[int, Const] = {}
    for entry in counters.values():
        scalar = scalar_type(context.frame.type(entry.type))
        known = _known_value(context, entry.initial)
        if known is None or not isinstance(scalar, BitsType):
            return None
        values[id(entry)] = build.constant(int(known.value), scalar)
    if not counters or any(entry not in counters.values() for entry in statement.initialisers):
        return None
    rounds = [values]
    context.unrolled.take(1, statement.span)
    while len(rounds) <= UNROLL_LIMIT:
        with context.in_frame(Frame(context.frame, context.frame.path)) as inner:
            inner.values.update(rounds[-1])
            condition = _known_value(context, statement.condition)
            if condition is None:
                return None
            if not condition.value:
                return rounds
            context.unrolled.take(1, statement.span)
            following = _next_values(context, statement, counters, rounds[-1])
        if following is None:
            return None
        rounds.append(following)
    return None


def _next_values(
    context: Context,
    statement: ast.For,
    counters: dict[str, ast.VariableDeclaration],
    values: dict[int, Const],
) -> dict[int, Const] | None:
    following = dict(values)
    for update in statement.updates:
        target = update.target if isinstance(update, ast.Assignment) else None
        if not isinstance(target, ast.Name) or target.name not in counters:
            continue
        assert isinstance(update, ast.Assignment)
        known = _known_value(context, update.combined or update.expression)
        if known is None:
            return None
        key = id(counters[target.name])
        following[key] = build.constant(int(known.value), following[key].type)
        context.frame.values[key] = following[key]
    return following


def _known_value(context: Context, expression: ast.Expression | None) -> Const | None:
    if expression is None or _written_in(context, expression):
        return None
    with context.collecting() as code:
        value = evaluate(context, expression)
    return value if isinstance(value, Const) and not code else None


def _unroll_rounds(context: Context, statement: ast.For, rounds: list[dict[int, Const]]) -> None:
    after = context.new_label()
    with context.collecting() as whole:
        for index, values in enumerate(rounds[:-1]):
            next_round = context.new_label()
            context.frame.values.update(values)
            with context.collecting() as body:
                _round(context, statement.body, after, next_round)
            context.out += labeled(next_round, body, statement.span)
            if context.out and isinstance(context.out[-1], Jump):
                break
            _other_updates(context, statement, rounds[index])
    context.out += labeled(after, whole, statement.span)


def _other_updates(context: Context, statement: ast.For, values: dict[int, Const]) -> None:
    """Updates of variables other than the counters."""
    names = {entry.name for entry in _counters(context, statement) if id(entry) in values}
    for update in statement.updates:
        target = update.target if isinstance(update, ast.Assignment) else None
        if not isinstance(target, ast.Name) or target.name not in names:
            lower_statement(context, update)


def _round(context: Context, body: ast.Statement, after: int, next_round: int) -> None:
    context.loops.break_labels.append(after)
    context.loops.continue_labels.append(next_round)
    try:
        lower_statement(context, body)
    finally:
        context.loops.break_labels.pop()
        context.loops.continue_labels.pop()


def lower_for_in(context: Context, statement: ast.ForIn) -> None:
    """for (variable in collection) body."""
    collection = statement.collection
    if isinstance(collection, ast.Binary) and collection.operator == "..":
        low, high = evaluate_in_order(context, [collection.left, collection.right])
        assert isinstance(low, Expr)
        assert isinstance(high, Expr)
        if isinstance(low, Const) and isinstance(high, Const) and high.value - low.value < UNROLL_LIMIT:
            values: list[P4Value] = [Const(value, low.type) for value in range(low.value, high.value + 1)]
            _unroll(context, statement, values)
            return
        _range_loop(context, statement, low, high)
        return
    value = evaluate(context, collection)
    if isinstance(value, StackValue):
        _unroll(context, statement, value.elements)
    else:
        assert isinstance(value, StructValue)
        _unroll(context, statement, list(value.fields.values()))


def _bind_variable(context: Context, statement: ast.ForIn, value: P4Value) -> None:
    variable = statement.variable
    type_ = context.frame.type(variable.type)
    scalar = scalar_type(type_)
    if isinstance(value, Expr) and isinstance(scalar, BitsType):
        value = build.convert(value, scalar)
    if variable.name in _written_in(context, statement.body):
        # What the body writes is its own copy.
        local = context.frame.values.get(id(variable))
        if local is None or isinstance(local, Const):
            local = context.temporary(type_, variable.name)
        assign(context, local, value, statement.span)
        value = local
    context.frame.bind(variable, value)


def _unroll(context: Context, statement: ast.ForIn, values: list[P4Value]) -> None:
    context.unrolled.take(len(values), statement.span)
    after = context.new_label()
    with context.collecting() as whole:
        for value in values:
            next_round = context.new_label()
            with context.collecting() as body:
                _bind_variable(context, statement, value)
                _round(context, statement.body, after, next_round)
            context.out += labeled(next_round, body, statement.span)
            if context.out and isinstance(context.out[-1], Jump):
                break
    context.out += labeled(after, whole, statement.span)


def _range_loop(context: Context, statement: ast.ForIn, low: Expr, high: Expr) -> None:
    scalar = scalar_type(context.frame.type(statement.variable.type))
    if scalar is None:
        context.refuse(
            f"a loop of more than {UNROLL_LIMIT} rounds needs a variable of a type with a width",
            statement.variable,
        )
    counter = context.scalar_temporary(scalar)
    assign(context, counter, build.convert(low, scalar), statement.span)
    last = context.simple(build.convert(high, scalar))
    after, next_round = context.new_label(), context.new_label()
    with context.collecting() as body:
        _bind_variable(context, statement, counter)
        _round(context, statement.body, after, next_round)
    rounds: list[Stmt] = labeled(next_round, body, statement.span)
    with context.collecting() as advance:
        # The last round leaves before the counter could wrap.
        at_end = build.binary("==", counter, last)
        context.emit(If(at_end, [Jump(after)], [], statement.span))
        assign(context, counter, build.binary("+", counter, build.constant(1, scalar)), statement.span)
    loop = Loop([], build.binary("<=", counter, last), rounds + advance, statement.span)
    _append_loop(context, loop, after)


def lower_break(context: Context, statement: ast.Break) -> None:
    """A jump behind the innermost loop."""
    context.emit(Jump(context.loops.break_labels[-1], statement.span))


def lower_continue(context: Context, statement: ast.Continue) -> None:
    """A jump to the innermost loop's next round."""
    context.emit(Jump(context.loops.continue_labels[-1], statement.span))


def _written_in(context: Context, node: ast.Node) -> set[str]:
    """As `written_names`, which is asked about the same node in every round."""
    found = context.loops.written_names.get(id(node))
    if found is None:
        found = context.loops.written_names[id(node)] = written_names(node)
    return found


def written_names(node: object) -> set[str]:
    """Names that a tree assigns to, or passes where a callee may write."""
    found: set[str] = set()
    _collect_written(node, found)
    return found


def _collect_written(node: object, found: set[str]) -> None:
    if isinstance(node, list | tuple):
        for item in node:
            _collect_written(item, found)
        return
    if not isinstance(node, ast.Node):
        return
    if isinstance(node, ast.Assignment):
        _add_root(node.target, found)
    elif isinstance(node, ast.Call):
        for argument in node.ordered:
            _add_root(argument, found)
    for entry in fields(node):
        if entry.name not in ("span", "declaration", "target", "ordered", "bindings", "type", "combined"):
            _collect_written(getattr(node, entry.name), found)
    if isinstance(node, ast.Assignment):
        _collect_written(node.target, found)


def _add_root(expression: object, found: set[str]) -> None:
    while isinstance(expression, ast.Member | ast.Index | ast.Slice):
        expression = expression.base
    if isinstance(expression, ast.Name):
        found.add(expression.name)
