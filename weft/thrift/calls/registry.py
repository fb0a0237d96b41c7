"""Functions that carry out the services' calls, by name; this package's modules register theirs with `@carries_out`."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from weft.controller.errors import CommandError, RequestRefusedError
from weft.controller.switch_cli import CommandSession


class CallRefusedError(Exception):
    """A call is refused with a code of its service; the client sees only the code, the log the reason as well."""

    def __init__(self, code: IntEnum, reason: object) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code


class CallUnsupportedError(Exception):
    """Weft's switch has nothing for a call."""


@dataclass(frozen=True)
class Target:
    """The switch that carries out calls.

    Attributes:
        session: runs commands on it; all clients of the port share it, and so handles, nodes and lags.
        thrift_port: its Thrift port.
    """

    session: CommandSession
    thrift_port: int


Carry = Callable[..., Awaitable[Any]]
CALLS: dict[str, Carry] = {}
"""Functions by the names of their calls. Arguments are a `Target`, and the call's by name without `cxt_id`."""


def carries_out(function: Carry) -> Carry:
    """Register a function under its name, a call's."""
    CALLS[function.__name__] = function
    return function


@contextlib.contextmanager
def refused_as(code: IntEnum) -> Iterator[None]:
    """Raise CommandError as the refusal of a call with `code`."""
    try:
        yield
    except CommandError as error:
        raise CallRefusedError(code, error) from None


@contextlib.contextmanager
def statuses_as(**codes: IntEnum) -> Iterator[None]:
    """Raise what P4Runtime refuses with a status as the refusal of a call with the status's code."""
    try:
        yield
    except RequestRefusedError as error:
        if error.status in codes:
            raise CallRefusedError(codes[error.status], error) from None
        raise


def as_signed(value: int, bits: int = 64) -> int:
    """Return a value's low bits as Thrift's signed number of that width."""
    return (value & ((1 << bits) - 1)) - (1 << bits if value >> (bits - 1) & 1 else 0)
