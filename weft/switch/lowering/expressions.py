"""Lowers expressions to IR.

`lower(expression, width)` yields the exact value modulo 2**width. An operator is computed at that width if its
low result bits depend only on low operand bits, otherwise at the width that its operands' ranges need
(`ranges`).
"""

from __future__ import annotations

from weft.switch.bmv2json import (
    BoolConstant,
    Constant,
    Expression,
    FieldAccess,
    FieldRef,
    HeaderRef,
    Kind,
    Lookahead,
    Operation,
    RegisterRef,
    RuntimeData,
    StackField,
    StackRef,
    UnionMemberAccess,
    UnionRef,
    UnionStackField,
    UnionStackRef,
)
from weft.switch.lowering import registers, stacks
from weft.switch.lowering.emitter import I32, I64, Emitter, Value, constant, integer
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.fields import (
    FieldPlace,
    HeaderPlace,
    field_place,
    header_place,
    is_valid,
    load_bits,
    load_field,
    variable_bytes,
)
from weft.switch.lowering.layout import bytes_for, native_bytes
from weft.switch.lowering.ranges import Range, constant_width

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def lower(emit: Emitter, expression: Expression, width_bits: int) -> Value:
    """The value of an expression of kind DATA modulo 2**width_bits."""
    match expression:
        case Constant(value):
            return constant(width_bits, value)
        case FieldRef(signed=is_signed):
            return emit.resize(load_field(emit, field_place(emit, expression)), width_bits, is_signed)
        case RuntimeData(index):
            return emit.resize(_runtime_data(emit, index), width_bits)
        case StackField() | UnionStackField() | FieldAccess():
            place = lvalue(emit, expression)
            return emit.resize(load_field(emit, place), width_bits, place.slot is not None and place.slot.signed)
        case Lookahead(offset, width):
            return emit.resize(_lookahead(emit, offset, width), width_bits)
        case RegisterRef(array, index):
            return emit.resize(_register_cell(emit, array, lower_index(emit, index)), width_bits)
        case Operation(operator, operands):
            return _operation(emit, operator, operands, width_bits)
    raise UnsupportedError(f"an expression of the form {type(expression).__name__}")


def lower_exact(emit: Emitter, expression: Expression) -> Value:
    """The exact value, as wide as its range needs; negative values are clamped to 0 (amounts)."""
    value_range = emit.shared.ranges.of(expression)
    value = lower(emit, expression, value_range.bits)
    if not value_range.signed:
        return value
    zero = constant(value_range.bits, 0)
    return emit.builder.select(emit.builder.icmp_signed("<", value, zero), zero, value)


def lower_index(emit: Emitter, expression: Expression) -> Value:
    """An index: unsigned, and far out of range if it is negative."""
    value_range = emit.shared.ranges.of(expression)
    return lower(emit, expression, max(value_range.bits, 64) if value_range.signed else value_range.bits)


def lower_bool(emit: Emitter, expression: Expression) -> Value:
    """An expression of kind BOOL as i1."""
    match expression:
        case BoolConstant(value):
            return constant(1, int(value))
        case Operation(("==" | "!=" | "<" | "<=" | ">" | ">=") as operator, (left, right)):
            return _comparison(emit, operator, left, right)
        case Operation("and", (left, right)):
            return emit.builder.and_(lower_bool(emit, left), lower_bool(emit, right))
        case Operation("or", (left, right)):
            return emit.builder.or_(lower_bool(emit, left), lower_bool(emit, right))
        case Operation("not", (operand,)):
            return emit.builder.not_(lower_bool(emit, operand))
        case Operation("valid", (header,)):
            return is_valid(emit, lower_header(emit, header))
        case Operation("valid_union", (union,)):
            flags = [is_valid(emit, member) for member in lower_union(emit, union)]
            result = constant(1, 0)
            for flag in flags:
                result = emit.builder.or_(result, flag)
            return result
        case Operation("d2b", (operand,)):
            bits = emit.shared.ranges.of(operand).bits
            return emit.builder.icmp_unsigned("!=", lower(emit, operand, bits), constant(bits, 0))
        case Operation("?", (condition, then, otherwise)):
            chosen = lower_bool(emit, condition)
            return emit.builder.select(chosen, lower_bool(emit, then), lower_bool(emit, otherwise))
    raise UnsupportedError(f"a boolean expression of the form {expression}")


