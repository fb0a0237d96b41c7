"""Calls: inlining of functions, actions and controls; methods of headers, stacks and packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compiler import ast
from compiler.ir import (
    Advance,
    Apply,
    Assign,
    Const,
    Expr,
    Extract,
    FieldRef,
    If,
    Jump,
    Labeled,
    Lookahead,
    ParamRef,
    Primitive,
    Reference,
    Stmt,
    Table,
)
from compiler.lower import build
from compiler.lower.expressions import Expressions
from compiler.lower.frame import Frame
from compiler.lower.overlap import overlap, places
from compiler.lower.storage import member_types, scalar_type
from compiler.lower.values import (
    ActionValue,
    BlockValue,
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    PacketValue,
    SliceTarget,
    StackCursor,
    StackValue,
    StructValue,
    TableValue,
    UnionCursor,
    UnionValue,
)
from compiler.source import Span
from compiler.types import (
    BOOL,
    VOID,
    StackType,
    StructType,
    TupleType,
    Type,
    bits,
    is_union,
    width_of,
)

# Functions and actions cannot recurse in P4; this only bounds a program that tries.
CALL_DEPTH_LIMIT = 200


class Calls(Expressions):
    """`call_value` for calls within expressions, `call` for statements."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Actions called in apply blocks: the control plane knows them, too.
        self.called_actions: list[ActionValue] = []
        # Copies that the calls around must still make.
        self.pending_copies: list[list[tuple[Any, Any]]] = []

    def apply_block(self, block: BlockValue, arguments: Sequence[Any], call: ast.Call) -> None:
        """instance.apply(…) of a control or parser."""
        raise NotImplementedError

    def extern_call(self, call: ast.Call, arguments: Sequence[ast.Expression | None]) -> Any:
        """A call of an extern function or method."""
        raise NotImplementedError

    def table_of(self, value: TableValue) -> Table:
        """The lowered table, with its keys' values computed now."""
        raise NotImplementedError

    def statements(self, body: Sequence[ast.Node]) -> None:
        """Lower statements in the current frame."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------ dispatch

    def call_value(self, expression: ast.Call) -> Any:
        """Emit a call and return its result."""
        kind = expression.kind
        if kind == "builtin":
            return self._builtin(expression)
        if kind == "function" and expression.target.body is not None:
            return self._function(expression)
        if kind in ("function", "method"):
            callee = expression.callee
            if kind == "method" and isinstance(callee, ast.Member):
                receiver = self.value(callee.base)
                if isinstance(receiver, PacketValue):
                    return self._packet(expression, receiver)
            return self.extern_call(expression, expression.ordered)
        if kind == "action":
            self._action(expression)
            return None
        if kind == "table":
            self.apply_table(expression)
            return None
        if kind in ("apply", "type_apply"):
            self._apply(expression)
            return None
        self.refuse("this call cannot be compiled here", expression)

    def _apply(self, expression: ast.Call) -> None:
        callee = expression.callee
        assert isinstance(callee, ast.Member)
        if expression.kind == "type_apply":
            declaration = expression.target
            name = self.frame.qualify(declaration.external_name())
            block = BlockValue(declaration, name, {}, dict(expression.bindings))
        else:
            block = self.value(callee.base)
            if not isinstance(block, BlockValue):
                self.refuse("only an instance can be applied", callee.base)
        self.apply_block(block, expression.ordered, expression)

    # ------------------------------------------------------------------------------ tables

    def apply_table(
        self,
        expression: ast.Call,
        hit: list[Stmt] | None = None,
        miss: list[Stmt] | None = None,
        branches: dict[str, list[Stmt]] | None = None,
        default: list[Stmt] | None = None,
    ) -> None:
        """table.apply(), with what follows a hit, a miss or an action."""
        callee = expression.callee
        assert isinstance(callee, ast.Member)
        value = self.value(callee.base)
        assert isinstance(value, TableValue)
        if self.in_action:
            self.refuse("a table cannot be applied inside an action", expression)
        table = self.table_of(value)
        self.emit(Apply(table, hit, miss, branches, default, expression.span))

    def table_result(self, call: ast.Call, member: str) -> Expr:
        """table.apply().hit or .miss as a value: kept in a variable."""
        result = self.temporary(BOOL)
        assert isinstance(result, FieldRef)
        hit: list[Stmt] = [Assign(result, build.constant(member == "hit", BOOL), call.span)]
        miss: list[Stmt] = [Assign(result, build.constant(member == "miss", BOOL), call.span)]
        self.apply_table(call, hit, miss)
        return result

    # ------------------------------------------------------------------------------ inlining

    def _function(self, expression: ast.Call) -> Any:
        function: ast.FunctionDeclaration = expression.target
        assert function.body is not None
        frame = Frame(self.globals, "", self._bindings(expression))
        result_type = frame.type(function.signature.result)
        body = function.body
        simple = _single_return(body)
        copy_out = self.bind_arguments(function.parameters, expression.ordered, frame, None, expression)
        if simple is not None and not copy_out:
            with self._deeper(expression), self.in_frame(frame):
                value = self.value(simple)
                return self.as_type(value, result_type)
        if result_type is not VOID:
            frame.return_value = self.temporary(result_type, function.name)
        with self._deeper(expression), self.copying(copy_out):
            self.inline_body(frame, body.statements, expression.span)
        self._copy_back(copy_out, expression.span)
        return frame.return_value

    def _bindings(self, expression: ast.Call) -> dict[Type, Type]:
        return {variable: self.frame.type(type_) for variable, type_ in expression.bindings.items()}

    def _deeper(self, expression: ast.Call) -> _Depth:
        return _Depth(self, expression)

    def inline_body(self, frame: Frame, body: Sequence[ast.Node], span: Span | None) -> None:
        """A body whose `return` goes to its end."""
        label = self.new_label()
        frame.return_label = label
        with self.collecting() as code, self.in_frame(frame):
            self.statements(body)
        self.out += labeled(label, code, span)

    def _action(self, expression: ast.Call) -> None:
        callee = expression.callee
        value = self.value(callee)
        assert isinstance(value, ActionValue)
        declaration = value.declaration
        if not self.in_action and not self._action_depth:
            self.called_actions.append(value)
        frame = Frame(value.frame, value.frame.path)
        written = self._everything
        copy_out = self.bind_arguments(declaration.parameters, expression.ordered, frame, written, expression)
        self._action_depth += 1
        with self._deeper(expression), self.copying(copy_out):
            self.inline_body(frame, declaration.body.statements, expression.span)
        self._action_depth -= 1
        self._copy_back(copy_out, expression.span)

    @contextmanager
    def copying(self, pairs: list[tuple[Any, Any]]) -> Iterator[None]:
        """Inside, an exit makes these copies first."""
        self.pending_copies.append(pairs)
        try:
            yield
        finally:
            self.pending_copies.pop()

    @staticmethod
    def _everything(_: Any) -> bool:
        """An action may write any variable of its control."""
        return True

    def bind_arguments(
        self,
        parameters: Sequence[ast.Parameter],
        arguments: Sequence[Any],
        frame: Frame,
        may_write: Callable[[Any], bool] | None,
        call: ast.Call,
    ) -> list[tuple[Any, Any]]:
        """Give parameters their values; returns what is to be copied back afterwards.

        Arguments pass by reference where nothing can tell the difference from copying in and out
        (specification, section 6.8): when no argument written shares storage with another. `may_write` says
        whether the callee can write storage other than by its arguments.
        """
        values: list[Any] = []
        for parameter, argument in zip(parameters, arguments, strict=True):
            values.append(self._argument(parameter, argument, values))
        touched = [places(value) for value in values]
        copy_out: list[tuple[Any, Any]] = []
        for index, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
            type_ = frame.type(parameter.type)
            written = parameter.direction in ("out", "inout")
            others = [
                touched[other]
                for other, entry in enumerate(parameters)
                if other != index and (written or entry.direction in ("out", "inout"))
            ]
            shared = any(overlap(touched[index], other) for other in others)
            if written:
                bound = self._bind_written(parameter, value, type_, shared or bool(may_write), call, copy_out)
            else:
                bound = self._bind_read(
                    value, type_, shared or (may_write is not None and may_write(value)), call
                )
            frame.bind(parameter, bound)
        return copy_out

    def _argument(self, parameter: ast.Parameter, argument: ast.Expression | None, earlier: list[Any]) -> Any:
        if argument is None:
            return None
        if not isinstance(argument, ast.Expression):
            return argument
        with self.collecting() as before:
            written = parameter.direction in ("out", "inout")
            value = self.frozen_target(argument) if written else self.value(argument)
        if before:
            for index, other in enumerate(earlier):
                if isinstance(other, Expr):
                    earlier[index] = self.snapshot(other) if not isinstance(other, FieldRef) else other
            self.out += before
        return value

    def _bind_read(self, value: Any, type_: Type, copy: bool, call: ast.Call) -> Any:
        if isinstance(value, Expr):
            scalar = scalar_type(type_)
            if scalar is not None:
                value = build.convert(value, scalar)
            if isinstance(value, Const | ParamRef) or (isinstance(value, FieldRef) and not copy):
                return value
            return self.snapshot(value)
        if isinstance(value, StructValue):
            value = self.retyped(value, type_)
        if isinstance(value, StackCursor):
            value = self.read_cursor(value, call)
        if isinstance(value, StructValue) and value.type is not None:
            inner = dict(member_types(type_)) if value.type == type_ else {}
            parts = {
                name: self._bind_read(part, inner.get(name, getattr(part, "type", type_)), copy, call)
                for name, part in value.fields.items()
            }
            return StructValue(value.type, parts)
        if (isinstance(value, HeaderValue | StackValue | UnionValue) and copy) or isinstance(
            value, HeaderElement | HeaderLiteral
        ):
            result = self.temporary(type_)
            self.assign(result, value, None)
            return result
        return value

    def _bind_written(
        self,
        parameter: ast.Parameter,
        value: Any,
        type_: Type,
        copy: bool,
        call: ast.Call,
        copy_out: list[Any],
    ) -> Any:
        direct = isinstance(
            value, FieldRef | StructValue | HeaderValue | StackValue | UnionValue | PacketValue
        )
        if isinstance(value, FieldRef) and scalar_type(type_) != value.type:
            direct = False
        if direct and not copy:
            if parameter.direction == "out":
                self.invalidate(value, call.span)
            return value
        local = self.temporary(type_, parameter.name)
        if parameter.direction == "inout" and value is not None:
            self.assign(local, self.read_target(value), call.span)
        elif parameter.direction == "out":
            self.invalidate(local, call.span)
        if value is not None:
            copy_out.append((value, local))
        return local

    def read_target(self, target: Any) -> Any:
        """The value of something that can be written."""
        if isinstance(target, SliceTarget):
            return build.slice_of(target.target, target.high, target.low)
        return target

    def _copy_back(self, pairs: list[tuple[Any, Any]], span: Span | None) -> None:
        for target, local in pairs:
            self.assign(target, local, span)

    def copy_back(self, pairs: list[tuple[Any, Any]], span: Span | None) -> None:
        """Write the copies of `out` and `inout` arguments back."""
        self._copy_back(pairs, span)

    # ------------------------------------------------------------------------------ headers, stacks

    def _builtin(self, expression: ast.Call) -> Any:
        callee = expression.callee
        assert isinstance(callee, ast.Member)
        name = expression.target
        base = self.value(callee.base)
        if name == "isValid":
            return self.validity(base, expression)
        if name in ("push_front", "pop_front"):
            return self._push_pop(expression, base, name)
        if name == "setValid":
            self._set_valid(base, expression)
        elif name == "setInvalid":
            self._set_invalid(base, expression)
        else:
            self.refuse(f"'{name}' is not known at compile time here", expression)
        return None

    def _push_pop(self, expression: ast.Call, base: Any, name: str) -> None:
        count = self.value(expression.ordered[0])
        if not isinstance(count, Const) or not isinstance(base, StackValue):
            self.refuse(f"'{name}' needs a constant count", expression)
        element = base.type.element
        union = isinstance(element, StructType) and element.kind == "header_union"
        stack = Reference("header_union_stack" if union else "header_stack", base.name)
        amount = Const(min(int(count.value), len(base.elements)), bits(32))
        self.emit(Primitive(name.removesuffix("_front"), [stack, amount], expression.span))

    def _set_valid(self, base: Any, where: ast.Expression) -> None:
        if isinstance(base, HeaderValue):
            self.emit(Primitive("add_header", [Reference("header", base.name)], where.span))
        elif isinstance(base, HeaderElement):
            self._each_element(base, where, self._set_valid)
        else:
            self.refuse("'setValid' needs a header", where)

    def _set_invalid(self, base: Any, where: ast.Expression) -> None:
        if isinstance(base, HeaderElement):
            self._each_element(base, where, self._set_invalid)
        else:
            self.invalidate(base, where.span)

    def _each_element(
        self, base: HeaderElement, where: ast.Expression, do: Callable[[Any, ast.Expression], None]
    ) -> None:
        for index, element in enumerate(base.stack.elements):
            with self.collecting() as code:
                do(element, where)
            here = build.binary("==", base.index, build.constant(index, base.index.type))
            self.emit(If(here, code, [], where.span))

    # ------------------------------------------------------------------------------ packets

    def _packet(self, expression: ast.Call, packet: PacketValue) -> Any:
        name = expression.target.name
        if name == "extract":
            self._extract(expression)
            return None
        if name == "lookahead":
            return self._lookahead(expression)
        if name == "advance":
            self.emit(Advance(self.scalar(expression.ordered[0]), expression.span))
            return None
        if name == "emit":
            self.emit_headers(self.value(expression.ordered[0]), expression)
            return None
        self.refuse(f"BMv2 has no '{packet.kind}.{name}'", expression)

    def emit_headers(self, value: Any, where: ast.Node) -> None:
        """packet_out.emit."""
        raise NotImplementedError

    def _extract(self, expression: ast.Call) -> None:
        argument = expression.ordered[0]
        length = self.scalar(expression.ordered[1]) if len(expression.ordered) > 1 else None
        span = expression.span
        if argument is None:
            type_ = self.frame.type(next(iter(expression.bindings.values())))
            self.emit(Extract("regular", self.temporary(type_, "ignored").name, None, length, span))
            return
        target = self.target(argument)
        if isinstance(target, HeaderValue):
            self.emit(Extract("regular", target.name, None, length, span))
        elif isinstance(target, StackCursor) and target.which == "next":
            self.emit(Extract("stack", target.stack.name, None, length, span))
        elif isinstance(target, UnionCursor) and target.cursor.which == "next":
            self.emit(Extract("union_stack", target.cursor.stack.name, target.member, length, span))
        elif isinstance(target, HeaderElement):
            copy = self.temporary(target.stack.type.element)
            self.emit(Extract("regular", copy.name, None, length, span))
            self.assign(target, copy, span)
        else:
            self.refuse("BMv2 can extract into a header or the next element of a stack only", argument)

    def is_lookahead(self, expression: ast.Expression) -> bool:
        """Whether it is packet.lookahead<…>() itself."""
        return (
            isinstance(expression, ast.Call)
            and expression.kind == "method"
            and expression.target.name == "lookahead"
            and isinstance(expression.callee, ast.Member)
            and str(expression.callee.base.type) == "packet_in"
        )

    def direct_lookahead(self, expression: ast.Call) -> Lookahead | None:
        """The lookahead of an unsigned scalar, usable where BMv2 takes one directly."""
        scalar = scalar_type(self.type_of(expression))
        if scalar is None or scalar is BOOL or getattr(scalar, "signed", True):
            return None
        return Lookahead(0, bits(width_of(scalar) or 1))

    def _lookahead(self, expression: ast.Call) -> Any:
        type_ = self.type_of(expression)
        value, _ = self._look(type_, 0, expression)
        return value

    def _look(self, type_: Type, offset: int, where: ast.Expression) -> tuple[Any, int]:
        scalar = scalar_type(type_)
        if scalar is not None:
            width = width_of(type_) if scalar is not BOOL else 1
            if width is None or hasattr(scalar, "__len__"):
                self.refuse(f"cannot look ahead at a value of type '{type_}'", where)
            raw = self.snapshot(Lookahead(offset, bits(width)), where.span)
            return build.convert(raw, scalar), offset + width
        if not isinstance(type_, StructType | TupleType | StackType) or is_union(type_):
            self.refuse(f"cannot look ahead at a value of type '{type_}'", where)
        parts: dict[str, Any] = {}
        for name, inner in member_types(type_):
            parts[name], offset = self._look(inner, offset, where)
        if isinstance(type_, StructType) and type_.kind == "header":
            return HeaderLiteral(type_, parts), offset
        return StructValue(type_, parts), offset


class _Depth:
    """Counts nested calls."""

    def __init__(self, lowerer: Calls, expression: ast.Call) -> None:
        self.lowerer = lowerer
        self.expression = expression

    def __enter__(self) -> None:
        self.lowerer._call_depth += 1
        if self.lowerer._call_depth > CALL_DEPTH_LIMIT:
            self.lowerer.refuse(f"calls nest more than {CALL_DEPTH_LIMIT} deep", self.expression)

    def __exit__(self, *_: object) -> None:
        self.lowerer._call_depth -= 1


def labeled(label: int, code: list[Stmt], span: Span | None) -> list[Stmt]:
    """Labeled(label, code) without the jumps at its end; plain `code` when no jump is left."""
    code = _without_tail_jumps(label, code)
    if _jumps_to(label, code):
        return [Labeled(label, code, span)]
    return code


def _without_tail_jumps(label: int, code: list[Stmt]) -> list[Stmt]:
    while code and isinstance(code[-1], Jump) and code[-1].label == label:
        code = code[:-1]
    if code and isinstance(code[-1], If):
        last = code[-1]
        then = _without_tail_jumps(label, last.then)
        otherwise = _without_tail_jumps(label, last.otherwise)
        code = [*code[:-1], If(last.condition, then, otherwise, last.span)]
    return code


def _jumps_to(label: int, code: Sequence[Stmt]) -> bool:
    for statement in code:
        if isinstance(statement, Jump) and statement.label == label:
            return True
        if any(_jumps_to(label, branch) for branch in branches_of(statement)):
            return True
    return False


def branches_of(statement: Stmt) -> list[list[Stmt]]:
    """The statement lists inside a statement."""
    from compiler.ir import Loop

    if isinstance(statement, If):
        return [statement.then, statement.otherwise]
    if isinstance(statement, Labeled):
        return [statement.body]
    if isinstance(statement, Loop):
        return [statement.head, statement.body]
    if isinstance(statement, Apply):
        lists = [statement.hit, statement.miss, statement.default, *(statement.branches or {}).values()]
        return [branch for branch in lists if branch]
    return []


def _single_return(body: ast.Block) -> ast.Expression | None:
    if len(body.statements) == 1:
        only = body.statements[0]
        if isinstance(only, ast.Return):
            return only.expression
    return None
