"""The options of a fabric as Python's keyword arguments, for editors, type checkers and help()."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from weft.errors import BadInputError
from weft.scenario.options import FabricKeywords, FabricOptions
from weft.scenario.parsing import parse_options

_Function = TypeVar("_Function", bound=Callable[..., Any])


class FabricMark(FabricKeywords, total=False):
    """Keywords of the mark `fabric`: the parameters of `weft.topologies.leaf_spine`, and the options of a fabric."""

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    host_rate_bps: float
    fabric_rate_bps: float | None
    oversubscription: float | None
    delay_ps: int
    queue_capacity_bytes: int | None


def fabric_options(**given: Unpack[FabricKeywords]) -> FabricOptions:
    """Return checked options.

    Raises:
        BadInputError: an unknown option, or a value that is not valid; says what would be valid.
    """
    for name in given:
        if name not in FabricOptions.model_fields:
            valid = ", ".join(FabricOptions.model_fields)
            raise BadInputError(f"unknown option '{name}'; valid options: {valid}")
    keys = {name: field.alias or name for name, field in FabricOptions.model_fields.items()}
    return parse_options({keys[name]: value for name, value in given.items() if value is not None})


def with_fabric_keywords(function: _Function) -> _Function:
    """Give a function that takes `**options: Unpack[FabricKeywords]` a signature with each of them, for help()."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=FabricOptions.model_fields[name].get_default(),
            annotation=annotation,
        )
        for name, annotation in FabricKeywords.__annotations__.items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function
