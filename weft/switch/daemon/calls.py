"""Calls of the daemon's services besides P4Runtime: JSON that names a switch by its device id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeVar

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class SwitchRequest(BaseModel):
    """Fields of every request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device_id: int = Field(ge=0, lt=2**64)


_Request = TypeVar("_Request", bound=SwitchRequest)
_Switch = TypeVar("_Switch")


def read_request(
    kind: type[_Request], data: bytes, switches: Mapping[int, _Switch], context: grpc.ServicerContext
) -> tuple[_Request, _Switch]:
    """Return a call's request and the switch that it names; an invalid request aborts the call."""
    try:
        request = kind.model_validate_json(data)
    except ValidationError as error:
        abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
    if request.device_id not in switches:
        valid = ", ".join(map(str, switches)) or "none"
        abort(context, grpc.StatusCode.NOT_FOUND, f"unknown device id {request.device_id} (valid: {valid})")
    return request, switches[request.device_id]


def abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    """End a call with a code and a message."""
    context.abort(code, message)
    raise AssertionError("abort raises")
