"""Reads, writes and calls within expressions, for the analysis of flow."""

from __future__ import annotations

from typing import Protocol

from weft.compiler import ast
from weft.compiler.subexpressions import parts
from weft.compiler.types import StackType, StructType, Type, is_header, is_union, strip_new
from weft.compiler.warnings.flow_state import (
    INVALID,
    TESTED_INVALID,
    UNKNOWN_VALIDITY,
    UNWRITTEN,
    VALID,
    VALIDITY,
    WRITTEN,
    Path,
    State,
    declare_unwritten,
    header_fields,
    join,
    join_outcomes,
)
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.reporter import WarningReporter

_STACK_CURSORS = ("next", "last")
# Methods of the packet: what they do to a header is known.
_EXTRACT = "extract"

Local = ast.VariableDeclaration | ast.Parameter


class Bodies(Protocol):
    """Tells what happens in the bodies that an expression calls."""

    def after_table(self, call: ast.Expression, state: State) -> tuple[State | None, State | None] | None:
        """The states after a table's hit and miss, if `call` applies one."""

    def after_body(self, call: ast.Call, state: State | None) -> State | None:
        """The effects of a call, except on its parameters."""


class FlowExpressions:
    """`state` is what holds before the expression that is looked at; None while nothing is reached."""

    def __init__(self, reporter: WarningReporter, bodies: Bodies) -> None:
        self._reporter = reporter
        self._bodies = bodies
        self.quiet = 0
        self._names: dict[int, ast.Declaration] = {}

    # ---- places

    def path(self, expression: ast.Expression | None) -> Path | None:
        """The place that an expression names; None if it is none, or which one depends on the packet."""
        if isinstance(expression, ast.Name):
            if isinstance(expression.declaration, Local):
                self._names[id(expression.declaration)] = expression.declaration
                return (id(expression.declaration),)
            return None
        if isinstance(expression, ast.Member):
            if isinstance(_type(expression.base), StackType):
                return None
            base = self.path(expression.base)
            return None if base is None else (*base, expression.name)
        if isinstance(expression, ast.Index):
            base = self.path(expression.base)
            index = expression.index.value
            return None if base is None or not isinstance(index, int) else (*base, index)
        if isinstance(expression, ast.Slice):
            return self.path(expression.base)
        return None

    def _container(self, expression: ast.Expression) -> Path | None:
        """The smallest known place that the one of `expression` lies in."""
        while isinstance(expression, ast.Member | ast.Index | ast.Slice):
            found = self.path(expression)
            if found is not None:
                return found
            expression = expression.base
        return self.path(expression)

    # ---- reading

    def read(self, expression: ast.Expression | None, state: State | None) -> State | None:
        """Evaluate for its value; the state afterwards."""
        if expression is None or state is None or isinstance(expression, ast.TypeExpression):
            return state
        if isinstance(expression, ast.Call):
            return self.call(expression, state)
        if isinstance(expression, ast.Name | ast.Member | ast.Index):
            return self._read_place(expression, state)
        if isinstance(expression, ast.Binary) and expression.operator in ("&&", "||"):
            return join(*self.condition(expression, state))
        if isinstance(expression, ast.Ternary):
            yes, no = self.condition(expression.condition, state)
            return join(self.read(expression.first, yes), self.read(expression.second, no))
        for part in parts(expression):
            state = self.read(part, state)
        return state

    def condition(self, expression: ast.Expression, state: State | None) -> tuple[State | None, State | None]:
        """The states where a condition holds and where it does not."""
        if state is None:
            return None, None
        if isinstance(expression, ast.Unary) and expression.operator == "!":
            yes, no = self.condition(expression.operand, state)
            return no, yes
        if isinstance(expression, ast.Binary) and expression.operator == "&&":
            yes, no = self.condition(expression.left, state)
            both, not_right = self.condition(expression.right, yes)
            return both, join(no, not_right)
        if isinstance(expression, ast.Binary) and expression.operator == "||":
            yes, no = self.condition(expression.left, state)
            right, neither = self.condition(expression.right, no)
            return join(yes, right), neither
        if isinstance(expression, ast.Call) and expression.target == "isValid":
            assert isinstance(expression.callee, ast.Member)
            return self._tested(expression.callee.base, state)
        if isinstance(expression, ast.Member) and expression.name in ("hit", "miss"):
            outcome = self._bodies.after_table(expression.base, state)
            if outcome is not None:
                hit, miss = outcome
                return (hit, miss) if expression.name == "hit" else (miss, hit)
        after = self.read(expression, state)
        if expression.value is True:
            return after, None
        if expression.value is False:
            return None, after
        return after, after.copy() if after is not None else None

    def _tested(self, header: ast.Expression, state: State) -> tuple[State, State]:
        path = self.path(header)
        if path is None or not _is_header(header):
            return state, state.copy()
        valid, invalid = state.copy(), state.copy()
        valid.set((*path, VALIDITY), VALID)
        if not state.get((*path, VALIDITY)) & INVALID:
            invalid.set((*path, VALIDITY), TESTED_INVALID)
        return valid, invalid

    def _read_place(self, expression: ast.Expression, state: State) -> State | None:
        if isinstance(expression, ast.Index):
            after = self.read(expression.index, state)
            if after is None:
                return None
            state = after
        path = self.path(expression)
        if path is None:
            base = getattr(expression, "base", None)
            return self.read(base, state) if isinstance(base, ast.Call | ast.Index) else state
        self._require_valid(expression, state, "read")
        if not _is_header(expression) and not isinstance(_type(expression), StackType):
            self._require_written(expression, path, state)
        return state

    def _require_written(self, expression: ast.Expression, path: Path, state: State) -> None:
        amiss = [place for place in state.below(path) if place[-1] != VALIDITY and state.bits[place] & UNWRITTEN]
        if not amiss or self._in_invalid_header(path, state):
            return
        text = expression.span.fragment()
        if amiss == [path]:
            certain = state.bits[path] == UNWRITTEN
            message = f"'{text}' {'is' if certain else 'may be'} read before it is written"
        else:
            fields = ", ".join(f"'{_dotted(place[len(path) :])}'" for place in amiss[:3])
            more = ", …" if len(amiss) > 3 else ""
            message = f"'{text}' is read before it is written as a whole: {fields}{more}"
        self._warn(Kind.UNINITIALIZED_USE, message, expression, path)

    def _require_valid(self, expression: ast.Expression, state: State, verb: str) -> None:
        """Warn if `expression` is a field of a header that is not valid."""
        whole = expression
        while isinstance(expression, ast.Slice | ast.Member | ast.Index):
            if isinstance(expression, ast.Member) and _is_header(expression.base):
                break
            expression = expression.base
        else:
            return
        header = self.path(expression.base)
        if header is None:
            return
        validity = state.get((*header, VALIDITY))
        if validity & INVALID or validity == TESTED_INVALID:
            certain = not validity & ~(INVALID | TESTED_INVALID)
            name = expression.base.span.fragment()
            self._warn(
                Kind.INVALID_HEADER,
                f"'{expression.name}' is {verb}, but header '{name}' {'is' if certain else 'may be'} invalid",
                whole,
                header,
            )

    def _in_invalid_header(self, path: Path, state: State) -> bool:
        return any(state.get((*path[:size], VALIDITY)) & (INVALID | TESTED_INVALID) for size in range(1, len(path)))

    def _warn(self, kind: Kind, message: str, where: ast.Node, path: Path) -> None:
        if self.quiet:
            return
        declaration = self._names[path[0]]  # type: ignore[index]
        self._reporter.warn(kind, message, where.span).note(f"'{declaration.name}' is declared here", declaration.span)

    # ---- writing

    def write(self, target: ast.Expression | None, state: State | None, *, whole: bool = True) -> State | None:
        """Give `target` a value from elsewhere; with `whole` False, only a part of it."""
        if target is None or state is None:
            return state
        if isinstance(target, ast.Index):
            state = self.read(target.index, state)
            if state is None:
                return None
        path = self.path(target)
        if path is None:
            container = self._container(target)
            if container is not None:
                state.forget(container)
            return state
        self._require_valid(target, state, "written")
        if isinstance(target, ast.Slice):
            # A part of the bits: counts as written, since which bits are read is not followed.
            state.set(path, WRITTEN)
        elif whole:
            state.forget(path)
        return state

    def assign(self, target: ast.Expression, source: ast.Expression, state: State | None) -> State | None:
        """`target = source`, where copies of structs and headers keep what is known of each field."""
        from_path, to_path = self.path(source), self.path(target)
        type_ = _type(source)
        if state is not None and from_path is not None and to_path is not None and isinstance(type_, StructType):
            self._require_valid(source, state, "read")
            state.copy_from(to_path, from_path)
            if _is_header(target):
                self._invalidate_siblings(target, to_path, state)
            return state
        if state is not None and to_path is not None and isinstance(source, ast.InvalidHeader):
            self.set_validity(target, state, False)
            return state
        state = self.read(source, state)
        state = self.write(target, state)
        if state is not None and to_path is not None and _is_header(target):
            state.set(
                (*to_path, VALIDITY),
                VALID if isinstance(source, ast.ListExpression | ast.StructExpression) else 4,
            )
        return state

    def set_validity(self, header: ast.Expression, state: State, valid: bool) -> None:
        """setValid() and setInvalid()."""
        path = self.path(header)
        if path is None:
            container = self._container(header)
            if container is not None:
                state.forget(container)
            return
        if header.type is not None and is_union(header.type):
            state.forget(path)
            return
        was = state.get((*path, VALIDITY))
        state.forget(path)
        if not valid:
            state.set((*path, VALIDITY), INVALID)
            return
        if not was & ~(INVALID | TESTED_INVALID):
            for field in header_fields(header.type, path):
                state.set(field, UNWRITTEN)
        self._become_valid(header, path, state)

    def _become_valid(self, header: ast.Expression, path: Path, state: State) -> None:
        state.set((*path, VALIDITY), VALID)
        self._invalidate_siblings(header, path, state)

    def _invalidate_siblings(self, header: ast.Expression, path: Path, state: State) -> None:
        """At most one header of a union is valid: the others are not, once one may have become so."""
        union = header.base.type if isinstance(header, ast.Member) else None
        if union is None or not is_union(union):
            return
        validity = state.get((*path, VALIDITY))
        for sibling in header_fields(union, path[:-1]):
            if sibling != path:
                state.forget(sibling)
                state.set((*sibling, VALIDITY), INVALID if validity == VALID else UNKNOWN_VALIDITY)

    # ---- calls

    def call(self, call: ast.Call, state: State | None) -> State | None:
        """A call: arguments in order, then its effects."""
        if state is None:
            return None
        if call.kind == "table":
            outcome = self._bodies.after_table(call, state)
            return join_outcomes(outcome) if outcome is not None else state
        if call.kind == "builtin":
            return self._builtin(call, state)
        if call.kind == "constructor":
            return state
        if call.kind == "method" and getattr(call.target, "name", "") == _EXTRACT and call.ordered:
            return self._extract(call, state)
        parameters = getattr(call.target, "parameters", None) or []
        state = self._arguments_in(call, parameters, state)
        state = self._bodies.after_body(call, state)
        if state is not None:
            self._arguments_out(call, parameters, state)
        return state

    def _arguments_in(self, call: ast.Call, parameters: list[ast.Parameter], state: State | None) -> State | None:
        self._overlaps(call, parameters)
        for argument, parameter in _bound(call, parameters):
            if parameter.direction != "out":
                state = self.read(argument, state)
        if isinstance(call.callee, ast.Member) and not isinstance(call.callee.base, ast.TypeExpression):
            state = self.read(call.callee.base, state) if isinstance(call.callee.base, ast.Call) else state
        return state

    def _arguments_out(self, call: ast.Call, parameters: list[ast.Parameter], state: State) -> None:
        for argument, parameter in _bound(call, parameters):
            if parameter.direction in ("out", "inout"):
                self.write(argument, state)

    def _overlaps(self, call: ast.Call, parameters: list[ast.Parameter]) -> None:
        """Warn if two arguments that the call writes share storage."""
        written = [
            (path, argument)
            for argument, parameter in _bound(call, parameters)
            if parameter.direction in ("out", "inout") and not isinstance(argument, ast.Slice)
            if (path := self.path(argument)) is not None
        ]
        for index, (path, argument) in enumerate(written):
            for other_path, other in written[:index]:
                size = min(len(path), len(other_path))
                if path[:size] == other_path[:size]:
                    self._warn(
                        Kind.ORDERING,
                        f"the call writes '{other.span.fragment()}' and '{argument.span.fragment()}', which "
                        "share storage: the order of copying decides",
                        argument,
                        path,
                    )

    def _builtin(self, call: ast.Call, state: State) -> State | None:
        callee = call.callee
        assert isinstance(callee, ast.Member)
        if call.target in ("setValid", "setInvalid"):
            self.set_validity(callee.base, state, call.target == "setValid")
        elif call.target in ("push_front", "pop_front"):
            path = self.path(callee.base)
            if path is not None:
                state.forget(path)
        elif call.target == "isValid" and isinstance(callee.base, ast.Index):
            return self.read(callee.base.index, state)
        return state

    def _extract(self, call: ast.Call, state: State) -> State | None:
        header = call.ordered[0]
        for length in call.ordered[1:]:
            if length is not None:
                after = self.read(length, state)
                if after is None:
                    return None
                state = after
        if header is None:
            return state
        path = self.path(header)
        if path is not None:
            state.forget(path)
            self._become_valid(header, path, state)
            return state
        return self.write(header, state)

    def note(self, declaration: Local) -> None:
        """Remember what a place is called, for messages."""
        self._names[id(declaration)] = declaration

    def declare(self, declaration: Local, state: State) -> None:
        """A variable or out parameter without a value."""
        self._names[id(declaration)] = declaration
        declare_unwritten(state, declaration.type, (id(declaration),))


def _bound(call: ast.Call, parameters: list[ast.Parameter]) -> list[tuple[ast.Expression, ast.Parameter]]:
    pairs = zip(call.ordered, parameters, strict=False)
    return [(argument, parameter) for argument, parameter in pairs if argument is not None]


def _type(expression: ast.Expression) -> Type | None:
    return strip_new(expression.type) if expression.type is not None else None


def _is_header(expression: ast.Expression) -> bool:
    return expression.type is not None and is_header(expression.type)


def _dotted(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