def lower_condition(emit: Emitter, expression: Expression) -> Value:
    """A condition given as a boolean or as an integer (true if not 0)."""
    if expression.kind is Kind.BOOL:
        return lower_bool(emit, expression)
    return lower_bool(emit, Operation("d2b", (expression,), Kind.BOOL))


# ---- places


def lvalue(emit: Emitter, expression: Expression) -> FieldPlace:
    """The place that an assignable expression denotes."""
    match expression:
        case FieldRef():
            return field_place(emit, expression)
        case FieldAccess(header, index):
            place = lower_header(emit, header)
            return FieldPlace(place, place.block.fields[place.block.field_order[index]])
        case StackField(stack, field):
            place = stacks.last_header(emit, emit.layout.stacks[stack])
            return FieldPlace(place, place.block.fields[field])
        case UnionStackField(stack, member, field):
            index = emit.program.header_union_stacks[stack].type.member_index(member)
            place = stacks.last_union(emit, emit.layout.union_stacks[stack])[index]
            return FieldPlace(place, place.block.fields[field])
    raise UnsupportedError(f"an assignment to an expression of the form {type(expression).__name__}")


def lower_header(emit: Emitter, expression: Expression) -> HeaderPlace:
    """The place of an expression of kind HEADER."""
    match expression:
        case HeaderRef(name):
            return header_place(emit, name)
        case UnionMemberAccess(union, index):
            return lower_union(emit, union)[index]
        case Operation("dereference_header_stack", (StackRef(name), index)):
            return stacks.element(emit, emit.layout.stacks[name], lower_index(emit, index))
    raise UnsupportedError(f"a header expression of the form {expression}")


def lower_union(emit: Emitter, expression: Expression) -> tuple[HeaderPlace, ...]:
    """The places of the members of an expression of kind UNION."""
    match expression:
        case UnionRef(name):
            return tuple(header_place(emit, member) for member in emit.program.header_unions[name].headers)
        case Operation("dereference_union_stack", (UnionStackRef(name), index)):
            return stacks.union_element(emit, emit.layout.union_stacks[name], lower_index(emit, index))
    raise UnsupportedError(f"a header union expression of the form {expression}")


# ---- operators


def _operation(emit: Emitter, operator: str, operands: tuple[Expression, ...], width: int) -> Value:
    builder = emit.builder
    match operator:
        case "+" | "-" | "*" | "&" | "|" | "^" if len(operands) == 2:
            left, right = lower(emit, operands[0], width), lower(emit, operands[1], width)
            emitters = {
                "+": builder.add,
                "-": builder.sub,
                "*": builder.mul,
                "&": builder.and_,
                "|": builder.or_,
                "^": builder.xor,
            }
            return emitters[operator](left, right)
        case "+":
            return lower(emit, operands[0], width)
        case "-":
            return builder.neg(lower(emit, operands[0], width))
        case "~":
            return builder.not_(lower(emit, operands[0], width))
        case "<<":
            return _shift_left(emit, operands[0], operands[1], width)
        case ">>":
            return _shift_right(emit, operands[0], operands[1], width)
        case "/" | "%":
            return _divide(emit, operator, operands[0], operands[1], width)
        case "?":
            chosen = lower_bool(emit, operands[0])
            return builder.select(chosen, lower(emit, operands[1], width), lower(emit, operands[2], width))
        case "b2d":
            return emit.resize(lower_bool(emit, operands[0]), width)
        case "two_comp_mod":
            modulus_bits = constant_width(operator, operands[1])
            return emit.resize(lower(emit, operands[0], modulus_bits), width, signed=True)
        case "sat_cast" | "usat_cast":
            return _saturate(emit, operator, operands[0], constant_width(operator, operands[1]), width)
        case "last_stack_index":
            next_index = stacks.next_index(emit, stacks.of_expression(emit, operands[0]))
            return emit.resize(builder.sub(next_index, I32(1)), width, signed=True)
        case "size_stack":
            return emit.resize(stacks.next_index(emit, stacks.of_expression(emit, operands[0])), width)
    raise UnsupportedError(f"operator '{operator}'")


