"""Calls of extern functions and methods of core.p4 and v1model.p4."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.compiler import ast
from weft.compiler.ir import Expr
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.externs import checks, fate, hashes, state
from weft.compiler.lower.externs.operands import Arguments, only_in_pipelines
from weft.compiler.lower.values import ExternValue

_METHODS: Mapping[tuple[str, str], Callable[[Context, ast.Call, ExternValue, Arguments], None]] = {
    ("register", "read"): state.read_register,
    ("register", "write"): state.write_register,
    ("counter", "count"): state.count_packets,
    ("direct_counter", "count"): state.count_directly,
    ("meter", "execute_meter"): state.execute_meter,
    ("direct_meter", "read"): state.read_direct_meter,
}
_FUNCTIONS: Mapping[str, Callable[[Context, ast.Call, Arguments], Expr | None]] = {
    "random": hashes.draw_random,
    "hash": hashes.hash_fields,
    "mark_to_drop": fate.mark_to_drop,
    "truncate": fate.truncate,
    "digest": fate.send_digest,
    "clone": fate.clone,
    "clone3": fate.clone_obsolete,
    "clone_preserving_field_list": fate.clone_preserving,
    "resubmit": fate.resubmit_obsolete,
    "resubmit_preserving_field_list": fate.resubmit_preserving,
    "recirculate": fate.recirculate_obsolete,
    "recirculate_preserving_field_list": fate.recirculate_preserving,
    "verify": checks.verify,
    "assert": checks.check_assertion,
    "assume": checks.check_assertion,
    "log_msg": checks.log_message,
    "static_assert": checks.static_assert,
    "verify_checksum": checks.refuse_checksum,
    "verify_checksum_with_payload": checks.refuse_checksum,
    "update_checksum": checks.refuse_checksum,
    "update_checksum_with_payload": checks.refuse_checksum,
}


def call_extern(context: Context, call: ast.Call, arguments: Arguments) -> Expr | None:
    """Emit the primitive of a call; returns its result where it has one."""
    name = call.target.name
    if call.kind == "method":
        callee = call.callee
        assert isinstance(callee, ast.Member)
        receiver = evaluate(context, callee.base)
        assert isinstance(receiver, ExternValue)
        method = _METHODS.get((receiver.kind, name))
        if method is None:
            context.refuse(f"v1model on BMv2 has no '{receiver.kind}.{name}'", call)
        only_in_pipelines(context, call, f"{receiver.kind}.{name}")
        method(context, call, receiver, arguments)
        return None
    if context.place != "parser" and name != "static_assert":
        context.control_plane.extern_functions.add(name)
    function = _FUNCTIONS.get(name)
    if function is None:
        context.refuse(f"v1model on BMv2 has no extern function '{name}'", call)
    return function(context, call, arguments)
