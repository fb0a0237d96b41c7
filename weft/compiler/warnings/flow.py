"""Variables and out parameters read before they are written, headers used while invalid, statements never reached.

A forward analysis over the structured statements (joined where paths meet) and, in parsers, over the graph of
states (to a fixed point). Actions are followed into at each call and each application of a table; controls,
parsers and functions are taken to do what their parameters' directions promise.
"""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.source import Span
from weft.compiler.warnings.flow_expressions import FlowExpressions
from weft.compiler.warnings.flow_state import UNWRITTEN, State, join, join_all, join_outcomes, scalars
from weft.compiler.warnings.kinds import Kind
from weft.compiler.warnings.parsers import targets
from weft.compiler.warnings.reporter import WarningReporter

# Loops and parsers settle within a few rounds; each round can only add possibilities to places.
_ROUND_LIMIT = 64


def check_flow(program: ast.Program, reporter: WarningReporter) -> None:
    """Warn about the flow within every parser, control and function."""
    for declaration in program.declarations:
        if isinstance(declaration, ast.ControlDeclaration) and declaration.body is not None:
            _Block(reporter, declaration.name, declaration.parameters).control(declaration)
        elif isinstance(declaration, ast.ParserDeclaration) and declaration.states is not None:
            _Block(reporter, declaration.name, declaration.parameters).parser(declaration)
        elif isinstance(declaration, ast.FunctionDeclaration) and declaration.body is not None:
            _Block(reporter, declaration.name, declaration.parameters).function(declaration)


