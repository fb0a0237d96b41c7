"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from weft.quantities.definitions import Quantity

_Command = TypeVar("_Command", bound=Callable[..., Any])


def with_options(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds these click options to a command; its help has them in this order."""

    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


class QuantityOption(click.ParamType[int]):
    """A quantity, as scenarios have it."""

    def __init__(self, quantity: Quantity) -> None:
        self.name = quantity.name.removeprefix("a ")
        self._quantity = quantity

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a text; the default may be one, too."""
        if isinstance(value, int):
            return value
        try:
            return int(self._quantity.read(value, units_required=True))
        except ValueError as error:
            self.fail(str(error), param, ctx)
