"""Checking of functions, externs and actions (specification, sections 6.8, 10, 14.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import parameter_problem
from weft.compiler.check.base import Context
from weft.compiler.check.type_declarations import TypeDeclarations
from weft.compiler.types import (
    INTEGER,
    UNKNOWN,
    VOID,
    ExternType,
    FunctionType,
)


class Functions(TypeDeclarations):
    """Their parameters, and their bodies where they have one."""

    def _parameters(
        self, parameters: list[ast.Parameter], declare: bool = True, *, constructor: bool = False
    ) -> None:
        for parameter in parameters:
            parameter.type = self.resolve(parameter.node)
            problem = parameter_problem(parameter.type, parameter.direction, constructor=constructor)
            if problem is not None:
                self.error(problem, parameter)
            if parameter.default is not None and parameter.direction in ("out", "inout"):
                self.error(f"an '{parameter.direction}' parameter has no default", parameter.default)
            elif parameter.default is not None:
                self._default(parameter, parameter.default)
            if declare:
                self.declare(parameter)

    def _default(self, parameter: ast.Parameter, default: ast.Expression) -> None:
        good = self.check(default, parameter.type or UNKNOWN, f"the default of '{parameter.name}'")
        if good and isinstance(default, ast.Call) and default.kind != "constructor" and default.value is None:
            self.error(f"the default of '{parameter.name}' must be known at compile time", default)

    def _optional_only_without_body(self, parameters: list[ast.Parameter], what: str) -> None:
        """@optional is for externs, packages and types of blocks: a body could not tell what it was given."""
        for parameter in parameters:
            if parameter.annotation("optional") is not None:
                self.error(f"{what} with a body has no @optional parameters", parameter)

    def _differing_names(
        self, declaration: ast.ControlDeclaration | ast.ParserDeclaration | ast.FunctionDeclaration
    ) -> None:
        """Type parameters and parameters share one name space."""
        names = {parameter.name: parameter for parameter in declaration.type_parameters}
        given = list(declaration.parameters)
        if not isinstance(declaration, ast.FunctionDeclaration):
            given += declaration.constructor_parameters
        for parameter in given:
            if parameter.name in names:
                self.error(f"'{parameter.name}' is a type parameter already", parameter).note(
                    "declared here", names[parameter.name].span
                )

    def _signature(self, declaration: ast.FunctionDeclaration) -> None:
        with self.inner_scope():
            variables = self.check_type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters)
            result = VOID if declaration.result is None else self.resolve(declaration.result)
        declaration.signature = FunctionType(
            declaration.name, variables, self.parameter_types(declaration.parameters), result, declaration
        )

    def _function(self, declaration: ast.FunctionDeclaration) -> None:
        self._signature(declaration)
        self._differing_names(declaration)
        self.declare(declaration)
        if declaration.body is None:
            return
        self._optional_only_without_body(declaration.parameters, "a function")
        with self.inner_scope(), self.inside(declaration):
            for parameter in declaration.type_parameters:
                self.declare(parameter)
            with self.inner_scope():
                for parameter_ in declaration.parameters:
                    self.declare(parameter_)
                result = declaration.signature.result
                with self.in_context(Context("function", declaration.name, result)):
                    self.check_block(declaration.body)
                if result is not VOID and not returns(declaration.body):
                    self.error(
                        f"function '{declaration.name}' may end without returning its '{result}'", declaration
                    )

    def _extern(self, declaration: ast.ExternDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope(), self.inside(declaration):
            self.check_type_parameters(declaration.type_parameters)
            for method in declaration.methods:
                if method.name == declaration.name and method.result is not None:
                    self.error(f"the constructor of '{declaration.name}' returns nothing", method)
                self._signature(method)

    def _action(self, declaration: ast.ActionDeclaration) -> None:
        with self.inner_scope():
            self._parameters(declaration.parameters)
            self._directions_first(declaration)
            with self.in_context(Context("action", declaration.name)):
                self.check_block(declaration.body)
        self.declare(declaration)

    def _directions_first(self, declaration: ast.ActionDeclaration) -> None:
        data_seen: ast.Parameter | None = None
        for parameter in declaration.parameters:
            if isinstance(parameter.type, ExternType) or parameter.type is INTEGER:
                self.error(f"an action's parameter cannot be of type '{parameter.type}'", parameter)
            if not parameter.direction:
                data_seen = parameter
            elif data_seen is not None:
                self.error("parameters with a direction come before those without", parameter).note(
                    "a parameter without direction", data_seen.span
                )


def returns(statement: ast.Node) -> bool:
    """Whether every way through a statement ends in a return (or exit)."""
    if isinstance(statement, ast.Return | ast.Exit):
        return True
    if isinstance(statement, ast.Block):
        return any(returns(inner) for inner in statement.statements)
    if isinstance(statement, ast.If):
        if statement.condition.value is not None:
            chosen = statement.then if statement.condition.value else statement.otherwise
            return chosen is not None and returns(chosen)
        return statement.otherwise is not None and returns(statement.then) and returns(statement.otherwise)
    if isinstance(statement, ast.Switch):
        bodies = [case.body for case in statement.cases if case.body is not None]
        default = any(case.label is None for case in statement.cases)
        return default and all(returns(body) for body in bodies)
    return False
