"""Header stacks and stacks of header unions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.bmv2json import Expression, StackRef, UnionStackRef
from weft.switch.lowering.emitter import I32, I64, Emitter, Value, constant
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.fields import HeaderPlace, copy_block, set_invalid
from weft.switch.lowering.layout import StackLayout, UnionStackLayout

AnyStack = StackLayout | UnionStackLayout


def of_expression(emit: Emitter, expression: Expression) -> AnyStack:
    """Return the layout of a stack given by name; computed stacks are unsupported."""
    match expression:
        case StackRef(name):
            return emit.layout.stacks[name]
        case UnionStackRef(name):
            return emit.layout.union_stacks[name]
    raise UnsupportedError("a header stack that is chosen at run time")


def next_index(emit: Emitter, stack: AnyStack) -> Value:
    """How many headers have been extracted to the stack (i32)."""
    return emit.load(emit.address(emit.state, stack.next_index_offset_bytes), I32, 4)


def set_next_index(emit: Emitter, stack: AnyStack, index: Value) -> None:
    """Set the number of headers extracted."""
    emit.store(index, emit.address(emit.state, stack.next_index_offset_bytes), 4)


def _element_address(emit: Emitter, stack: AnyStack, index: Value) -> Value:
    """Return the element's address; an index out of range gives the spare element after the last."""
    base = emit.address(emit.state, stack.offset_bytes)
    wide = emit.resize(index, max(index.type.width, 32))
    limit = constant(wide.type.width, stack.size)
    bounded = emit.builder.select(emit.builder.icmp_unsigned("<", wide, limit), wide, limit)
    offset = emit.builder.mul(emit.resize(bounded, 64), I64(stack.stride_bytes))
    return emit.part(emit.address(base, offset), stack.stride_bytes, "an element of a header stack")


def element(emit: Emitter, stack: StackLayout, index: Value) -> HeaderPlace:
    """The header at `index`, an unsigned integer of any width."""
    return HeaderPlace(stack.block, _element_address(emit, stack, index))


def union_element(emit: Emitter, stack: UnionStackLayout, index: Value) -> tuple[HeaderPlace, ...]:
    """The members of the union at `index`."""
    base = _element_address(emit, stack, index)
    plain = [
        HeaderPlace(block, emit.part(emit.address(base, offset), block.size_bytes, "a member of a union"))
        for block, offset in zip(stack.member_blocks, stack.member_offsets, strict=True)
    ]
    return tuple(
        HeaderPlace(place.block, place.address, tuple(other for other in plain if other is not place))
        for place in plain
    )


def last_header(emit: Emitter, stack: StackLayout) -> HeaderPlace:
    """The header extracted last; the spare element if there is none."""
    return element(emit, stack, emit.builder.sub(next_index(emit, stack), I32(1)))


def last_union(emit: Emitter, stack: UnionStackLayout) -> tuple[HeaderPlace, ...]:
    """The union extracted last; the spare element if there is none."""
    return union_element(emit, stack, emit.builder.sub(next_index(emit, stack), I32(1)))


def elements(emit: Emitter, stack: AnyStack) -> list[tuple[HeaderPlace, ...]]:
    """All elements in order, each as its headers (one, or the members of a union)."""
    if isinstance(stack, StackLayout):
        return [(element(emit, stack, I32(index)),) for index in range(stack.size)]
    return [union_element(emit, stack, I32(index)) for index in range(stack.size)]


def push(emit: Emitter, stack: AnyStack, count: int) -> None:
    """Move elements `count` places up (P4_16 spec, 8.18 push_front); the first ones become invalid."""
    places = elements(emit, stack)
    count = min(count, stack.size)
    _swap(emit, places, [(index, index - count) for index in range(stack.size - 1, count - 1, -1)])
    _invalidate(emit, places[:count])
    grown = emit.builder.add(next_index(emit, stack), I32(count))
    full = emit.builder.icmp_unsigned(">", grown, I32(stack.size))
    set_next_index(emit, stack, emit.builder.select(full, I32(stack.size), grown))


def pop(emit: Emitter, stack: AnyStack, count: int) -> None:
    """Move elements `count` places down (pop_front); the last ones become invalid."""
    places = elements(emit, stack)
    count = min(count, stack.size)
    _swap(emit, places, [(index, index + count) for index in range(stack.size - count)])
    _invalidate(emit, places[stack.size - count :])
    have = next_index(emit, stack)
    enough = emit.builder.icmp_unsigned(">=", have, I32(count))
    set_next_index(emit, stack, emit.builder.select(enough, emit.builder.sub(have, I32(count)), I32(0)))


def _swap(emit: Emitter, elements: Sequence[tuple[HeaderPlace, ...]], pairs: Sequence[tuple[int, int]]) -> None:
    """Swap elements pair by pair.

    BMv2 moves them this way: elements that leave the stack at one end can be read, though invalid, at the other. Only
    the result is copied: each element once, with one element of every cycle set aside first.
    """
    sources = list(range(len(elements)))
    for one, other in pairs:
        sources[one], sources[other] = sources[other], sources[one]
    moved = {index for index, source in enumerate(sources) if index == source}
    for first in range(len(elements)):
        if first in moved:
            continue
        aside = [HeaderPlace(place.block, emit.local(place.block.size_bytes)) for place in elements[first]]
        _copy_element(emit, aside, elements[first])
        index = first
        while index not in moved:
            moved.add(index)
            source = sources[index]
            _copy_element(emit, elements[index], aside if source == first else elements[source])
            index = source


def _copy_element(emit: Emitter, target: Sequence[HeaderPlace], source: Sequence[HeaderPlace]) -> None:
    for one, other in zip(target, source, strict=True):
        copy_block(emit, one, other)


def _invalidate(emit: Emitter, elements: Sequence[tuple[HeaderPlace, ...]]) -> None:
    for places in elements:
        for place in places:
            set_invalid(emit, place)
