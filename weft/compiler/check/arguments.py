"""Arguments of calls: overloads, type arguments, directions (specification, sections 6.8, 8.20)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.check.allowed_types import BLOCKS
from weft.compiler.check.scope import counted
from weft.compiler.check.unify import unify
from weft.compiler.check.writable import Writable
from weft.compiler.types import (
    INTEGER,
    STATE,
    STRING,
    UNKNOWN,
    ActionType,
    AnonymousStructType,
    ControlType,
    FunctionType,
    OverloadType,
    ParameterType,
    ParserType,
    TableType,
    Type,
    TypeVariable,
    substitute,
)


class Arguments(Writable):
    """`choose` picks an overload, `apply_signature` binds arguments to parameters."""

    def signature(self, declaration: ast.FunctionDeclaration) -> FunctionType:
        """The signature of a function or method, made once by the declaration's check."""
        assert isinstance(declaration.signature, FunctionType)
        return declaration.signature

    def parameter_types(self, parameters: Sequence[ast.Parameter]) -> tuple[ParameterType, ...]:
        """Parameters (types already resolved) as a caller sees them."""
        return tuple(
            ParameterType(
                parameter.name, parameter.direction, parameter.type or UNKNOWN,
                parameter.default is not None or parameter.annotation("optional") is not None, parameter,
            )
            for parameter in parameters
        )  # fmt: skip

    def choose(self, expression: ast.Call, functions: Sequence[FunctionType]) -> FunctionType | None:
        """The overload that the arguments' number and names fit; reports when there is none."""
        fitting = [function for function in functions if _fits(expression, function)]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            if len(functions) == 1:
                return functions[0]
            diagnostic = self.error(f"no '{functions[0].name}' takes these arguments", expression)
            for function in functions:
                where = function.declaration.span if function.declaration else None
                diagnostic.note(f"candidate: {function}", where)
            return None
        types = [self.infer(argument.expression) for argument in expression.arguments if argument.expression]
        matching: list[FunctionType] = []
        for function in fitting:
            variables: set[Type] = set(function.variables)
            pairs = zip(function.parameters, types, strict=False)
            if all(unify(parameter.type, type_, variables, {}) for parameter, type_ in pairs):
                matching.append(function)
        if len(matching) > 1:
            diagnostic = self.error(f"several '{functions[0].name}' take these arguments", expression)
            for function in matching:
                where = function.declaration.span if function.declaration else None
                diagnostic.note(f"candidate: {function}", where)
            return None
        return matching[0] if matching else fitting[0]

    def apply_signature(
        self, expression: ast.Call, function: FunctionType, mapping: dict[Type, Type], expected: Type | None
    ) -> Type:
        """Bind arguments and type arguments, check them, and give the call its result type."""
        if not self._order(expression, function):
            return UNKNOWN
        variables: set[Type] = set(function.variables)
        bindings = dict(mapping)
        if expression.type_arguments:
            given = [self.resolve(node) for node in expression.type_arguments]
            if len(given) != len(function.variables):
                return self.fail(
                    expression,
                    f"'{function.name}' takes {counted(len(function.variables), 'type argument')}, {len(given)} given",
                )
            bindings.update(
                (variable, type_)
                for variable, type_ in zip(function.variables, given, strict=True)
                if type_ is not UNKNOWN
            )
        good = True
        for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
            if argument is None:
                continue
            wanted = substitute(parameter.type, bindings)
            found = self.infer(argument, wanted)
            if found is STATE or isinstance(found, OverloadType):
                self.error("a method or function must be called here: its name is no value", argument)
                return UNKNOWN
            if (isinstance(found, BLOCKS) and not isinstance(wanted, BLOCKS)) or isinstance(
                found, TableType | ActionType
            ):
                return self.fail(expression, f"'{found}' cannot be an argument here", argument)
            if not self._unify_argument(wanted, found, variables, bindings):
                good = False
                self.error(
                    f"argument '{parameter.name}' of '{function.name}': expected '{wanted}', found '{found}'",
                    argument,
                ).note(f"'{function.name}' is declared here", parameter.declaration.span)
        if not good:
            return UNKNOWN
        if expected is not None and function.result in variables and function.result not in bindings:
            bindings[function.result] = expected
        for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
            if argument is not None:
                good = self._check_argument(function, parameter, argument, bindings) and good
        expression.bindings = bindings
        unbound = [variable for variable in function.variables if variable not in bindings]
        if unbound and good and not _inferred_later(function):
            return self.fail(
                expression,
                f"the type argument '{unbound[0]}' of '{function.name}' cannot be inferred; give it in <…>",
            )
        if good and not self._definite_arguments(expression, function, bindings):
            return UNKNOWN
        return substitute(function.result, bindings) if good else UNKNOWN

    def _definite_arguments(
        self, expression: ast.Call, function: FunctionType, bindings: dict[Type, Type]
    ) -> bool:
        """Whether every inferred type argument is one that a value can have."""
        for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
            if argument is None or parameter.type not in function.variables:
                continue
            bound = bindings.get(parameter.type)
            what = f"argument '{parameter.name}' of '{function.name}'"
            body = getattr(function.declaration, "body", None)
            if bound is INTEGER and (parameter.direction or body is not None):
                self.error(f"{what}: the width of this number is not known; write a sized literal", argument)
                return False
            if bound is STRING and parameter.direction:
                self.error(f"{what}: a string cannot be passed here", argument)
                return False
            if isinstance(bound, AnonymousStructType):
                self.error(
                    f"{what}: the struct's type is not known; write (type) before the braces", argument
                )
                return False
        return True

    def _unify_argument(
        self, wanted: Type, found: Type, variables: set[Type], bindings: dict[Type, Type]
    ) -> bool:
        if isinstance(wanted, ControlType | ParserType) and isinstance(found, type(wanted)):
            return self.unify_blocks(wanted, found, variables, bindings)
        return unify(wanted, found, variables, bindings)

    def unify_blocks(
        self, wanted: ControlType | ParserType, found: Type, variables: set[Type], bindings: dict[Type, Type]
    ) -> bool:
        """Whether a control or parser has the signature of another one."""
        assert isinstance(found, ControlType | ParserType)
        if found.declaration is wanted.declaration:
            return True
        inner = [parameter.type for parameter in wanted.declaration.type_parameters]
        mapping: dict[Type, Type] = {
            variable: argument
            for variable, argument in zip(inner, wanted.arguments, strict=False)
            if variable
        }
        own: dict[Type, Type] = {
            variable: argument
            for variable, argument in zip(
                [parameter.type for parameter in found.declaration.type_parameters],
                found.arguments,
                strict=False,
            )
            if variable
        }
        expected, actual = wanted.declaration.parameters, found.declaration.parameters
        if len(actual) > len(expected) or (
            len(actual) < len(expected)
            and not all(parameter.annotation("optional") for parameter in expected[len(actual) :])
        ):
            return False
        for left, right in zip(expected, actual, strict=False):
            left_type = substitute(left.type or UNKNOWN, mapping)
            right_type = substitute(right.type or UNKNOWN, own)
            if left.direction != right.direction:
                return False
            if not unify(left_type, right_type, variables, bindings):
                return False
            if substitute(left_type, bindings) != right_type and UNKNOWN not in (left_type, right_type):
                free = isinstance(right_type, TypeVariable)
                if not free:
                    return False
        return True

    def _order(self, expression: ast.Call, function: FunctionType) -> bool:
        """Fill `expression.ordered`: one expression or None per parameter."""
        ordered: list[ast.Expression | None] = [None] * len(function.parameters)
        filled = [False] * len(function.parameters)
        names = [parameter.name for parameter in function.parameters]
        declared = function.declaration.span if function.declaration is not None else None
        for position, argument in enumerate(expression.arguments):
            if argument.name is not None:
                if argument.name not in names:
                    self.error(f"'{function.name}' has no parameter '{argument.name}'", argument).note(
                        "declared here", declared
                    )
                    return False
                index = names.index(argument.name)
            else:
                index = position
                if index >= len(ordered):
                    taken = counted(len(ordered), "argument")
                    self.error(
                        f"'{function.name}' takes {taken}, {len(expression.arguments)} given",
                        expression,
                    ).note(f"declared here: {function}", declared)
                    return False
            if filled[index]:
                self.error(f"argument '{names[index]}' is given twice", argument)
                return False
            if argument.expression is None and function.parameters[index].direction != "out":
                self.error(
                    f"'_' is for 'out' parameters; '{names[index]}' of '{function.name}' needs a value",
                    argument,
                )
                return False
            filled[index] = True
            ordered[index] = argument.expression
        for parameter, present in zip(function.parameters, filled, strict=True):
            if not present and not parameter.optional:
                self.error(
                    f"'{function.name}' takes {counted(len(ordered), 'argument')}, {len(expression.arguments)} given: "
                    f"no argument for '{parameter.name}'",
                    expression,
                ).note(f"declared here: {function}", declared)
                return False
        for index, parameter in enumerate(function.parameters):
            if not filled[index] and parameter.declaration.default is not None:
                ordered[index] = parameter.declaration.default
        expression.ordered = list(ordered)
        return True

    def _check_argument(
        self,
        function: FunctionType,
        parameter: ParameterType,
        argument: ast.Expression,
        bindings: dict[Type, Type],
    ) -> bool:
        wanted = substitute(parameter.type, bindings)
        what = f"argument '{parameter.name}' of '{function.name}'"
        if parameter.direction in ("out", "inout"):
            actual = argument.type or UNKNOWN
            if actual != wanted and UNKNOWN not in (actual, wanted):
                self.error(f"{what}: expected '{wanted}', found '{actual}'", argument)
                return False
            return self.check_writable(argument, what)
        if isinstance(wanted, TypeVariable | ControlType | ParserType):
            return True
        return self.coerce(argument, wanted, what)


def _inferred_later(function: FunctionType) -> bool:
    """Blocks find their type arguments when they are applied, packages need not have all."""
    blocks = (ast.PackageDeclaration, ast.ControlDeclaration, ast.ParserDeclaration)
    return isinstance(function.declaration, blocks)


def _fits(expression: ast.Call, function: FunctionType) -> bool:
    given = expression.arguments
    names = {parameter.name for parameter in function.parameters}
    named = {argument.name for argument in given if argument.name is not None}
    if not named <= names or len(given) > len(function.parameters):
        return False
    required = [parameter.name for parameter in function.parameters if not parameter.optional]
    positional = [parameter.name for parameter in function.parameters[: len(given) - len(named)]]
    return set(required) <= named | set(positional)
