"""Turns gRPC errors into readable ones that name the switch, the update and the server's reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import finsy
import grpc
from finsy.p4client import P4RpcStatus
from finsy.p4entity import decode_entity
from finsy.proto import p4r

from weft.controller.errors import (
    ControllerError,
    NotPrimaryError,
    RequestRefusedError,
    SwitchUnavailableError,
)
from weft.controller.reconcile import EncodedUpdate

_UNREACHABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


def explain(
    switch: str,
    operation: str,
    error: grpc.aio.AioRpcError,
    updates: Sequence[EncodedUpdate] | None = None,
    schema: finsy.P4Schema | None = None,
) -> ControllerError:
    """Return a controller error for a failed call."""
    if error.code() in _UNREACHABLE:
        return SwitchUnavailableError(f"{switch}: {operation}: no answer ({error.code().name}: {error.details()})")
    status = P4RpcStatus.from_rpc_error(error)
    code = status.code.name
    text = f"{switch}: {operation} refused: {code}: {status.message}"
    if updates is not None and status.details:
        index, detail = next(iter(status.details.items()))
        update = describe_update(updates[index].message, schema)
        more = f" (and {len(status.details) - 1} more)" if len(status.details) > 1 else ""
        code = detail.canonical_code.name
        text = f"{switch}: {update} refused: {code}: {detail.message}{more}"
    if error.code() is grpc.StatusCode.PERMISSION_DENIED:
        return NotPrimaryError(text)
    refusal = RequestRefusedError(text)
    refusal.status = code
    return refusal


def describe_update(update: Any, schema: finsy.P4Schema | None) -> str:
    """Return one line that describes an update: its kind and its entity, with names if the schema knows them."""
    kind = p4r.Update.Type.Name(update.type)
    if schema is None:
        return f"{kind} {update.entity.WhichOneof('entity')}"
    try:
        entity = decode_entity(update.entity, schema)
    except ValueError:
        return f"{kind} {update.entity.WhichOneof('entity')}"
    if isinstance(entity, finsy.P4TableEntry):
        return f"{kind} {entity.table_id} {entity.match_str(schema)} -> {entity.action_str(schema)}"
    return f"{kind} {entity!r}"
