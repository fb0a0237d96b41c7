"""Runs actions: the primitives of behavioral-model, one function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from weft.switch.bmv2json import (
    Action,
    CalculationRef,
    Constant,
    CounterArrayRef,
    Expression,
    FieldAccess,
    FieldRef,
    MeterArrayRef,
    PrimitiveCall,
    RegisterArrayRef,
    RegisterRef,
    StackField,
)
from weft.switch.oracle.calculations import calculate
from weft.switch.oracle.expressions import BINARY, Environment, boolean, evaluate, header, integer
from weft.switch.oracle.state import HeaderState, PacketState, UnionState
from weft.switch.oracle.tracing import PrimitiveReport, add_event, report
from weft.switch.trace.events import Dropped
from weft.switch.trace.places import action_place

_U64 = 2**64 - 1
MAX_CLONE_SESSION = 0x7FFF
"""BMv2 keeps a session's low 15 bits."""


class PacketAbortedError(Exception):
    """The packet is dropped immediately, for `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Machine(Protocol):
    """The parts of the switch that actions and parsers use."""

    drop_port: int

    def register_cell(self, array: str, index: int) -> int:
        """The cell; 0 for an index out of range."""

    def set_register_cell(self, array: str, index: int, value: int) -> None:
        """Assign to the cell; an index out of range changes nothing."""

    def count(self, array: str, index: int, packet: PacketState) -> None:
        """Count the packet; an index out of range changes nothing."""

    def run_meter(self, array: str, index: int, packet: PacketState) -> int | None:
        """The packet's colour; None for an index out of range."""

    def random_between(self, low: int, high: int) -> int:
        """A uniformly distributed integer, both ends included."""

    def value_set_members(self, name: str) -> Sequence[tuple[int, int]]:
        """Members of a parser value set as (value, mask)."""

    def log(self, message: str) -> None:
        """Take a message of `log_msg`."""


def run_action(action: Action, arguments: Sequence[int], packet: PacketState, machine: Machine) -> None:
    """Run an action's primitives until its end or an `exit`."""
    report(packet, action_place(action), tuple(arguments))
    run_primitives(action.primitives, Environment(packet, machine, arguments), machine)


def run_primitives(calls: Sequence[PrimitiveCall], env: Environment, machine: Machine) -> None:
    """Run calls, including jumps, until their end or an `exit`."""
    position = 0
    while position < len(calls) and not env.packet.requests.exit:
        call = calls[position]
        if call.name == "_jump_if_zero":
            PrimitiveReport(env, call).finish()
        if not call.name.startswith("_jump"):
            run_primitive(call, env, machine)
            position += 1
        elif call.name == "_jump_if_zero" and integer(call.arguments[0], env) != 0:  # type: ignore[arg-type]
            position += 1
        else:
            position = _jump(call, position, env.packet)


def _abort(packet: PacketState, reason: str) -> None:
    add_event(packet, Dropped(reason))
    raise PacketAbortedError(reason)


def _jump(call: PrimitiveCall, position: int, packet: PacketState) -> int:
    target = call.arguments[-1]
    assert isinstance(target, Constant)
    if target.value <= position:
        if packet.loop_budget == 0:
            _abort(packet, "loop_limit")
        packet.loop_budget -= 1
    return target.value


def run_primitive(call: PrimitiveCall, env: Environment, machine: Machine) -> None:
    """Run one primitive that is not a jump."""
    report_of = PrimitiveReport(env, call)
    if call.name in ("exit", "assert", "assume"):
        report_of.finish()  # now: the packet may end here
    if call.name in ("assert", "assume"):
        _assert(call, env, machine)
    else:
        _PRIMITIVES[call.name](env, machine, *call.arguments)
    if call.name not in ("exit", "assert", "assume"):
        report_of.finish()


def assign(target: Expression, value: int, env: Environment, machine: Machine) -> None:
    """Assign to a field, a field of a stack element or a register cell."""
    match target:
        case FieldRef():
            env.packet.set(target, value)
        case FieldAccess(owner, index):
            found = header(owner, env)
            found.set(found.type.fields[index], value)
        case StackField(stack, name):
            last = env.packet.stacks[stack].last()
            last.set(last.type.field(name), value)
        case RegisterRef(array, index):
            machine.set_register_cell(array, integer(index, env), value)
        case _:
            raise TypeError(f"cannot assign to {target!r}")


