"""State of a packet in the switch: headers, stacks, unions, metadata and primitives' requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from weft.switch.bmv2json import Field, FieldRef, HeaderType, Program
from weft.switch.trace.events import CopyTrace

_Element = TypeVar("_Element")


@dataclass(eq=False, slots=True)
class HeaderState:
    """A header or metadata instance. Values of signed fields are signed.

    As in BMv2, an invalid header's fields keep the values from when it was valid; before that they are 0.
    """

    name: str
    type: HeaderType
    metadata: bool = False
    valid: bool = False
    values: dict[str, int] = field(default_factory=dict)
    variable_bits: int = 0
    siblings: list[HeaderState] = field(default_factory=list)
    """The other members of the same union, which become invalid when this one becomes valid."""

    def get(self, name: str) -> int:
        """The value of a field; 0 before the first assignment."""
        return self.values.get(name, 0)

    def set(self, found: Field, value: int) -> None:
        """Assign, cut to the field's width (two's complement for a signed field)."""
        width_bits = self.variable_bits if found.variable else found.width_bits
        value &= (1 << width_bits) - 1
        if found.signed and width_bits and value >> (width_bits - 1):
            value -= 1 << width_bits
        self.values[found.name] = value

    def make_valid(self) -> None:
        """Become valid; the other members of the union become invalid."""
        self.valid = True
        for sibling in self.siblings:
            sibling.make_invalid()

    def make_invalid(self) -> None:
        """Become invalid; as in BMv2, the fields keep their values."""
        self.valid = False

    def reset(self) -> None:
        """Set all fields to zero."""
        self.values.clear()
        self.variable_bits = 0

    def copy_from(self, other: HeaderState) -> None:
        """Copy validity and fields."""
        if other.valid:
            # copied first: `other` may be a member of the same union, which becomes invalid
            values, variable_bits = dict(other.values), other.variable_bits
            self.make_valid()
            self.values, self.variable_bits = values, variable_bits
        else:
            self.make_invalid()

    def become(self, other: HeaderState) -> None:
        """Copy the whole state, for a copy of a packet."""
        self.valid, self.values, self.variable_bits = other.valid, dict(other.values), other.variable_bits

    def field_width_bits(self, found: Field) -> int:
        """The width on the wire."""
        return self.variable_bits if found.variable else found.width_bits

    def width_bits(self) -> int:
        """The width of the whole header on the wire."""
        return sum(self.field_width_bits(found) for found in self.type.fields)

    def to_bits(self) -> tuple[int, int]:
        """The header on the wire, as an integer and its width in bits."""
        bits = 0
        for found in self.type.fields:
            width_bits = self.field_width_bits(found)
            bits = bits << width_bits | self.get(found.name) & ((1 << width_bits) - 1)
        return bits, self.width_bits()


@dataclass(eq=False, slots=True)
class UnionState:
    """A header union: at most one member is valid."""

    members: list[HeaderState]

    @property
    def valid(self) -> bool:
        """Whether a member is valid."""
        return any(member.valid for member in self.members)


@dataclass(eq=False, slots=True)
class _Stack(Generic[_Element]):
    """A stack; `next` is the index of the next extraction.

    Every index out of range denotes the `spare` element, which is in no packet (P4 leaves such an access undefined;
    the native switch has the same element).
    """

    elements: list[_Element]
    spare: _Element
    next: int = 0

    def at(self, index: int) -> _Element:
        """The element at `index`."""
        return self.elements[index] if 0 <= index < len(self.elements) else self.spare

    def last(self) -> _Element:
        """The element extracted last."""
        return self.at(self.next - 1)


class StackState(_Stack[HeaderState]):
    """A stack of headers."""

    __slots__ = ()


class UnionStackState(_Stack[UnionState]):
    """A stack of unions."""

    __slots__ = ()


@dataclass(slots=True)
class Requests:
    """Requests of primitives to the switch for the packet; 0 is no request."""

    clone_session: int | None = None
    clone_field_list: int = 0
    digest_list: int = 0
    resubmit_list: int = 0
    recirculate_list: int = 0
    exit: bool = False


class PacketState:
    """A packet between parser and deparser. `payload` is the unparsed rest.

    `length_bytes` is BMv2's packet length; `ingress_bytes`, which counters and meters count, is the size as
    received. `pass_budget` and `loop_budget` are the remaining passes through a pipeline and backward jumps.
    """

    def __init__(self, program: Program, length_bytes: int) -> None:
        self.program = program
        self.payload = b""
        self.length_bytes = length_bytes
        self.ingress_bytes = length_bytes
        self.truncated_bytes: int | None = None
        self.received_port = 0
        self.pass_budget = 0
        self.loop_budget = 0
        self.requests = Requests()
        self.trace: CopyTrace | None = None
        self.headers = {
            name: HeaderState(name, header.type, header.metadata, valid=header.metadata)
            for name, header in program.headers.items()
        }
        self.stacks = {
            name: StackState([self.headers[member] for member in stack.headers], HeaderState("", stack.type))
            for name, stack in program.header_stacks.items()
        }
        self.unions = {
            name: UnionState([self.headers[member] for member in union.headers])
            for name, union in program.header_unions.items()
        }
        self.union_stacks = {
            name: UnionStackState(
                [self.unions[member] for member in stack.unions],
                UnionState([HeaderState(member, each) for member, each in stack.type.members]),
            )
            for name, stack in program.header_union_stacks.items()
        }
        for union in (*self.unions.values(), *(stack.spare for stack in self.union_stacks.values())):
            for member in union.members:
                member.siblings = [other for other in union.members if other is not member]

    def get(self, ref: FieldRef) -> int:
        """The value of a field."""
        header = self.headers[ref.header]
        return int(header.valid) if ref.is_validity else header.get(ref.field)

    def key_value(self, ref: FieldRef) -> int:
        """Return the value in a table's key; as in BMv2, fields of an invalid header count as 0, even if assigned."""
        header = self.headers[ref.header]
        return self.get(ref) if header.valid or header.metadata or ref.is_validity else 0

    def set(self, ref: FieldRef, value: int) -> None:
        """Assign to a field."""
        header = self.headers[ref.header]
        header.set(header.type.field(ref.field), value)

    def get_intrinsic(self, name: str) -> int:
        """Return the bits of simple_switch's field `name` as an unsigned number; 0 if the program lacks it."""
        ref = self.program.intrinsic(name)
        return 0 if ref is None else self.get(ref) & ((1 << ref.width_bits) - 1)

    def set_intrinsic(self, name: str, value: int) -> None:
        """Assign to simple_switch's field `name`, if the program has it."""
        ref = self.program.intrinsic(name)
        if ref is not None:
            self.set(ref, value)

    def copy(self, *, with_metadata: bool) -> PacketState:
        """Return a copy with separate headers (and metadata if requested), without requests."""
        other = PacketState(self.program, self.length_bytes)
        other.ingress_bytes = self.ingress_bytes
        other.trace = self.trace
        other.payload = self.payload
        other.received_port = self.received_port
        other.pass_budget = self.pass_budget
        other.loop_budget = self.loop_budget
        for name, header in self.headers.items():
            if with_metadata or not header.metadata:
                other.headers[name].become(header)
        for name, stack in self.stacks.items():
            other.stacks[name].next = stack.next
            other.stacks[name].spare.become(stack.spare)
        for name, union_stack in self.union_stacks.items():
            other.union_stacks[name].next = union_stack.next
            members = zip(other.union_stacks[name].spare.members, union_stack.spare.members, strict=True)
            for target, source in members:
                target.become(source)
        return other

    def clear_metadata(self) -> None:
        """Set all metadata to zero."""
        for header in self.headers.values():
            if header.metadata:
                header.reset()

    def copy_field_list(self, source: PacketState, list_id: int) -> None:
        """Preserve the fields of a field list (0: none)."""
        if list_id:
            for element in self.program.field_lists[list_id].elements:
                if isinstance(element, FieldRef) and not element.is_validity:
                    self.set(element, source.get(element))