def _shift_left(emit: Emitter, operand: Expression, amount: Expression, width: int) -> Value:
    value = lower(emit, operand, width)
    if isinstance(amount, Constant):
        if amount.value >= width:
            return constant(width, 0)
        return emit.builder.shl(value, constant(width, max(amount.value, 0)))
    by, too_far = _shift_amount(emit, amount, width)
    return emit.builder.select(too_far, constant(width, 0), emit.builder.shl(value, by))


def _shift_right(emit: Emitter, operand: Expression, amount: Expression, width: int) -> Value:
    value_range = emit.shared.ranges.of(operand)
    bits = value_range.bits
    shift = emit.builder.ashr if value_range.signed else emit.builder.lshr
    if isinstance(amount, Constant):
        by = max(amount.value, 0)
        if by >= bits:
            if not value_range.signed:
                return constant(width, 0)
            by = bits - 1
        # Only the bits of the result are needed.
        needed = bits if value_range.signed else min(bits, width + by)
        value = lower(emit, operand, needed)
        return emit.resize(shift(value, constant(needed, by)), width, value_range.signed)
    value = lower(emit, operand, bits)
    by, too_far = _shift_amount(emit, amount, bits)
    farthest = shift(value, constant(bits, bits - 1)) if value_range.signed else constant(bits, 0)
    return emit.resize(emit.builder.select(too_far, farthest, shift(value, by)), width, value_range.signed)


def _shift_amount(emit: Emitter, amount: Expression, bits: int) -> tuple[Value, Value]:
    """The amount as an integer of `bits`, at most bits - 1, and whether it is larger than that."""
    exact = lower_exact(emit, amount)
    wide = emit.resize(exact, max(exact.type.width, bits.bit_length()))
    too_far = emit.builder.icmp_unsigned(">=", wide, constant(wide.type.width, bits))
    safe = emit.builder.select(too_far, constant(wide.type.width, 0), wide)
    return emit.resize(safe, bits), too_far


def _divide(emit: Emitter, operator: str, left: Expression, right: Expression, width: int) -> Value:
    """Quotient or remainder, truncated towards zero; 0 for a divisor of 0."""
    both = emit.shared.ranges.of(left).union(emit.shared.ranges.of(right))
    bits = both.bits + 1  # the most negative value divided by -1
    dividend, divisor = lower(emit, left, bits), lower(emit, right, bits)
    by_zero = emit.builder.icmp_unsigned("==", divisor, constant(bits, 0))
    safe = emit.builder.select(by_zero, constant(bits, 1), divisor)
    builder = emit.builder
    if both.signed:
        result = (builder.sdiv if operator == "/" else builder.srem)(dividend, safe)
    else:
        result = (builder.udiv if operator == "/" else builder.urem)(dividend, safe)
    return emit.resize(builder.select(by_zero, constant(bits, 0), result), width, both.signed)


def _saturate(emit: Emitter, operator: str, operand: Expression, to_bits: int, width: int) -> Value:
    value_range = emit.shared.ranges.of(operand)
    low, high = (0, (1 << to_bits) - 1) if operator == "usat_cast" else (-(1 << to_bits - 1), (1 << to_bits - 1) - 1)
    bits = value_range.union(Range(low, high)).bits
    compare = emit.builder.icmp_signed if value_range.signed or low < 0 else emit.builder.icmp_unsigned
    value = lower(emit, operand, bits)
    for bound, operation in ((low, "<"), (high, ">")):
        limit = constant(bits, bound)
        value = emit.builder.select(compare(operation, value, limit), limit, value)
    return emit.resize(value, width, signed=low < 0)


def _comparison(emit: Emitter, operator: str, left: Expression, right: Expression) -> Value:
    if left.kind is Kind.DATA:
        both = emit.shared.ranges.of(left).union(emit.shared.ranges.of(right))
        compare = emit.builder.icmp_signed if both.signed else emit.builder.icmp_unsigned
        return compare(operator, lower(emit, left, both.bits), lower(emit, right, both.bits))
    if left.kind is Kind.BOOL:
        equal = emit.builder.icmp_unsigned("==", lower_bool(emit, left), lower_bool(emit, right))
    elif left.kind is Kind.HEADER:
        equal = _equal_headers(emit, lower_header(emit, left), lower_header(emit, right))
    elif left.kind is Kind.UNION:
        equal = constant(1, 1)
        for one, other in zip(lower_union(emit, left), lower_union(emit, right), strict=True):
            equal = emit.builder.and_(equal, _equal_headers(emit, one, other))
    elif left.kind in (Kind.STACK, Kind.UNION_STACK):
        equal = _equal_stacks(emit, left, right)
    else:
        raise UnsupportedError(f"a comparison of {left.kind.value}s")
    return equal if operator == "==" else emit.builder.not_(equal)


