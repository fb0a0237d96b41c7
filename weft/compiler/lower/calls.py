"""Calls: dispatch by kind, and the inlining of functions, actions and controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.compiler import ast
from weft.compiler.budgets import CALL_DEPTH
from weft.compiler.ir import (
    Apply,
    Assign,
    Expr,
    FieldRef,
    Stmt,
    Table,
)
from weft.compiler.lower import build
from weft.compiler.lower.arguments import Arguments
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.labels import labeled
from weft.compiler.lower.values import (
    ActionValue,
    BlockValue,
    PacketValue,
    TableValue,
)
from weft.compiler.source import Span
from weft.compiler.types import (
    BOOL,
    VOID,
    Type,
)


class Calls(Arguments):
    """`call_value` for calls within expressions, `call` for statements."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Actions called in apply blocks: the control plane knows them, too.
        self.called_actions: list[ActionValue] = []

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
            return self.header_call(expression)
        if kind == "function" and expression.target.body is not None:
            return self._function(expression)
        if kind in ("function", "method"):
            callee = expression.callee
            if kind == "method" and isinstance(callee, ast.Member):
                receiver = self.value(callee.base)
                if isinstance(receiver, PacketValue):
                    return self.packet_call(expression, receiver)
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
        self.copy_back(copy_out, expression.span)
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
        self.copy_back(copy_out, expression.span)

    @staticmethod
    def _everything(_: Any) -> bool:
        """An action may write any variable of its control."""
        return True

    # ------------------------------------------------------------------------------ packets


class _Depth:
    """Counts calls, and nested ones."""

    def __init__(self, lowerer: Calls, expression: ast.Call) -> None:
        self.lowerer = lowerer
        self.expression = expression

    def __enter__(self) -> None:
        self.lowerer.inlined.take(1, self.expression.span)
        self.lowerer._call_depth += 1
        if self.lowerer._call_depth > CALL_DEPTH:
            self.lowerer.refuse(f"calls nest more than {CALL_DEPTH} deep", self.expression)

    def __exit__(self, *_: object) -> None:
        self.lowerer._call_depth -= 1


def _single_return(body: ast.Block) -> ast.Expression | None:
    if len(body.statements) == 1:
        only = body.statements[0]
        if isinstance(only, ast.Return):
            return only.expression
    return None