def _assign(env: Environment, machine: Machine, target: Any, source: Any) -> None:
    assign(target, integer(source, env), env, machine)


def _assign_variable(env: Environment, machine: Machine, target: FieldRef, source: FieldRef) -> None:
    destination, origin = env.packet.headers[target.header], env.packet.headers[source.header]
    destination.variable_bits = min(origin.variable_bits, target.width_bits)
    destination.set(destination.type.field(target.field), origin.get(source.field))


def _assign_header(env: Environment, machine: Machine, target: Any, source: Any) -> None:
    header(target, env).copy_from(header(source, env))


def _assign_union(env: Environment, machine: Machine, target: Any, source: Any) -> None:
    _copy_union(evaluate(target, env), evaluate(source, env))


def _copy_union(target: UnionState, source: UnionState) -> None:
    copies = [(member, HeaderState("", member.type)) for member in target.members]
    for (_, copy), origin in zip(copies, source.members, strict=True):
        copy.copy_from(origin)
    # invalid members first: a valid one makes its siblings invalid
    for member, copy in sorted(copies, key=lambda pair: pair[1].valid):
        member.copy_from(copy)


def _assign_stack(env: Environment, machine: Machine, target: Any, source: Any) -> None:
    destination, origin = evaluate(target, env), evaluate(source, env)
    for into, out_of in zip(destination.elements, origin.elements, strict=True):
        if isinstance(into, UnionState):
            _copy_union(into, out_of)
        else:
            into.copy_from(out_of)
    destination.next = origin.next


def _push(env: Environment, machine: Machine, target: Any, amount: Any) -> None:
    stack, count = evaluate(target, env), integer(amount, env)
    size = len(stack.elements)
    for index in range(size - 1, count - 1, -1):
        _swap(stack.elements[index], stack.elements[index - count])
    _invalidate(stack.elements[:count])
    stack.next = min(size, stack.next + count)


def _pop(env: Environment, machine: Machine, target: Any, amount: Any) -> None:
    stack, count = evaluate(target, env), integer(amount, env)
    kept = max(0, len(stack.elements) - count)
    for index in range(kept):
        _swap(stack.elements[index], stack.elements[index + count])
    _invalidate(stack.elements[kept:])
    stack.next = max(0, stack.next - count)


def _headers_of(element: HeaderState | UnionState) -> list[HeaderState]:
    return element.members if isinstance(element, UnionState) else [element]


def _swap(one: HeaderState | UnionState, other: HeaderState | UnionState) -> None:
    """Swap elements, as in BMv2: elements that leave a stack at one end can be read, though invalid, at the other."""
    for mine, theirs in zip(_headers_of(one), _headers_of(other), strict=True):
        aside = HeaderState("", mine.type)
        aside.become(mine)
        mine.become(theirs)
        theirs.become(aside)


def _invalidate(elements: Sequence[HeaderState | UnionState]) -> None:
    for element in elements:
        for member in _headers_of(element):
            member.make_invalid()


def _add_header(env: Environment, machine: Machine, target: Any) -> None:
    found = header(target, env)
    if not found.valid:
        found.values.clear()
        found.make_valid()
        env.packet.length_bytes += found.width_bits() // 8


def _remove_header(env: Environment, machine: Machine, target: Any) -> None:
    found = header(target, env)
    if found.valid:
        env.packet.length_bytes -= found.width_bits() // 8
        found.make_invalid()


def _drop(env: Environment, machine: Machine, *_: Any) -> None:
    env.packet.set_intrinsic("standard_metadata.egress_spec", machine.drop_port)
    env.packet.set_intrinsic("intrinsic_metadata.mcast_grp", 0)


def _exit(env: Environment, machine: Machine) -> None:
    env.packet.requests.exit = True


def _assert(call: PrimitiveCall, env: Environment, machine: Machine) -> None:
    if not boolean(call.arguments[0], env):  # type: ignore[arg-type]
        machine.log(call.assertion_message())
        _abort(env.packet, "assertion")


def _log(env: Environment, machine: Machine, text: Any, vector: Any) -> None:
    values = [str(integer(element, env)) for element in vector.elements]
    pieces = text.value.split("{}")
    message = pieces[0]
    for index, piece in enumerate(pieces[1:]):
        message += (values[index] if index < len(values) else "{}") + piece
    machine.log(message)


