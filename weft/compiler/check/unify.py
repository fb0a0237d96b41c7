"""Inference of type arguments."""

from __future__ import annotations

from weft.compiler.types import (
    DEFAULT,
    INTEGER,
    INVALID_HEADER,
    UNKNOWN,
    AnonymousStructType,
    BitsType,
    ControlType,
    EnumType,
    ListType,
    NominalType,
    ParserType,
    SetType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    strip_new,
    substitute,
)


def unify(parameter: Type, argument: Type, variables: set[Type], bindings: dict[Type, Type]) -> bool:
    """Bind `variables` so that `argument` fits `parameter`; False when their shapes disagree.

    An arbitrary-precision integer binds a variable only when nothing better does. Conversions are not
    checked here.
    """
    if argument is UNKNOWN or argument is DEFAULT or argument is INVALID_HEADER:
        return True
    if isinstance(parameter, TypeVariable) and parameter in variables:
        bound = bindings.get(parameter)
        if bound is None or bound is INTEGER or _less_definite(bound, argument):
            bindings[parameter] = argument
            return True
        return argument is INTEGER or compatible(substitute(bound, bindings), argument)
    if isinstance(parameter, TupleType):
        if isinstance(argument, TupleType) and len(argument.elements) == len(parameter.elements):
            pairs = zip(parameter.elements, argument.elements, strict=True)
            return _every([unify(left, right, variables, bindings) for left, right in pairs])
        return False
    if isinstance(parameter, ListType) and isinstance(argument, ListType):
        return unify(parameter.element, argument.element, variables, bindings)
    if isinstance(parameter, ListType) and isinstance(argument, TupleType):
        return _every([unify(parameter.element, element, variables, bindings) for element in argument.elements])
    if isinstance(parameter, SetType) and isinstance(argument, SetType):
        return unify(parameter.element, argument.element, variables, bindings)
    if isinstance(parameter, StackType) and isinstance(argument, StackType):
        return parameter.size == argument.size and unify(parameter.element, argument.element, variables, bindings)
    if isinstance(parameter, StructType):
        return _unify_struct(parameter, argument, variables, bindings)
    if isinstance(parameter, NominalType) and isinstance(argument, NominalType):
        if parameter.declaration is argument.declaration:
            pairs = zip(parameter.arguments, argument.arguments, strict=False)
            return _every([unify(left, right, variables, bindings) for left, right in pairs])
        return compatible(parameter, argument)
    return compatible(parameter, argument)


def unify_blocks(
    wanted: ControlType | ParserType,
    found: Type,
    variables: set[Type],
    bindings: dict[Type, Type],
) -> bool:
    """Whether a control or parser has the signature of another one."""
    assert isinstance(found, ControlType | ParserType)
    if found.declaration is wanted.declaration:
        return True
    inner = [parameter.type for parameter in wanted.declaration.type_parameters]
    mapping: dict[Type, Type] = {
        variable: argument for variable, argument in zip(inner, wanted.arguments, strict=False) if variable
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


def compatible(parameter: Type, argument: Type) -> bool:
    """Whether an argument can be converted implicitly to a parameter's type, as far as shapes go."""
    if parameter == argument or parameter is UNKNOWN or argument is UNKNOWN:
        return True
    if argument is INTEGER:
        return isinstance(strip_new(parameter), BitsType)
    if isinstance(argument, EnumType) and argument.underlying is not None:
        return parameter == argument.underlying
    if isinstance(argument, TupleType):
        return isinstance(parameter, TupleType | StructType | ListType | StackType)
    if isinstance(argument, AnonymousStructType):
        return isinstance(parameter, StructType)
    if argument is DEFAULT or argument is INVALID_HEADER:
        return True
    return isinstance(parameter, TypeVariable) or isinstance(argument, TypeVariable)


def _every(results: list[bool]) -> bool:
    """All of them; a list, because each unification must happen even after one failed."""
    return all(results)


def _unify_struct(parameter: StructType, argument: Type, variables: set[Type], bindings: dict[Type, Type]) -> bool:
    if isinstance(argument, StructType) and argument.declaration is parameter.declaration:
        pairs = zip(parameter.arguments, argument.arguments, strict=False)
        return _every([unify(left, right, variables, bindings) for left, right in pairs])
    fields = parameter.fields
    if isinstance(argument, TupleType) and len(argument.elements) == len(fields):
        pairs = zip(fields.values(), argument.elements, strict=True)
        return _every([unify(left, right, variables, bindings) for left, right in pairs])
    if isinstance(argument, AnonymousStructType):
        return _every(
            [name in fields and unify(fields[name], type_, variables, bindings) for name, type_ in argument.fields]
        )
    return False


def _less_definite(bound: Type, argument: Type) -> bool:
    return isinstance(bound, TupleType | AnonymousStructType) and isinstance(argument, StructType)
