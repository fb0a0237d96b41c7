"""Errors of gNMI requests, each with its gRPC status."""

from __future__ import annotations

from typing import Any

import grpc

from weft.errors import Refusal


class GnmiError(Refusal, ValueError):
    """A request that is refused with status `code`."""

    def __init__(self, problem: str, *, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT, **parts: Any) -> None:
        super().__init__(problem, **parts)
        self.code = code


_LONGEST_SHOWN = 64


def shown(text: str) -> str:
    """Return a client's text for a message: quoted, without control characters, cut to a status's length."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
