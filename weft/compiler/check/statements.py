"""Checking of statements (specification, section 12)."""

from __future__ import annotations

from dataclasses import replace

from weft.compiler import ast
from weft.compiler.check.calls import Calls
from weft.compiler.check.scope import article, choices
from weft.compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    STRING,
    UNKNOWN,
    VOID,
    ActionRunType,
    BitsType,
    EnumType,
    ExternType,
    ListType,
    SetType,
    StackType,
    TupleType,
    Type,
    TypeVariable,
)


class Statements(Calls):
    """`check_statement` for every kind."""

    def check_block(self, block: ast.Block) -> None:
        """A block in a scope of its own."""
        with self.inner_scope():
            for statement in block.statements:
                self.check_statement(statement)

    def check_statement(self, statement: ast.Node) -> None:
        """One statement or local declaration."""
        if isinstance(statement, ast.Assignment):
            self._assignment(statement)
        elif isinstance(statement, ast.CallStatement):
            self._call(statement)
        elif isinstance(statement, ast.Block):
            self.check_block(statement)
        elif isinstance(statement, ast.If):
            self._condition(statement.condition, "if")
            self._branch(statement.then)
            if statement.otherwise is not None:
                self._branch(statement.otherwise)
        elif isinstance(statement, ast.VariableDeclaration):
            self.check_variable(statement)
        elif isinstance(statement, ast.ConstantDeclaration):
            self.check_constant(statement)
        elif isinstance(statement, ast.Switch):
            self._switch(statement)
        elif isinstance(statement, ast.Return):
            self._return(statement)
        elif isinstance(statement, ast.Exit):
            if self.context.kind in ("parser", "function"):
                self.error(f"'exit' cannot stand in {article(self.context.kind)}", statement)
        elif isinstance(statement, ast.For):
            self._for(statement)
        elif isinstance(statement, ast.ForIn):
            self._for_in(statement)
        elif isinstance(statement, ast.Break | ast.Continue):
            if not self.context.loop_depth:
                word = "break" if isinstance(statement, ast.Break) else "continue"
                self.error(f"'{word}' stands outside of any loop", statement)
        elif isinstance(statement, ast.InstanceDeclaration):
            self.check_instance(statement)

    def check_instance(self, declaration: ast.InstanceDeclaration) -> None:
        """An instantiation."""
        raise NotImplementedError

    def _branch(self, statement: ast.Statement) -> None:
        with self.inner_scope():
            self.check_statement(statement)

    def _condition(self, expression: ast.Expression, word: str) -> None:
        type_ = self.infer(expression)
        if type_ is not BOOL and type_ is not UNKNOWN:
            self.error(f"the condition of '{word}' is a bool, not '{type_}'", expression)

    def _assignment(self, statement: ast.Assignment) -> None:
        target = self.infer(statement.target)
        if target is not UNKNOWN:
            self.check_writable(statement.target, "an assignment")
        if not statement.operator:
            self.check(statement.expression, target)
            return
        # a op= b has the types of a = a op b.
        combined = ast.Binary(statement.span, statement.operator, statement.target, statement.expression)
        statement.combined = combined
        if self.infer(combined, target) is not UNKNOWN and target is not UNKNOWN:
            self.coerce(combined, target)

    def _call(self, statement: ast.CallStatement) -> None:
        type_ = self.infer(statement.call)
        call = statement.call
        if isinstance(call, ast.Call) and call.kind == "constructor" and type_ is not UNKNOWN:
            self.error("a constructor call is not a statement; give the instance a name", statement)

    def _return(self, statement: ast.Return) -> None:
        wanted = self.context.result
        if self.context.kind == "parser":
            self.error("'return' cannot stand in a parser: a state ends with its transition", statement)
        if statement.expression is None:
            if wanted is not None and wanted is not VOID:
                self.error(f"'{self.context.name}' returns '{wanted}': the value is missing", statement)
            return
        if wanted is None or wanted is VOID:
            self.infer(statement.expression)
            where = f"'{self.context.name}'" if self.context.name else f"a {self.context.kind}"
            self.error(f"{where} returns no value", statement)
            return
        self.check(statement.expression, wanted, "the returned value")

    # --------------------------------------------------------------------------------- declarations

    def check_variable(self, declaration: ast.VariableDeclaration) -> None:
        """A variable; its name is in scope after its initialiser."""
        type_ = self.resolve(declaration.node)
        if type_ in (STRING, VOID, INTEGER) or isinstance(type_, ExternType | SetType):
            self.error(f"a variable cannot be of type '{type_}'", declaration.node)
            type_ = UNKNOWN
        declaration.type = type_
        if declaration.initial is not None:
            self.check(declaration.initial, type_)
        self.declare(declaration)

    def check_constant(self, declaration: ast.ConstantDeclaration) -> None:
        """A constant; constructor parameters in it are resolved when instantiated."""
        declaration.type = self.resolve(declaration.node)
        if self.check(declaration.initial, declaration.type) and declaration.initial.type is not UNKNOWN:
            declaration.value = declaration.initial.value
            if declaration.value is None and self.context.kind == "top":
                self.error(
                    f"the value of constant '{declaration.name}' is not known at compile time",
                    declaration.initial,
                )
        self.declare(declaration)

    # --------------------------------------------------------------------------------- switch

    def _switch(self, statement: ast.Switch) -> None:
        type_ = self.infer(statement.selector)
        if isinstance(type_, ActionRunType):
            self._action_switch(statement, type_)
        elif type_ is not UNKNOWN:
            self._value_switch(statement, type_)
        if statement.cases and statement.cases[-1].body is None:
            statement.cases[-1].body = ast.Block(statement.cases[-1].span, [])
        for case in statement.cases:
            if case.body is not None:
                self.check_block(case.body)
        for before, after in zip(statement.cases, statement.cases[1:], strict=False):
            if before.label is None or isinstance(before.label, ast.DefaultExpression):
                self.error("'default' is the last label of a switch", after).note(
                    "'default' stands here", before.span
                )

    def _action_switch(self, statement: ast.Switch, type_: ActionRunType) -> None:
        statement.table = type_.declaration
        names = [action_name(reference.call) for reference in type_.declaration.actions]
        seen: set[str] = set()
        for case in statement.cases:
            if case.label is None:
                label = "default"
            elif isinstance(case.label, ast.Name | ast.DefaultExpression):
                label = case.label.name if isinstance(case.label, ast.Name) else "default"
                if label not in names and label != "default":
                    self.error(
                        f"'{label}' is not an action of table '{type_.name}' {choices(names)}", case.label
                    )
            else:
                self.error("a label of this switch is an action's name", case.label)
                continue
            if label in seen:
                self.error(f"label '{label}' is given twice", case)
            seen.add(label)

    def _value_switch(self, statement: ast.Switch, type_: Type) -> None:
        if not isinstance(type_, BitsType | EnumType) and type_ is not ERROR:
            self.error(f"cannot switch on a value of type '{type_}'", statement.selector)
            return
        seen: set[int] = set()
        for case in statement.cases:
            if case.label is None or isinstance(case.label, ast.DefaultExpression):
                continue
            self.check(case.label, type_)
            if case.label.type is UNKNOWN:
                continue
            if case.label.value is None:
                self.error("a label must be known at compile time", case.label)
            elif case.label.value in seen:
                self.error(f"label {case.label.value} is given twice", case.label)
            else:
                seen.add(case.label.value)

    # --------------------------------------------------------------------------------- loops

    def _for(self, statement: ast.For) -> None:
        with self.inner_scope():
            for initialiser in statement.initialisers:
                self.check_statement(initialiser)
            self._condition(statement.condition, "for")
            with self.in_context(replace(self.context, loop_depth=self.context.loop_depth + 1)):
                for update in statement.updates:
                    self.check_statement(update)
                self._branch(statement.body)

    def _for_in(self, statement: ast.ForIn) -> None:
        with self.inner_scope():
            variable = statement.variable
            wanted = variable.type = self.resolve(variable.node)
            collection = self.infer(
                statement.collection, SetType(wanted) if isinstance(wanted, BitsType) else None
            )
            element = _element_of(collection)
            if element is None and collection is not UNKNOWN:
                self.error(f"cannot loop over a value of type '{collection}'", statement.collection)
            elif element not in (wanted, UNKNOWN, INTEGER) and UNKNOWN not in (wanted, collection):
                self.error(f"the loop's variable is '{wanted}', the elements are '{element}'", variable)
            self.declare(variable)
            with self.in_context(replace(self.context, loop_depth=self.context.loop_depth + 1)):
                self._branch(statement.body)


def _element_of(collection: Type) -> Type | None:
    if isinstance(collection, SetType | StackType | ListType):
        return collection.element
    if isinstance(collection, TupleType):
        return collection.elements[0] if len(set(collection.elements)) == 1 else None
    if isinstance(collection, TypeVariable):
        return UNKNOWN
    return None


def action_name(expression: ast.Expression) -> str:
    """The name by which a table refers to an action."""
    if isinstance(expression, ast.Call):
        return action_name(expression.callee)
    return expression.name if isinstance(expression, ast.Name) else ""
