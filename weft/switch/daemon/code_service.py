"""The machine code that switches run: a gRPC method besides P4Runtime.

`/weft.Switch/Code` takes JSON (CodeRequest) and answers with JSON (CodeAnswer). `weft.controller.switch_code` is its
client.
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from pydantic import BaseModel, ConfigDict

from weft.engine import _core
from weft.switch.daemon.calls import SwitchRequest, abort, read_request
from weft.switch.daemon.wired_switches import WiredSwitch
from weft.switch.native.specialised import specialise

SERVICE = "weft.Switch"
METHOD = "Code"


class CodeRequest(SwitchRequest):
    """With `specialise`, the switch gets code for the present contents of its tables first."""

    specialise: bool = False


class CodeAnswer(BaseModel):
    """The code in use.

    Attributes:
        is_specialised: whether it takes contents of tables for granted.
        generalisations: how often a write has ended that since the program was loaded.
        writes: to tables and members of action profiles since then.
        tables: of the program.
        filled_tables: those with entries.

    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    is_specialised: bool
    generalisations: int
    writes: int
    tables: int
    filled_tables: int


def code_of(wired: WiredSwitch, request: CodeRequest) -> CodeAnswer:
    """Carry out a request to a switch that has a program."""
    switch = wired.switch
    if request.specialise:
        specialise([switch])  # without the engine's lock: compiling takes a second, and packets would wait
    contents = _core.CommonContents([], {})
    switch.native.add_contents_to(contents)
    code = switch.code
    filled = sum(has_entries for has_entries, _ in contents.tables)
    return CodeAnswer(
        is_specialised=code.is_specialised,
        generalisations=code.generalisations,
        writes=code.writes,
        tables=len(contents.tables),
        filled_tables=filled,
    )


def handler(switches: Mapping[int, WiredSwitch]) -> grpc.GenericRpcHandler:
    """Return a handler with which a gRPC server tells of the code of `switches`."""

    def serve(data: bytes, context: grpc.ServicerContext) -> bytes:
        request, wired = read_request(CodeRequest, data, switches, context)
        if wired.switch.program is None:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, f"switch '{wired.config.name}' has no program yet")
        return code_of(wired, request).model_dump_json().encode()

    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: grpc.unary_unary_rpc_method_handler(serve)})
