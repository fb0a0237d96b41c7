"""Parsers: states, select, sub-parsers; conditions within a state become states of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.compiler import ast
from weft.compiler.ir import Expr, If, Jump, KeysetMatch, Labeled, Loop, ParseState, Stmt, ValueSet
from weft.compiler.lower import build
from weft.compiler.lower.arguments import bind_arguments, copy_back
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.controls import block_bindings, instance_frame
from weft.compiler.lower.declarations import declare_variable
from weft.compiler.lower.dispatch import evaluate, lower_statements
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.select import lower_select
from weft.compiler.lower.sizes import control_plane_size
from weft.compiler.lower.values import BlockValue, P4Value, SetValue
from weft.compiler.source import Span
from weft.compiler.types import SetType, bits, width_of

_Finish = Callable[[tuple[str, list[Stmt]]], None]
"""Ends a state, given its name and operations."""


class _SubParser(Stmt):
    """Marks, among a state's statements, where a sub-parser runs."""

    __slots__ = ("block", "frame", "span")

    def __init__(self, block: BlockValue, frame: Frame, span: Span) -> None:
        self.block = block
        self.frame = frame
        self.span = span


def lower_parser(context: Context, block: BlockValue, arguments: Sequence[P4Value]) -> None:
    """The parser of the pipeline; its arguments are values."""
    declaration = block.declaration
    assert isinstance(declaration, ast.ParserDeclaration)
    context.place = "parser"
    frame = Frame(instance_frame(context, block), block.name, block.bindings)
    for parameter, value in zip(declaration.parameters, arguments, strict=True):
        frame.bind(parameter, value)
    with context.in_frame(frame), context.collecting() as first:
        _locals(context, declaration, frame)
    _states(context, declaration, frame, "", None, first)


def _locals(context: Context, declaration: ast.ParserDeclaration, frame: Frame) -> None:
    for local in declaration.locals:
        if isinstance(local, ast.VariableDeclaration):
            declare_variable(context, local)
        elif isinstance(local, ast.ValueSetDeclaration):
            _value_set(context, local, frame)


def _value_set(context: Context, local: ast.ValueSetDeclaration, frame: Frame) -> None:
    assert isinstance(local.type, SetType)
    name = frame.name_of(local)
    element = frame.type(local.type.element)
    width = width_of(element)
    size = evaluate(context, local.size)
    if width is None:
        context.refuse(f"a value set cannot hold values of type '{element}', which has no fixed width", local.node)
    members = control_plane_size(context, size, f"the size of value set '{name}'", local.size)
    if not any(known.name == name for known in context.program.value_sets):
        context.program.value_sets.append(ValueSet(name, width, members))
    context.control_plane.value_set_sources[name] = (local, frame)
    frame.bind(local, SetValue(name))


def apply_parser(context: Context, block: BlockValue, arguments: Sequence[P4Value], call: ast.Call) -> None:
    """instance.apply(…) of a sub-parser, within a state."""
    declaration = block.declaration
    assert isinstance(declaration, ast.ParserDeclaration)
    frame = Frame(instance_frame(context, block), block.name, block_bindings(context, block, call))
    copy_out = bind_arguments(context, declaration.parameters, arguments, frame, None, call)
    with context.in_frame(frame):
        _locals(context, declaration, frame)
    context.emit(_SubParser(block, frame, call.span))
    copy_back(context, copy_out, call.span)


def _states(
    context: Context,
    declaration: ast.ParserDeclaration,
    frame: Frame,
    prefix: str,
    accept: str | None,
    first: list[Stmt],
) -> str:
    """All states of one parser instance; `accept` is where its end leads. Returns the start's name."""
    assert declaration.states is not None
    names = {"accept": accept, "reject": None}
    for state in declaration.states:
        wanted = state.name if not prefix else f"{prefix}_{state.name}"
        names[state.name] = wanted if wanted == "start" else context.storage.unique(wanted)
    for state in declaration.states:
        name = names[state.name]
        assert name is not None
        with context.in_frame(Frame(frame, frame.path)) as inner, context.collecting() as code:
            if state.name == "start":
                context.out += first
            lower_statements(context, state.statements)
            keys, matches = _transition(context, state, names, inner)
        _emit_state(context, name, code, keys, matches, state.span)
    start = names["start"]
    assert start is not None
    return start