def _equal_headers(emit: Emitter, left: HeaderPlace, right: HeaderPlace) -> Value:
    """Both invalid, or both valid with equal fields."""
    if left.block != right.block or not left.block.wire:
        raise UnsupportedError("a comparison of metadata")
    difference = I64(0)
    size = left.block.fixed_bytes
    for offset in range(0, size, 8):
        part = integer(min(8, size - offset) * 8)
        words = [emit.load(emit.address(place.address, offset), part) for place in (left, right)]
        difference = emit.builder.or_(difference, emit.resize(emit.builder.xor(*words), 64))
    same_fields = emit.builder.icmp_unsigned("==", difference, I64(0))
    if left.block.variable_bytes:
        same_fields = emit.builder.and_(same_fields, _equal_variable(emit, left, right))
    left_valid, right_valid = is_valid(emit, left), is_valid(emit, right)
    neither = emit.builder.not_(emit.builder.or_(left_valid, right_valid))
    both = emit.builder.and_(left_valid, right_valid)
    return emit.builder.or_(neither, emit.builder.and_(both, same_fields))


def _equal_variable(emit: Emitter, left: HeaderPlace, right: HeaderPlace) -> Value:
    """Variable-length fields of the same length and content."""
    slot = next(slot for slot in left.block.fields.values() if slot.variable)
    values = [load_field(emit, FieldPlace(header, slot)) for header in (left, right)]
    lengths = [variable_bytes(emit, header) for header in (left, right)]
    return emit.builder.and_(emit.builder.icmp_unsigned("==", *values), emit.builder.icmp_unsigned("==", *lengths))


def _equal_stacks(emit: Emitter, left: Expression, right: Expression) -> Value:
    """Element by element."""
    stacks_elements = [stacks.elements(emit, stacks.of_expression(emit, each)) for each in (left, right)]
    equal = constant(1, 1)
    for ones, others in zip(*stacks_elements, strict=True):
        for one, other in zip(ones, others, strict=True):
            equal = emit.builder.and_(equal, _equal_headers(emit, one, other))
    return equal


# ---- leaves


def _runtime_data(emit: Emitter, index: int) -> Value:
    if emit.action_layout is None:
        raise UnsupportedError("an action parameter outside an action")
    width = emit.action_layout.widths_bits[index]
    assumed = emit.shared.assumed
    if assumed is not None and emit.action is not None:
        known = assumed.argument(emit.action, index)
        if known is not None:
            return constant(width, known)
    size = native_bytes(width)
    address = emit.address(emit.action_data, emit.action_layout.offsets[index])
    return emit.resize(emit.load(address, integer(size * 8), min(size, 8)), width)


def _register_cell(emit: Emitter, array: str, index: Value) -> Value:
    """The cell; 0 for an index out of range."""
    value = registers.read(emit, array, index)
    inside = registers.in_range(emit, emit.program.register_arrays[array].size, index)
    return emit.builder.select(inside, value, constant(value.type.width, 0))


def _lookahead(emit: Emitter, offset_bits: int, width_bits: int) -> Value:
    """The parser has checked that the packet is long enough (see lookahead_bytes)."""
    if emit.lookahead_base is None:
        raise UnsupportedError("a lookahead outside a parser")
    return load_bits(emit, emit.lookahead_base[0], offset_bits, width_bits)


def lookahead_bytes(expression: Expression) -> int:
    """Return how many bytes after the parser's position `expression` reads."""
    match expression:
        case Lookahead(offset, width):
            return bytes_for(offset + width)
        case Operation(_, operands):
            return max((lookahead_bytes(operand) for operand in operands), default=0)
        case FieldAccess(header):
            return lookahead_bytes(header)
        case RegisterRef(_, index):
            return lookahead_bytes(index)
    return 0
