"""Lowering of statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.ir import Const, Exit, Expr, If, Jump, Stmt
from weft.compiler.lower import build
from weft.compiler.lower.calls import Calls
from weft.compiler.lower.loops import LoopBounds
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.values import TableValue
from weft.compiler.subexpressions import walk
from weft.compiler.types import INTEGER


class Statements(LoopBounds, Calls):
    """`statement` for every kind."""

    def instantiate_local(self, declaration: ast.InstanceDeclaration) -> None:
        """An instance declared among statements."""
        raise NotImplementedError

    def statements(self, body: Sequence[ast.Node]) -> None:
        """Lower statements in the current frame; those after a jump are dropped."""
        for statement in body:
            try:
                self.statement(statement)
            except Refused:
                # Reported; what follows may be wrong, too.
                continue
            if self.out and isinstance(self.out[-1], Jump | Exit):
                return

    def statement(self, statement: ast.Node) -> None:
        """One statement or local declaration."""
        handler = self._STATEMENTS.get(type(statement))
        if handler is None:
            self.refuse("this statement cannot be compiled", statement)
        handler(self, statement)

    def _assignment(self, statement: ast.Assignment) -> None:
        expression = statement.expression
        if statement.combined is not None:
            self._combined(statement, statement.combined)
            return
        if self.is_lookahead(expression):
            assert isinstance(expression, ast.Call)
            target = self.target(statement.target)
            direct = self.direct_lookahead(expression)
            if direct is not None and isinstance(target, Expr) and target.type == direct.type:
                self.assign(target, direct, statement.span)
                return
        target, value = self._both(statement.target, expression)
        self.assign(target, value, statement.span)

    def _both(self, left: ast.Expression, right: ast.Expression) -> tuple[Any, Any]:
        """Target, then value; a target's index is computed first (specification, section 8)."""
        target = self.frozen_target(left) if _has_call(right) else self.target(left)
        return target, self.value(right)

    def _combined(self, statement: ast.Assignment, combined: ast.Expression) -> None:
        """target op= value: the target is evaluated once."""
        target = self.frozen_target(statement.target)
        left = self.read_target(target)
        with self.collecting() as before:
            right = self.value(statement.expression)
        if before and isinstance(left, Expr):
            left = self.snapshot(left)
        self.out += before
        self.assign(target, self.combine(statement.operator, left, right, combined), statement.span)

    def _call_statement(self, statement: ast.CallStatement) -> None:
        call = statement.call
        assert isinstance(call, ast.Expression)
        if isinstance(call, ast.Member):
            self.value(call)
            return
        self.call_value(call)  # type: ignore[arg-type]

    def _block(self, statement: ast.Block) -> None:
        self.statements(statement.statements)

    # ------------------------------------------------------------------------------ if

    def _if(self, statement: ast.If) -> None:
        condition, negated = statement.condition, False
        while isinstance(condition, ast.Unary) and condition.operator == "!":
            condition, negated = condition.operand, not negated
        if _is_table_result(condition):
            self._if_table(statement, condition, negated)
            return
        value = self.scalar(statement.condition)
        if isinstance(value, Const):
            chosen = statement.then if value.value else statement.otherwise
            if chosen is not None:
                self.statement(chosen)
            return
        then = self._branch(statement.then)
        otherwise = self._branch(statement.otherwise)
        if then or otherwise:
            self.emit(If(value, then, otherwise, statement.condition.span))

    def _branch(self, statement: ast.Node | None) -> list[Stmt]:
        with self.collecting() as code:
            if statement is not None:
                self.statement(statement)
        return code

    def _if_table(self, statement: ast.If, condition: ast.Expression, negated: bool) -> None:
        assert isinstance(condition, ast.Member)
        call = condition.base
        assert isinstance(call, ast.Call)
        then, otherwise = self._branch(statement.then), self._branch(statement.otherwise)
        on_hit = (condition.name == "hit") != negated
        hit, miss = (then, otherwise) if on_hit else (otherwise, then)
        self.apply_table(call, hit, miss)

    # ------------------------------------------------------------------------------ switch

    def _switch(self, statement: ast.Switch) -> None:
        if statement.table is not None:
            self._action_switch(statement)
        else:
            self._value_switch(statement)

    def _action_switch(self, statement: ast.Switch) -> None:
        selector = statement.selector
        assert isinstance(selector, ast.Member)
        call = selector.base
        assert isinstance(call, ast.Call)
        callee = call.callee
        assert isinstance(callee, ast.Member)
        value = self.value(callee.base)
        assert isinstance(value, TableValue)
        branches: dict[str, list[Stmt]] = {}
        default: list[Stmt] | None = None
        pending: list[str | None] = []
        for case in statement.cases:
            label = case.label.name if isinstance(case.label, ast.Name) else None
            pending.append(label)
            if case.body is None:
                continue
            for each in pending:
                body = self._branch(case.body)
                if each is None:
                    default = body
                else:
                    branches[self.action_label(value, each)] = body
            pending = []
        self.apply_table(call, branches=branches, default=default)

    def action_label(self, table: TableValue, name: str) -> str:
        """The lowered action's name for a label of a switch."""
        raise NotImplementedError

    def _value_switch(self, statement: ast.Switch) -> None:
        selector = self.scalar(statement.selector)
        if not isinstance(selector, Const):
            selector = self.simple(selector)
        chains: list[tuple[Expr, ast.Block]] = []
        default: ast.Block | None = None
        labels: list[Expr] = []
        is_default = False
        for case in statement.cases:
            if case.label is None or isinstance(case.label, ast.DefaultExpression):
                is_default = True
            else:
                label = self.scalar(case.label)
                labels.append(build.binary("==", selector, build.convert(label, selector.type)))
            if case.body is None:
                continue
            if is_default:
                default = case.body
            if labels:
                condition: Expr = build.FALSE
                for each in labels:
                    condition = self.shallow(build.either(condition, each), statement)
                chains.append((condition, case.body))
            labels, is_default = [], False
        code: list[Stmt] = self._branch(default)
        for condition, body in reversed(chains):
            then = self._branch(body)
            if isinstance(condition, Const):
                code = then if condition.value else code
            elif then or code:
                code = [If(condition, then, code, statement.span)]
        self.out += code

    # ------------------------------------------------------------------------------ leaving

    def _return(self, statement: ast.Return) -> None:
        frame = self.frame
        while frame.return_label is None and frame.parent is not None:
            frame = frame.parent
        if statement.expression is not None:
            self.assign(frame.return_value, self.value(statement.expression), statement.span)
        if frame.return_label is None:
            self.refuse("'return' cannot stand here", statement)
        self.emit(Jump(frame.return_label, statement.span))

    def _exit(self, statement: ast.Exit) -> None:
        # Leaving a call copies its `out` and `inout` arguments back (specification, section 12.5).
        for pairs in reversed(self.pending_copies):
            self.copy_back(pairs, statement.span)
        self.emit(Exit(statement.span))

    # ------------------------------------------------------------------------------ declarations

    def variable(self, declaration: ast.VariableDeclaration, keep: bool = False) -> None:
        """A variable: allocated (or, with `keep`, reused), initialised; headers start invalid."""
        type_ = self.frame.type(declaration.type)
        value = self.frame.values.get(id(declaration)) if keep else None
        if value is None:
            value = self.storage.allocate(type_, declaration.name)
        if declaration.initial is None:
            self.invalidate(value, declaration.span)
        else:
            initial = self.value(declaration.initial)
            if not isinstance(initial, Expr) and scalar_type(type_) is None:
                initial = self.retyped(initial, type_)
            self.assign(value, initial, declaration.span)
        self.frame.bind(declaration, value)

    def constant(self, declaration: ast.ConstantDeclaration) -> None:
        """A local constant."""
        if declaration.value is None or isinstance(declaration.value, list | dict):
            value = self.value(declaration.initial)
            type_ = self.frame.type(declaration.type)
            if isinstance(value, Expr) and type_ is not INTEGER:
                value = build.convert(value, scalar_type(type_) or value.type)
            self.frame.bind(declaration, value)

    def _instance(self, declaration: ast.InstanceDeclaration) -> None:
        self.instantiate_local(declaration)

    def _empty(self, statement: ast.Empty) -> None:
        del statement

    def _for(self, statement: ast.For) -> None:
        self.for_loop(statement)

    def _for_in(self, statement: ast.ForIn) -> None:
        self.for_in_loop(statement)

    def _break(self, statement: ast.Break) -> None:
        self.emit(Jump(self.break_labels[-1], statement.span))

    def _continue(self, statement: ast.Continue) -> None:
        self.emit(Jump(self.continue_labels[-1], statement.span))

    _STATEMENTS: ClassVar[dict[type, Any]] = {
        ast.Assignment: _assignment,
        ast.CallStatement: _call_statement,
        ast.Block: _block,
        ast.If: _if,
        ast.Switch: _switch,
        ast.Return: _return,
        ast.Exit: _exit,
        ast.VariableDeclaration: variable,
        ast.ConstantDeclaration: constant,
        ast.InstanceDeclaration: _instance,
        ast.Empty: _empty,
        ast.For: _for,
        ast.ForIn: _for_in,
        ast.Break: _break,
        ast.Continue: _continue,
    }


def _has_call(expression: ast.Expression) -> bool:
    """Whether evaluating it may change something."""
    return any(
        isinstance(each, ast.Call) and each.kind not in ("builtin", "constructor")
        for each in walk(expression)
    )


def _is_table_result(expression: ast.Expression) -> bool:
    return (
        isinstance(expression, ast.Member)
        and expression.name in ("hit", "miss")
        and isinstance(expression.base, ast.Call)
        and expression.base.kind == "table"
    )