def _truncate(env: Environment, machine: Machine, length: Any) -> None:
    # the smallest of several counts, as in BMv2
    have, wanted = env.packet.truncated_bytes, integer(length, env)
    env.packet.truncated_bytes = wanted if have is None else min(have, wanted)


def _in_place(operator: str) -> Callable[..., None]:
    def run(env: Environment, machine: Machine, target: Any, source: Any) -> None:
        assign(target, BINARY[operator](integer(target, env), integer(source, env)), env, machine)

    return run


def _three_address(operator: str) -> Callable[..., None]:
    def run(env: Environment, machine: Machine, target: Any, left: Any, right: Any) -> None:
        assign(target, BINARY[operator](integer(left, env), integer(right, env)), env, machine)

    return run


def _random(env: Environment, machine: Machine, target: Any, low: Any, high: Any) -> None:
    first, last = integer(low, env) & _U64, integer(high, env) & _U64
    # as in BMv2, an empty range leaves the target unchanged
    if first <= last:
        assign(target, machine.random_between(first, last), env, machine)


def _hash(env: Environment, machine: Machine, target: Any, base: Any, calculation: CalculationRef, size: Any) -> None:
    value = calculate(env.packet.program.calculations[calculation.name], env.packet)
    modulus, start = integer(size, env) & _U64, integer(base, env) & _U64
    assign(target, start + value % max(modulus, 1) & _U64, env, machine)


def _count(env: Environment, machine: Machine, array: CounterArrayRef, index: Any) -> None:
    machine.count(array.name, integer(index, env), env.packet)


def _meter(env: Environment, machine: Machine, array: MeterArrayRef, index: Any, target: Any) -> None:
    colour = machine.run_meter(array.name, integer(index, env), env.packet)
    if colour is not None:
        assign(target, colour, env, machine)


def _register_read(env: Environment, machine: Machine, target: Any, array: RegisterArrayRef, index: Any) -> None:
    number = integer(index, env)
    # as in BMv2, an index out of range leaves the target unchanged
    if 0 <= number < env.packet.program.register_arrays[array.name].size:
        assign(target, machine.register_cell(array.name, number), env, machine)


def _register_write(env: Environment, machine: Machine, array: RegisterArrayRef, index: Any, value: Any) -> None:
    machine.set_register_cell(array.name, integer(index, env), integer(value, env))


def _digest(env: Environment, machine: Machine, receiver: Any, list_id: Constant) -> None:
    env.packet.requests.digest_list = list_id.value


def _clone(env: Environment, machine: Machine, session: Any, list_id: Constant) -> None:
    env.packet.requests.clone_session = integer(session, env) & MAX_CLONE_SESSION
    env.packet.requests.clone_field_list = list_id.value


def _resubmit(env: Environment, machine: Machine, list_id: Constant) -> None:
    # BMv2 keeps the list's id as the request, so the id 0 requests nothing
    env.packet.requests.resubmit_list = list_id.value


def _recirculate(env: Environment, machine: Machine, list_id: Constant) -> None:
    env.packet.requests.recirculate_list = list_id.value


_PRIMITIVES: dict[str, Callable[..., None]] = {
    "assign": _assign,
    "assign_VL": _assign_variable,
    "assign_header": _assign_header,
    "assign_union": _assign_union,
    "assign_header_stack": _assign_stack,
    "assign_union_stack": _assign_stack,
    "push": _push,
    "pop": _pop,
    "exit": _exit,
    "log_msg": _log,
    "add_header": _add_header,
    "remove_header": _remove_header,
    "copy_header": _assign_header,
    "drop": _drop,
    "mark_to_drop": _drop,
    "no_op": lambda env, machine: None,
    "truncate": _truncate,
    "modify_field": _assign,
    "add_to_field": _in_place("+"),
    "subtract_from_field": _in_place("-"),
    "add": _three_address("+"),
    "subtract": _three_address("-"),
    "bit_xor": _three_address("^"),
    "bit_or": _three_address("|"),
    "bit_and": _three_address("&"),
    "shift_left": _three_address("<<"),
    "shift_right": _three_address(">>"),
    "modify_field_rng_uniform": _random,
    "modify_field_with_hash_based_offset": _hash,
    "count": _count,
    "execute_meter": _meter,
    "register_read": _register_read,
    "register_write": _register_write,
    "generate_digest": _digest,
    "clone_ingress_pkt_to_egress": _clone,
    "clone_egress_pkt_to_egress": _clone,
    "resubmit": _resubmit,
    "recirculate": _recirculate,
}
