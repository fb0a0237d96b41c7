"""Calls: overloads, type arguments, directions (specification, sections 6.8, 8.20).

`Call.kind` becomes one of
  "function"      extern or P4 function; target: its FunctionDeclaration
  "method"        extern method; target: its FunctionDeclaration
  "action"        target: ActionDeclaration
  "apply"         instance.apply() of a control or parser; target: its declaration
  "type_apply"    Control.apply() without an instance; target: its declaration
  "table"         table.apply(); target: TableDeclaration
  "constructor"   target: the type built
  "builtin"       header and stack methods, sizes; target: the method's name
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler import ast
from compiler.check.allowed_types import BLOCKS, looked_ahead
from compiler.check.expressions import Expressions
from compiler.check.scope import article, counted
from compiler.check.unify import unify
from compiler.subexpressions import walk
from compiler.types import (
    BOOL,
    INTEGER,
    STATE,
    STRING,
    UNKNOWN,
    VOID,
    ActionType,
    AnonymousStructType,
    ApplyResultType,
    ControlType,
    ExternType,
    FunctionType,
    OverloadType,
    PackageType,
    ParameterType,
    ParserType,
    StackType,
    StructType,
    TableType,
    Type,
    TypeVariable,
    VarbitType,
    is_header,
    is_union,
    substitute,
    width_of,
    with_arguments,
)

_SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


class Calls(Expressions):
    """`infer_call` and what it needs."""

    # --------------------------------------------------------------------------------- signatures

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

    def overload(self, name: str, declarations: list[ast.FunctionDeclaration]) -> Type:
        """The type of a name that stands for functions."""
        return OverloadType(name, tuple(self.signature(entry) for entry in declarations), "function")

    def extern_method(self, expression: ast.Member, base: Type) -> Type | None:
        """The type of `base.name` where base is an extern, control, parser or table; None if it is none."""
        name = expression.name
        if isinstance(base, ExternType):
            methods = [method for method in base.declaration.methods if method.name == name and method.result]
            if not methods:
                return None
            variables = [parameter.type for parameter in base.declaration.type_parameters]
            mapping = {
                variable: argument
                for variable, argument in zip(variables, base.arguments, strict=False)
                if variable is not None
            }
            return OverloadType(name, tuple(self.signature(method) for method in methods), "method", mapping)
        if isinstance(base, ControlType | ParserType | TableType) and name == "apply":
            return base
        return None

    # --------------------------------------------------------------------------------- dispatch

    def infer_call(self, expression: ast.Call, expected: Type | None) -> Type:
        """A call of any kind."""
        callee = expression.callee
        if isinstance(callee, ast.TypeExpression):
            return self._constructor(expression, self.resolve_constructed(callee.node), expected)
        if isinstance(callee, ast.Member):
            builtin = self._builtin(expression, callee)
            if builtin is not None:
                return builtin
        type_ = self.infer(callee)
        if type_ is UNKNOWN:
            for argument in expression.arguments:
                if argument.expression is not None:
                    self.infer(argument.expression)
            return UNKNOWN
        if isinstance(type_, OverloadType):
            return self._overloaded(expression, type_, expected)
        if isinstance(type_, ActionType):
            expression.kind, expression.target = "action", type_.declaration
            if self.context.kind not in ("control", "action"):
                return self.fail(expression, f"an action cannot be called in {article(self.context.kind)}")
            parameters = self.parameter_types(type_.declaration.parameters)
            signature = FunctionType(type_.name, (), parameters, VOID, type_.declaration)
            return self._apply_signature(expression, signature, {}, expected)
        if isinstance(callee, ast.Member) and callee.name == "apply":
            if isinstance(type_, TableType):
                return self._table_apply(expression, type_)
            if isinstance(type_, ControlType | ParserType):
                return self._block_apply(expression, callee, type_)
        return self.fail(expression, f"'{type_}' cannot be called", callee)

    def _builtin(self, expression: ast.Call, callee: ast.Member) -> Type | None:
        """Header, union and stack methods, and sizes; None if it is none of them."""
        name = callee.name
        if name in _SIZES:
            if isinstance(callee.base, ast.TypeExpression):
                base = self.resolve_base(callee.base)
            else:
                base = self.infer(callee.base)
            width = width_of(base) if base is not UNKNOWN else None
            if isinstance(base, ExternType):
                return None
            if expression.arguments or expression.type_arguments:
                return self.fail(expression, f"'{name}' takes no arguments")
            expression.kind, expression.target = "builtin", name
            if width is not None:
                size = minimum_width(base) if name.startswith("min") else width
                expression.value = (size + 7) // 8 if name.endswith("Bytes") else size
            return INTEGER if width is not None else UNKNOWN
        if isinstance(callee.base, ast.TypeExpression):
            return None
        base = self.infer(callee.base)
        if is_header(base) or is_union(base):
            if name not in ("isValid", "setValid", "setInvalid"):
                return None
            if name != "isValid":
                self.check_writable(callee.base, f"'{name}'")
            parameters: tuple[ParameterType, ...] = ()
            result: Type = BOOL if name == "isValid" else VOID
        elif isinstance(base, StackType) and name in ("push_front", "pop_front"):
            self.check_writable(callee.base, f"'{name}'")
            count = ast.Parameter(callee.span, "count", [], "", ast.BaseTypeNode(callee.span, "int"), None)
            parameters = (ParameterType("count", "", INTEGER, False, count),)
            result = VOID
        else:
            return None
        callee.type = base
        expression.kind, expression.target = "builtin", name
        signature = FunctionType(name, (), parameters, result)
        return self._apply_signature(expression, signature, {}, None)

    def _table_apply(self, expression: ast.Call, type_: TableType) -> Type:
        if expression.arguments:
            return self.fail(expression, "table.apply() takes no arguments")
        if self.context.kind not in ("control",):
            return self.fail(
                expression,
                f"a table is applied in a control's apply block, not in {article(self.context.kind)}",
            )
        expression.kind, expression.target = "table", type_.declaration
        return ApplyResultType(type_.declaration)

    def _block_apply(self, expression: ast.Call, callee: ast.Member, type_: ControlType | ParserType) -> Type:
        by_type = isinstance(callee.base, ast.TypeExpression)
        kind = "parser" if isinstance(type_, ParserType) else "control"
        if self.context.kind != kind:
            return self.fail(expression, f"a {kind} cannot be applied in {article(self.context.kind)}")
        declaration = type_.declaration
        if by_type and declaration.constructor_parameters:
            return self.fail(
                expression, f"'{declaration.name}' has constructor parameters and needs an instance"
            )
        expression.kind, expression.target = ("type_apply" if by_type else "apply"), declaration
        variables = tuple(
            parameter.type
            for parameter in declaration.type_parameters
            if isinstance(parameter.type, TypeVariable)
        )
        mapping: dict[Type, Type] = dict(zip(variables, type_.arguments, strict=False))
        free = () if type_.arguments else variables
        signature = FunctionType(
            "apply", free, self.parameter_types(declaration.parameters), VOID, declaration
        )
        return self._apply_signature(expression, signature, mapping, None)

    # --------------------------------------------------------------------------------- constructors

    def resolve_constructed(self, node: ast.TypeNode) -> Type:
        """The type to build; a generic one may lack its arguments."""
        return self.resolve(node)

    def _constructor(self, expression: ast.Call, type_: Type, expected: Type | None) -> Type:
        if type_ is UNKNOWN:
            return UNKNOWN
        expression.kind = "constructor"
        if isinstance(type_, ExternType):
            constructors = [
                self.signature(method)
                for method in type_.declaration.methods
                if method.result is None and method.name == type_.name
            ]
            if not constructors:
                return self.fail(expression, f"'{type_.name}' has no constructor")
        elif isinstance(type_, ControlType | ParserType):
            if (
                type_.declaration.body if isinstance(type_, ControlType) else type_.declaration.states
            ) is None:
                return self.fail(expression, f"'{type_.name}' is only a type and cannot be instantiated")
            parameters = self.parameter_types(type_.declaration.constructor_parameters)
            constructors = [FunctionType(type_.name, (), parameters, VOID, type_.declaration)]
        elif isinstance(type_, PackageType):
            parameters = self.parameter_types(type_.declaration.parameters)
            constructors = [FunctionType(type_.name, (), parameters, VOID, type_.declaration)]
        else:
            message = f"'{type_}' cannot be instantiated"
            if isinstance(type_, StructType):
                message += ": a variable of it is declared without parentheses"
            return self.fail(expression, message)
        variables = tuple(
            parameter.type
            for parameter in type_.declaration.type_parameters
            if isinstance(parameter.type, TypeVariable)
        )
        mapping: dict[Type, Type] = dict(zip(variables, type_.arguments, strict=False))
        free = () if type_.arguments else variables
        named = [
            FunctionType(entry.name, free, entry.parameters, VOID, entry.declaration)
            for entry in constructors
        ]
        chosen = self._choose(expression, named)
        if chosen is None:
            return UNKNOWN
        if isinstance(expected, type(type_)) and free and expected.declaration is type_.declaration:
            mapping.update(zip(variables, expected.arguments, strict=False))
            chosen = FunctionType(chosen.name, (), chosen.parameters, VOID, chosen.declaration)
        if self._apply_signature(expression, chosen, mapping, None) is UNKNOWN:
            return UNKNOWN
        for argument in expression.ordered:
            if argument is not None and (changing := _changing_name(argument)) is not None:
                self.error(
                    f"a constructor's argument must be known at compile time; '{changing.name}' is not",
                    argument,
                )
        arguments = tuple(substitute(variable, expression.bindings) for variable in variables)
        expression.target = with_arguments(type_, arguments) if variables else type_
        assert isinstance(expression.target, Type)
        return expression.target

    # --------------------------------------------------------------------------------- signatures

    def _overloaded(self, expression: ast.Call, type_: OverloadType, expected: Type | None) -> Type:
        expression.kind = type_.kind
        chosen = self._choose(expression, type_.functions)
        if chosen is None:
            return UNKNOWN
        expression.target = chosen.declaration
        result = self._apply_signature(expression, chosen, dict(type_.mapping), expected)
        if chosen.name == "extract" and type_.kind == "method":
            self._check_extract(expression)
        if chosen.name == "lookahead" and type_.kind == "method" and not looked_ahead(result):
            return self.fail(expression, f"'lookahead' needs a type of fixed width, not '{result}'")
        if chosen.name == "static_assert" and type_.kind == "function" and result is BOOL:
            self._static_assert(expression)
        return result

    def _check_extract(self, expression: ast.Call) -> None:
        """packet_in.extract takes headers, with a length those that have a varbit field."""
        argument = expression.ordered[0] if expression.ordered else None
        type_ = argument.type if argument is not None else None
        if argument is None or type_ is None or type_ is UNKNOWN or isinstance(type_, TypeVariable):
            return
        if not is_header(type_):
            self.error(f"'extract' needs a header, not '{type_}'", argument)
            return
        assert isinstance(type_, StructType)
        variable = any(isinstance(field, VarbitType) for field in type_.fields.values())
        if variable != (len(expression.ordered) > 1):
            problem = "has a varbit field, so its length must be given" if variable else "has no varbit field"
            self.error(f"'{type_}' {problem}", argument).note("declared here", type_.declaration.span)

    def _static_assert(self, expression: ast.Call) -> None:
        condition = expression.ordered[0]
        if condition.value is None:
            self.error("the condition of static_assert must be known at compile time", condition)
        elif not condition.value:
            message = expression.ordered[1].value if len(expression.ordered) > 1 else "it does not hold"
            self.error(f"static_assert: {message}", expression)
        expression.value = condition.value

    def _choose(self, expression: ast.Call, functions: Sequence[FunctionType]) -> FunctionType | None:
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

    def _apply_signature(
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

    # --------------------------------------------------------------------------------- l-values

    def check_writable(self, expression: ast.Expression, what: str) -> bool:
        """Whether an expression can be written to; reports why not."""
        if isinstance(expression, ast.Name):
            declaration = expression.declaration
            if isinstance(declaration, ast.VariableDeclaration):
                return True
            if isinstance(declaration, ast.Parameter):
                if declaration.direction in ("out", "inout"):
                    return True
                if isinstance(declaration.type, ExternType):
                    return True
                kind = (
                    f"an '{declaration.direction}' parameter"
                    if declaration.direction
                    else "a parameter without direction"
                )
                self.error(f"{what} cannot write to '{expression.name}': it is {kind}", expression).note(
                    "declared here", declaration.span
                )
                return False
            if expression.type is not UNKNOWN:
                kind = (
                    "it is a constant"
                    if isinstance(declaration, ast.ConstantDeclaration)
                    else "it is no variable"
                )
                self.error(f"{what} cannot write to '{expression.name}': {kind}", expression)
            return False
        if isinstance(expression, ast.Member) and not isinstance(expression.base, ast.TypeExpression):
            base = expression.base.type
            if isinstance(base, StackType) and expression.name in ("size", "lastIndex"):
                self.error(f"{what} cannot write to '{expression.name}'", expression)
                return False
            if isinstance(base, StructType | StackType):
                return self.check_writable(expression.base, what)
        if isinstance(expression, ast.Index | ast.Slice):
            return self.check_writable(expression.base, what)
        if expression.type is not UNKNOWN:
            self.error(f"{what} needs something that can be written to", expression)
        return False


def _inferred_later(function: FunctionType) -> bool:
    """Blocks find their type arguments when they are applied, packages need not have all."""
    blocks = (ast.PackageDeclaration, ast.ControlDeclaration, ast.ParserDeclaration)
    return isinstance(function.declaration, blocks)


def _changing_name(expression: ast.Node) -> ast.Name | None:
    """A variable or run-time parameter that an expression depends on."""
    for name in walk(expression):
        if not isinstance(name, ast.Name):
            continue
        declaration = name.declaration
        if isinstance(declaration, ast.VariableDeclaration) or (
            isinstance(declaration, ast.Parameter) and declaration.direction
        ):
            return name
    return None


def _fits(expression: ast.Call, function: FunctionType) -> bool:
    given = expression.arguments
    names = {parameter.name for parameter in function.parameters}
    named = {argument.name for argument in given if argument.name is not None}
    if not named <= names or len(given) > len(function.parameters):
        return False
    required = [parameter.name for parameter in function.parameters if not parameter.optional]
    positional = [parameter.name for parameter in function.parameters[: len(given) - len(named)]]
    return set(required) <= named | set(positional)


def minimum_width(type_: Type) -> int:
    """minSizeInBits: varbit fields count nothing, a union its smallest member."""
    from compiler.types import TupleType, VarbitType

    if isinstance(type_, VarbitType):
        return 0
    if isinstance(type_, StructType):
        widths = [minimum_width(member) for member in type_.fields.values()]
        if type_.kind == "header_union":
            return min(widths, default=0)
        return sum(widths)
    if isinstance(type_, TupleType):
        return sum(minimum_width(member) for member in type_.elements)
    if isinstance(type_, StackType):
        return minimum_width(type_.element) * type_.size
    return width_of(type_) or 0