def _transition(
    context: Context, state: ast.StateDeclaration, names: dict[str, str | None], frame: Frame
) -> tuple[list[Expr], list[KeysetMatch]]:
    transition = state.transition
    if transition is None:
        return [], [KeysetMatch(None, None, None, None)]
    if isinstance(transition, ast.Name):
        return [], [KeysetMatch(None, None, None, names[transition.name])]
    return lower_select(context, transition, names)


def _emit_state(
    context: Context,
    name: str,
    code: list[Stmt],
    keys: list[Expr],
    matches: list[KeysetMatch],
    span: Span | None,
) -> None:
    """A state, split where its statements branch; labels resolve to the states after them."""
    _split(context, name, code, lambda last: _finish(context, last, keys, matches, span), {}, span)


def _finish(
    context: Context,
    state: tuple[str, list[Stmt]],
    keys: list[Expr],
    matches: list[KeysetMatch],
    span: Span | None,
) -> None:
    name, operations = state
    context.program.states.append(ParseState(name, operations, keys, matches, span))


def _goto(context: Context, name: str, operations: list[Stmt], target: str | None, span: Span | None) -> None:
    matches = [KeysetMatch(None, None, None, target)]
    context.program.states.append(ParseState(name, operations, [], matches, span))


def _ending_at(context: Context, target: str, span: Span | None) -> _Finish:
    """How to finish a state that goes on at `target`."""
    return lambda last: _goto(context, last[0], last[1], target, span)


def _split(
    context: Context, name: str, code: list[Stmt], finish: _Finish, labels: dict[int, str], span: Span | None
) -> None:
    """Emit `code` as the state `name`, then `finish((last state's name, its operations))`."""
    for index, statement in enumerate(code):
        if not isinstance(statement, If | Labeled | Jump | Loop | _SubParser):
            continue
        before, after = code[:index], code[index + 1 :]
        if isinstance(statement, Jump):
            _goto(context, name, before, labels[statement.label], span)
            return
        if isinstance(statement, Loop):
            context.refuse("a loop in a parser needs bounds known at compile time", statement.span)
        rest = context.storage.unique(f"{name}_join")
        if isinstance(statement, If):
            _branch_states(context, name, before, statement, rest, labels, span)
        elif isinstance(statement, Labeled):
            inner = {**labels, statement.label: rest}
            body = before + statement.body
            _split(context, name, body, _ending_at(context, rest, span), inner, span)
        else:
            declaration = statement.block.declaration
            assert isinstance(declaration, ast.ParserDeclaration)
            context.inlined.take(1, statement.span)
            prefix = statement.block.name.rsplit(".", 1)[-1]
            start = _states(context, declaration, statement.frame, prefix, rest, [])
            _goto(context, name, before, start, span)
        _split(context, rest, after, finish, labels, span)
        return
    finish((name, code))


def _branch_states(
    context: Context,
    name: str,
    before: list[Stmt],
    statement: If,
    rest: str,
    labels: dict[int, str],
    span: Span | None,
) -> None:
    with context.collecting() as code:
        key = _select_condition(context, statement.condition)
    targets: list[str] = []
    for branch, suffix in ((statement.then, "true"), (statement.otherwise, "false")):
        targets.append(context.storage.unique(f"{name}_{suffix}") if branch else rest)
    matches = [KeysetMatch(1, 0xFF, None, targets[0]), KeysetMatch(None, None, None, targets[1])]
    context.program.states.append(ParseState(name, before + code, [key], matches, statement.span))
    for branch, target in zip((statement.then, statement.otherwise), targets, strict=True):
        if branch:
            _split(context, target, branch, _ending_at(context, rest, span), labels, span)


def _select_condition(context: Context, condition: Expr) -> Expr:
    copy = context.scalar_temporary(bits(1), "condition")
    assign(context, copy, build.convert(condition, bits(1)), None)
    return copy
