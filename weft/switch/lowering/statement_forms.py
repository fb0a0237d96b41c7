"""The form of a statement: the statement without the fields and arrays that may differ between repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.switch.bmv2json import (
    BoolConstant,
    Constant,
    FieldRef,
    Operation,
    PrimitiveCall,
    RegisterArrayRef,
    RuntimeData,
)
from weft.switch.lowering.effects import ASSIGNMENTS
from weft.switch.lowering.layout import BlockLayout
from weft.switch.lowering.register_layout import RegisterLayout

JUMPS = frozenset({"_jump", "_jump_if_zero"})
_ALLOWED = (ASSIGNMENTS - {"modify_field_with_hash_based_offset"}) | JUMPS | {"register_read", "register_write"}
_WHOLE_BITS = frozenset({8, 16, 32, 64})

Moving: TypeAlias = FieldRef | RegisterArrayRef
"""An operand that may differ between repetitions."""

Place: TypeAlias = tuple[tuple[object, ...], int, Moving]
"""Properties that must equal the neighbours', the place in bytes, and the operand."""


@dataclass(frozen=True, slots=True)
class Form:
    """A call without its moving operands, which are in `places`, in order. `jumps_by` is the distance of a jump."""

    rest: object
    places: tuple[Place, ...]
    jumps_by: int = 0


def alike(first: Form, second: Form) -> bool:
    """Return whether two calls differ at most in the places of moving operands."""
    return (
        first.rest == second.rest
        and first.jumps_by == second.jumps_by
        and all(a[0] == b[0] for a, b in zip(first.places, second.places, strict=True))
    )


def form_of(
    call: PrimitiveCall, index: int, blocks: Mapping[str, BlockLayout], arrays: Mapping[str, RegisterLayout]
) -> Form | None:
    """Return the form of call number `index` of an action; None if loops must not contain it."""
    if call.name not in _ALLOWED:
        return None
    arguments: Sequence[object] = call.arguments
    jumps_by = 0
    if call.name in JUMPS:
        *arguments, target = call.arguments
        if not isinstance(target, Constant) or target.value <= index:
            return None
        jumps_by = target.value - index
    parts = _Parts(blocks, arrays)
    rest = tuple(map(parts.rest, arguments))
    return None if None in rest else Form((call.name, rest), tuple(parts.places), jumps_by)


class _Parts:
    """Splits arguments into fixed parts and moving operands."""

    def __init__(self, blocks: Mapping[str, BlockLayout], arrays: Mapping[str, RegisterLayout]) -> None:
        self._blocks = blocks
        self._arrays = arrays
        self.places: list[Place] = []

    def rest(self, item: object) -> object:
        """Return an argument without its moving operands, which join `places`; None if loops must not have it."""
        match item:
            case Constant() | BoolConstant() | RuntimeData():
                return item
            case FieldRef():
                return self._rest_of_field(item)
            case RegisterArrayRef(name):
                layout = self._arrays[name]
                common = (
                    layout.group_bytes,
                    layout.stride_bytes,
                    layout.cell_bytes,
                    layout.size,
                    layout.width_bits,
                )
                self.places.append((common, layout.offset_bytes, item))
                return "array"
            case Operation(operator, operands, kind):
                parts = tuple(map(self.rest, operands))
                return None if None in parts else (operator, parts, kind)
        return None

    def _rest_of_field(self, item: FieldRef) -> object:
        if item.is_validity:
            return item
        block = self._blocks[item.header]
        slot = block.fields[item.field]
        if slot.variable:
            return None
        if not block.wire or slot.bit_offset % 8 or slot.width_bits not in _WHOLE_BITS:
            return item
        common = item.header, slot.width_bits, slot.signed
        self.places.append((common, slot.bit_offset // 8, item))
        return "field"
