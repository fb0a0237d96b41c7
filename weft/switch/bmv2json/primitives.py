"""The primitives that actions, parser states and deparsers may call, with their parameters.

Source: behavioral-model docs/JSON_format.md ("actions") and docs/simple_switch.md ("Supported primitive
actions").
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from weft.switch.bmv2json.expressions import Argument


class Parameter(enum.Enum):
    """Kind of argument that a primitive's parameter accepts."""

    DATA = "an integer expression"
    BOOL = "a boolean expression"
    LVALUE = "an assignable field"
    HEADER = "a header"
    STACK = "a header stack"
    UNION = "a header union"
    UNION_STACK = "a header union stack"
    ANY_STACK = "a header stack or a header union stack"
    CALCULATION = "a calculation"
    METER = "a meter array"
    COUNTER = "a counter array"
    REGISTER = "a register array"
    STRING = "a string"
    VECTOR = "a parameters vector"
    JUMP = "a constant index of a primitive of the same action"


_P = Parameter

SIGNATURES: dict[str, tuple[Parameter, ...]] = {
    "assign": (_P.LVALUE, _P.DATA),
    "assign_VL": (_P.LVALUE, _P.LVALUE),
    "assign_header": (_P.HEADER, _P.HEADER),
    "assign_union": (_P.UNION, _P.UNION),
    "assign_header_stack": (_P.STACK, _P.STACK),
    "assign_union_stack": (_P.UNION_STACK, _P.UNION_STACK),
    "push": (_P.ANY_STACK, _P.DATA),
    "pop": (_P.ANY_STACK, _P.DATA),
    "_jump": (_P.JUMP,),
    "_jump_if_zero": (_P.DATA, _P.JUMP),
    "exit": (),
    "assert": (_P.BOOL,),
    "assume": (_P.BOOL,),
    "log_msg": (_P.STRING, _P.VECTOR),
    "add_header": (_P.HEADER,),
    "remove_header": (_P.HEADER,),
    "copy_header": (_P.HEADER, _P.HEADER),
    "drop": (),
    "mark_to_drop": (_P.HEADER,),
    "no_op": (),
    "truncate": (_P.DATA,),
    "modify_field": (_P.LVALUE, _P.DATA),
    "add_to_field": (_P.LVALUE, _P.DATA),
    "subtract_from_field": (_P.LVALUE, _P.DATA),
    "add": (_P.LVALUE, _P.DATA, _P.DATA),
    "subtract": (_P.LVALUE, _P.DATA, _P.DATA),
    "bit_xor": (_P.LVALUE, _P.DATA, _P.DATA),
    "bit_or": (_P.LVALUE, _P.DATA, _P.DATA),
    "bit_and": (_P.LVALUE, _P.DATA, _P.DATA),
    "shift_left": (_P.LVALUE, _P.DATA, _P.DATA),
    "shift_right": (_P.LVALUE, _P.DATA, _P.DATA),
    "modify_field_rng_uniform": (_P.LVALUE, _P.DATA, _P.DATA),
    "modify_field_with_hash_based_offset": (_P.LVALUE, _P.DATA, _P.CALCULATION, _P.DATA),
    "count": (_P.COUNTER, _P.DATA),
    "execute_meter": (_P.METER, _P.DATA, _P.LVALUE),
    "register_read": (_P.LVALUE, _P.REGISTER, _P.DATA),
    "register_write": (_P.REGISTER, _P.DATA, _P.DATA),
    "generate_digest": (_P.DATA, _P.DATA),
    "clone_ingress_pkt_to_egress": (_P.DATA, _P.DATA),
    "clone_egress_pkt_to_egress": (_P.DATA, _P.DATA),
    "resubmit": (_P.DATA,),
    "recirculate": (_P.DATA,),
}
"""Parameters of each primitive. `mark_to_drop` may also be written without its parameter."""

PACKET_PATH_PRIMITIVES = frozenset(
    {
        "clone_ingress_pkt_to_egress",
        "clone_egress_pkt_to_egress",
        "resubmit",
        "recirculate",
        "generate_digest",
    }
)
"""Primitives with a list id as last parameter: of a learn list for a digest, else of a field list.

Id 0 is the empty list.
"""


@dataclass(frozen=True, slots=True)
class PrimitiveCall:
    """One call: `name` is a key of `SIGNATURES`; `arguments` fit its signature."""

    name: str
    arguments: tuple[Argument, ...]
    source: str | None = None
    """`file:line: fragment` of the P4 program, if the compiler recorded it."""

    def assertion_message(self) -> str:
        """The log line for a packet that violates this `assert` or `assume`."""
        place = f" at {self.source}" if self.source else ""
        return f"{self.name} does not hold{place}: the packet is dropped"
