"""Signatures of functions, methods and blocks, as a caller sees them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.types import UNKNOWN, FunctionType, OverloadType, ParameterType, Type


def signature(declaration: ast.FunctionDeclaration) -> FunctionType:
    """The signature of a function or method, made once by the declaration's check."""
    assert isinstance(declaration.signature, FunctionType)
    return declaration.signature


def parameter_types(parameters: Sequence[ast.Parameter]) -> tuple[ParameterType, ...]:
    """Parameters (types already resolved) as a caller sees them."""
    return tuple(
        ParameterType(
            parameter.name, parameter.direction, parameter.type or UNKNOWN,
            parameter.default is not None or parameter.annotation("optional") is not None, parameter,
        )
        for parameter in parameters
    )  # fmt: skip


def overload(name: str, declarations: list[ast.FunctionDeclaration]) -> Type:
    """The type of a name that stands for functions."""
    return OverloadType(name, tuple(signature(entry) for entry in declarations), "function")
