"""Options that are quantities: a time, a rate, a size, with their unit."""

from __future__ import annotations

from typing import Any

import click

from weft.quantities.definitions import Quantity


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
