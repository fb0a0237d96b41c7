"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., Any])


def with_options(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds these click options to a command; its help has them in this order."""

    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added
