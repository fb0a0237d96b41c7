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

from weft.compiler import ast
from weft.compiler.check.allowed_types import looked_ahead
from weft.compiler.check.arguments import Arguments
from weft.compiler.check.scope import article
from weft.compiler.subexpressions import walk
from weft.compiler.types import (
    BOOL,
    INTEGER,
    UNKNOWN,
    VOID,
    ActionType,
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


class Calls(Arguments):
    """`infer_call` and what it needs."""

    # --------------------------------------------------------------------------------- signatures

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
            return self.apply_signature(expression, signature, {}, expected)
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
        elif (
            isinstance(base, StackType)
            and (is_header(base.element) or is_union(base.element))
            and name in ("push_front", "pop_front")
        ):
            self.check_writable(callee.base, f"'{name}'")
            count = ast.Parameter(callee.span, "count", [], "", ast.BaseTypeNode(callee.span, "int"), None)
            parameters = (ParameterType("count", "", INTEGER, False, count),)
            result = VOID
        else:
            return None
        callee.type = base
        expression.kind, expression.target = "builtin", name
        signature = FunctionType(name, (), parameters, result)
        return self.apply_signature(expression, signature, {}, None)

    def _table_apply(self, expression: ast.Call, type_: TableType) -> Type:
        if expression.arguments:
            return self.fail(expression, "table.apply() takes no arguments")
        if self.context.kind != "control":
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
        return self.apply_signature(expression, signature, mapping, None)

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
        chosen = self.choose(expression, named)
        if chosen is None:
            return UNKNOWN
        if isinstance(expected, type(type_)) and free and expected.declaration is type_.declaration:
            mapping.update(zip(variables, expected.arguments, strict=False))
            chosen = FunctionType(chosen.name, (), chosen.parameters, VOID, chosen.declaration)
        if self.apply_signature(expression, chosen, mapping, None) is UNKNOWN:
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
        chosen = self.choose(expression, type_.functions)
        if chosen is None:
            return UNKNOWN
        expression.target = chosen.declaration
        result = self.apply_signature(expression, chosen, dict(type_.mapping), expected)
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


def minimum_width(type_: Type) -> int:
    """minSizeInBits: varbit fields count nothing, a union its smallest member."""
    from weft.compiler.types import TupleType, VarbitType

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
