"""The code that Weft's own switches run, and calls of their services besides P4Runtime.

`weft.switch.daemon.code_service` and `manage_service` have the formats.
"""

from __future__ import annotations

import json
from typing import Any

import grpc

from weft.controller.errors import CommandError
from weft.controller.features.kind import Row
from weft.controller.grpc_targets import GrpcTarget, open_channel
from weft.controller.refusals import explain

CODE = "/weft.Switch/Code"
TIMEOUT_S = 10.0
_COMPILING_S = 60.0


async def ask_switch(
    method: str, address: str, name: str, device_id: int, request: dict[str, Any], timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Call a method of a device of the server at an address; `name` is for errors.

    Raises CommandError if the switch is not one of Weft's own, RequestRefusedError or SwitchUnavailableError.
    """
    channel = open_channel(address)
    try:
        data = json.dumps({"device_id": device_id, **request}).encode()
        answer: bytes = await channel.unary_unary(method)(data, timeout=timeout_s)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise CommandError("only Weft's own switches support this") from None
        raise explain(name, method.rpartition("/")[2], error) from None
    finally:
        await channel.close()
    found: dict[str, Any] = json.loads(answer)
    return found


async def code_row(target: GrpcTarget, name: str, specialise: bool) -> Row:
    """Return a switch's row of `weft controller profile`; with `specialise`, after it has got specialised code."""
    timeout_s = _COMPILING_S if specialise else TIMEOUT_S
    code = await ask_switch(CODE, target.address, name, target.device_id, {"specialise": specialise}, timeout_s)
    return {
        "switch": name,
        "code": "specialised" if code["is_specialised"] else "general",
        "filled_tables": code["filled_tables"],
        "tables": code["tables"],
        "writes": code["writes"],
        "generalised": code["generalisations"],
    }