class _Block:
    """The analysis of one parser, control or function."""

    def __init__(self, reporter: WarningReporter, name: str, parameters: list[ast.Parameter]) -> None:
        self._reporter = reporter
        self._expressions = FlowExpressions(reporter, self)
        self._name = name
        self._parameters = parameters
        self._returns: list[State | None] = []
        self._breaks: list[State | None] = []
        self._continues: list[State | None] = []
        self._active: set[int] = set()

    def _start(self, parameters: list[ast.Parameter], state: State) -> State:
        for parameter in parameters:
            self._expressions.note(parameter)
            if parameter.direction == "out":
                self._expressions.declare(parameter, state)
        return state

    def _finish(self, name: str, parameters: list[ast.Parameter], state: State | None, span: Span) -> None:
        """Out parameters must have a value at the end."""
        if state is None or self._expressions.quiet:
            return
        for parameter in parameters:
            if parameter.direction != "out":
                continue
            path = (id(parameter),)
            amiss = [place for place in scalars(parameter.type, path) if state.get(place) & UNWRITTEN]
            if amiss:
                certain = all(state.get(place) == UNWRITTEN for place in amiss)
                self._reporter.warn(
                    Kind.UNINITIALIZED_OUT_PARAM,
                    f"out parameter '{parameter.name}' {'gets' if certain else 'may get'} no value in '{name}'",
                    parameter.span,
                )

    # ---- what is analysed

    def function(self, declaration: ast.FunctionDeclaration) -> None:
        """A function."""
        assert declaration.body is not None
        end = self.statement(declaration.body, self._start(self._parameters, State()))
        self._finish(self._name, self._parameters, join_all([*self._returns, end]), declaration.span)

    def control(self, declaration: ast.ControlDeclaration) -> None:
        """A control's apply block."""
        assert declaration.body is not None
        state: State | None = self._start(self._parameters, State())
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                state = self.statement(local, state)
        end = self.statement(declaration.body, state)
        self._finish(self._name, self._parameters, join_all([*self._returns, end]), declaration.span)

    def parser(self, declaration: ast.ParserDeclaration) -> None:
        """A parser's states, first to a fixed point, then once more to warn."""
        assert declaration.states is not None
        states = {state.name: state for state in declaration.states}
        begin: State | None = self._start(self._parameters, State())
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                begin = self.statement(local, begin)
        before: dict[str, State | None] = {"start": begin}
        pending = ["start"] if "start" in states else []
        self._expressions.quiet += 1
        for _ in range(_ROUND_LIMIT * max(1, len(states))):
            if not pending:
                break
            name = pending.pop(0)
            after = self._parser_state(states[name], before[name])
            for target in {target.name for target in targets(states[name])}:
                joined = join(before.get(target), after)
                if target not in before or joined != before[target]:
                    before[target] = joined
                    if target in states and target not in pending:
                        pending.append(target)
        self._expressions.quiet -= 1
        for name, state in states.items():
            if before.get(name) is not None:
                self._parser_state(state, before[name])
        self._finish(self._name, self._parameters, before.get("accept"), declaration.span)

    def _parser_state(self, state: ast.StateDeclaration, before: State | None) -> State | None:
        after = self._sequence(state.statements, before.copy() if before is not None else None)
        if isinstance(state.transition, ast.Select):
            for expression in state.transition.expressions:
                after = self._expressions.read(expression, after)
        return after

    # ---- statements

    def _sequence(self, statements: list[ast.Node], state: State | None) -> State | None:
        reached = state is not None
        for statement in statements:
            # Once for each sequence: whatever follows is unreachable for the same reason.
            if state is None and reached and not isinstance(statement, ast.Empty | ast.Declaration):
                if not self._expressions.quiet:
                    self._reporter.warn(Kind.UNREACHABLE, "this statement is never reached", statement.span)
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, statement: ast.Node, state: State | None) -> State | None:
        """The state after a statement or declaration."""
        if state is None:
            return None
        if isinstance(statement, ast.Block):
            return self._sequence(statement.statements, state)
        if isinstance(statement, ast.Assignment):
            if statement.operator:
                return self._expressions.write(statement.target, self._expressions.read(statement.combined, state))
            return self._expressions.assign(statement.target, statement.expression, state)
        if isinstance(statement, ast.CallStatement):
            return self._expressions.read(statement.call, state)
        if isinstance(statement, ast.VariableDeclaration):
            return self._variable(statement, state)
        if isinstance(statement, ast.If):
            return self._if(statement, state)
        if isinstance(statement, ast.Switch):
            return self._switch(statement, state)
        if isinstance(statement, ast.For | ast.ForIn):
            return self._loop(statement, state)
        if isinstance(statement, ast.Return):
            self._returns.append(self._expressions.read(statement.expression, state))
            return None
        if isinstance(statement, ast.Exit):
            return None
        if isinstance(statement, ast.Break):
            self._breaks.append(state)
            return None
        if isinstance(statement, ast.Continue):
            self._continues.append(state)
            return None
        return state

    def _variable(self, statement: ast.VariableDeclaration, state: State) -> State | None:
        self._expressions.declare(statement, state)
        if statement.initial is None:
            return state
        name = ast.Name(statement.span, statement.name)
        name.declaration, name.type = statement, statement.type
        return self._expressions.assign(name, statement.initial, state)

    def _if(self, statement: ast.If, state: State) -> State | None:
        yes, no = self._expressions.condition(statement.condition, state)
        then = self.statement(statement.then, yes)
        return join(then, no if statement.otherwise is None else self.statement(statement.otherwise, no))

    def _switch(self, statement: ast.Switch, state: State) -> State | None:
        by_action = self._action_outcomes(statement, state)
        if by_action is None:
            common = self._expressions.read(statement.selector, state)
            by_action = {}
        else:
            common = join_outcomes(by_action.values())
        ends: list[State | None] = []
        labels: list[str | None] = []
        has_default = False
        for case in statement.cases:
            labels.append(case.label.name if isinstance(case.label, ast.Name) else None)
            has_default = has_default or case.label is None or isinstance(case.label, ast.DefaultExpression)
            if case.body is None:
                continue
            entries = [by_action[label] for label in labels if label in by_action]
            # A label that is no action of the table, or a value: any outcome may lead there.
            entry = join_all(entries) if len(entries) == len(labels) else common
            ends.append(self.statement(case.body, entry.copy() if entry is not None else None))
            labels = []
        if not has_default:
            covered = {case.label.name for case in statement.cases if isinstance(case.label, ast.Name)}
            left = [after for name, after in by_action.items() if name not in covered]
            ends.append(join_outcomes(left) if by_action else common)
        return join_all(ends)

    def _loop(self, statement: ast.For | ast.ForIn, state: State) -> State | None:
        before: State | None = state
        if isinstance(statement, ast.For):
            for initialiser in statement.initialisers:
                before = self.statement(initialiser, before)
        else:
            before = self._expressions.read(statement.collection, before)
        outer_breaks, outer_continues, returns = self._breaks, self._continues, len(self._returns)
        self._expressions.quiet += 1
        for _ in range(_ROUND_LIMIT):
            joined = join(before, self._loop_round(statement, before)[0])
            del self._returns[returns:]
            if joined == before:
                break
            before = joined
        self._expressions.quiet -= 1
        after = self._loop_round(statement, before)[1]
        self._breaks, self._continues = outer_breaks, outer_continues
        return after

    def _loop_round(self, statement: ast.For | ast.ForIn, before: State | None) -> tuple[State | None, State | None]:
        """The states at the end of the body and after the loop."""
        self._breaks, self._continues = [], []
        entry = before.copy() if before is not None else None
        if isinstance(statement, ast.ForIn):
            leave = entry.copy() if entry is not None else None
        elif entry is not None:
            entry, leave = self._expressions.condition(statement.condition, entry)
        else:
            leave = None
        end = self.statement(statement.body, entry)
        end = join_all([end, *self._continues])
        if isinstance(statement, ast.For):
            for update in statement.updates:
                end = self.statement(update, end)
        return end, join_all([leave, *self._breaks])

    # ---- actions and tables

    def after_body(self, call: ast.Call, state: State | None) -> State | None:
        """Follow calls of actions."""
        if call.kind == "action" and isinstance(call.target, ast.ActionDeclaration):
            return self._action(call.target, state)
        return state

    def _action(self, action: ast.ActionDeclaration, state: State | None) -> State | None:
        if state is None or id(action) in self._active:
            return state
        self._active.add(id(action))
        outer, self._returns = self._returns, []
        end = self.statement(action.body, self._start(action.parameters, state))
        end = join_all([end, *self._returns])
        self._returns = outer
        self._active.discard(id(action))
        self._finish(action.name, action.parameters, end, action.span)
        return end

    def after_table(self, call: ast.Expression, state: State) -> tuple[State | None, State | None] | None:
        """After a table: on a hit one of its actions has run, on a miss the default action."""
        if not isinstance(call, ast.Call) or call.kind != "table":
            return None
        outcomes = self._table(call.target, state)
        default = _default_action(call.target)
        hit = [after for name, after in outcomes.items() if name != ""]
        return join_outcomes(hit) if hit else state.copy(), outcomes[default]

    def _action_outcomes(self, statement: ast.Switch, state: State) -> dict[str, State | None] | None:
        """States by name of the action that ran, for a switch over a table's action_run."""
        selector = statement.selector
        if isinstance(selector, ast.Member) and selector.name == "action_run":
            call = selector.base
            if isinstance(call, ast.Call) and call.kind == "table":
                outcomes = self._table(call.target, state)
                outcomes.pop("", None)
                return outcomes
        return None

    def _table(self, table: ast.TableDeclaration, state: State) -> dict[str, State | None]:
        """States by the name of the action that ran; "" stands for none, where no default action is given."""
        before: State | None = state
        for key in table.keys:
            before = self._expressions.read(key.expression, before)
        outcomes: dict[str, State | None] = {}
        for reference in table.actions:
            action = reference.declaration
            if isinstance(action, ast.ActionDeclaration):
                entry = before.copy() if before is not None else None
                call = reference.call
                if isinstance(call, ast.Call) and entry is not None:
                    entry = self._table_arguments(call, action, entry)
                outcomes[action.name] = self._action(action, entry)
        if _default_action(table) not in outcomes:
            outcomes[_default_action(table)] = before
        return outcomes

    def _table_arguments(self, call: ast.Call, action: ast.ActionDeclaration, state: State) -> State | None:
        """Arguments that an action list gives are evaluated before the action runs."""
        after: State | None = state
        for argument, parameter in zip(call.arguments, action.parameters, strict=False):
            if parameter.direction in ("in", "inout"):
                after = self._expressions.read(argument.expression, after)
        return after


def _default_action(table: ast.TableDeclaration) -> str:
    entry = table.properties.get("default_action")
    expression = entry.expression if entry is not None else None
    if isinstance(expression, ast.Call):
        expression = expression.callee
    return expression.name if isinstance(expression, ast.Name) else ""
