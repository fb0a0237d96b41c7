"""Reconstructs a packet's headers and metadata after each event of its trace.

Values come from the switch's reports. Operations on whole headers (assignments of headers, stacks, validity) report no
values and are repeated here with the interpreter's functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.switch.bmv2json import FieldRef, HeaderRef, HeaderType, Program, StackRef
from weft.switch.oracle.expressions import Environment
from weft.switch.oracle.primitives import assign, run_primitive
from weft.switch.oracle.state import HeaderState, PacketState
from weft.switch.trace import places
from weft.switch.trace.events import Copied, CopyTrace, EgressStarted, Enqueued, Event, Received, Step, Trimmed

DROP_PORT = 511
_RESUBMITTED, _RECIRCULATED, _INGRESS_CLONE = 6, 4, 1
MOVES_HEADERS = frozenset(
    {
        "assign_VL",
        "assign_header",
        "assign_union",
        "assign_header_stack",
        "assign_union_stack",
        "copy_header",
        "push",
        "pop",
        "add_header",
        "remove_header",
        "drop",
        "mark_to_drop",
    }
)
"""Primitives that change headers or metadata without reporting a value."""


@dataclass(slots=True)
class Moment:
    """An event, and the packet after it.

    `assigned` are the fields that the event assigned, by instance and name.
    `packet` is changed by the next event; `copy` is "1" for the packet itself, "1.2" for its second copy.
    """

    event: Event
    time_ps: int
    copy: str
    packet: PacketState
    assigned: frozenset[tuple[str, str]]


class Replay:
    """Follows packets of one program."""

    def __init__(self, program: Program, drop_port: int = DROP_PORT) -> None:
        self._program = program
        self._machine = _Machine(drop_port)

    def moments(self, trace: CopyTrace) -> Iterator[Moment]:
        """Yield every event of a packet and its copies; a copy's events follow its creation."""
        yield from self._copy(trace, "1", PacketState(self._program, 0))

    def _copy(self, trace: CopyTrace, name: str, packet: PacketState) -> Iterator[Moment]:
        follower = _Follower(self._program, self._machine, packet)
        copies = 0
        for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
            assigned = follower.follow(event)
            yield Moment(event, time_ps, name, follower.packet, frozenset(assigned))
            if isinstance(event, Copied):
                copies += 1
                copy = _copy_of(follower.packet, event.instance_type)
                yield from self._copy(event.copy, f"{name}.{copies}", copy)


def _copy_of(packet: PacketState, instance_type: int) -> PacketState:
    """Return the initial state of a copy; a packet that is parsed again starts with metadata only.

    The trace does not record which metadata a field list preserves, so all keep the original's values.
    """
    copy = packet.copy(with_metadata=True)
    if instance_type in (_RESUBMITTED, _RECIRCULATED, _INGRESS_CLONE):
        for header in copy.headers.values():
            if not header.metadata:
                header.make_invalid()
        for stack in copy.stacks.values():
            stack.next = 0
        for union_stack in copy.union_stacks.values():
            union_stack.next = 0
    copy.set_intrinsic("standard_metadata.instance_type", instance_type)
    return copy


class _Machine:
    """The switch's effects on headers, without other state."""

    def __init__(self, drop_port: int) -> None:
        self.drop_port = drop_port

    def register_cell(self, _array: str, _index: int) -> int:
        return 0

    def set_register_cell(self, array: str, index: int, value: int) -> None:
        pass

    def count(self, array: str, index: int, packet: PacketState) -> None:
        pass

    def run_meter(self, _array: str, _index: int, _packet: PacketState) -> int | None:
        return None

    def random_between(self, low: int, _high: int) -> int:
        return low

    def value_set_members(self, _name: str) -> Sequence[tuple[int, int]]:
        return ()

    def log(self, message: str) -> None:
        pass


class _Follower:
    def __init__(self, program: Program, machine: _Machine, packet: PacketState) -> None:
        self._program = program
        self._machine = machine
        self._arguments: Sequence[int] = ()
        self._assigned: set[tuple[str, str]] = set()
        self.packet = packet

    def follow(self, event: Event) -> set[tuple[str, str]]:
        """Apply an event; return the fields that it assigned."""
        self._assigned = set()
        match event:
            case Received():
                self._received(event)
            case Enqueued(_, queue_class):
                self._intrinsic("queueing_metadata.qid", queue_class)
            case Trimmed(_, queue_class):
                self._intrinsic("queueing_metadata.qid", queue_class)
                self._intrinsic("queueing_metadata.trimmed", 1)
            case EgressStarted():
                self._egress(event)
            case Step():
                self._step(event)
        return self._assigned

    def _intrinsic(self, name: str, value: int) -> None:
        ref = self._program.intrinsic(name)
        if ref is not None:
            self._set(ref, value)

    def _set(self, ref: FieldRef, value: int) -> None:
        self.packet.set(ref, value)
        self._assigned.add((ref.header, ref.field))

    def _received(self, event: Received) -> None:
        self.packet.length_bytes = len(event.data)
        if event.instance_type == 0:
            self._intrinsic("standard_metadata.ingress_port", event.port)
            self._intrinsic("intrinsic_metadata.ingress_global_timestamp", event.timestamp)
        self._intrinsic("standard_metadata.packet_length", len(event.data))
        self._intrinsic("standard_metadata.instance_type", event.instance_type)

    def _egress(self, event: EgressStarted) -> None:
        self._intrinsic("standard_metadata.egress_port", event.port)
        self._intrinsic("standard_metadata.egress_spec", self._machine.drop_port + 1)
        self._intrinsic("standard_metadata.packet_length", self.packet.length_bytes)
        self._intrinsic("standard_metadata.instance_type", event.instance_type)
        self._intrinsic("intrinsic_metadata.egress_rid", event.replication_id)
        self._intrinsic("queueing_metadata.enq_qdepth", event.enqueue_depth)
        self._intrinsic("queueing_metadata.deq_qdepth", event.dequeue_depth)
        self._intrinsic("queueing_metadata.deq_timedelta", event.waited)
        self._intrinsic("queueing_metadata.enq_timestamp", event.enqueue_timestamp)
        self._intrinsic("intrinsic_metadata.egress_global_timestamp", event.timestamp)

    def _step(self, step: Step) -> None:
        match step.place:
            case places.Extracted():
                self._extract(step)
            case places.FieldSet(operation):
                self._set(operation.target, step.values[0])
            case places.ParserEnded():
                self._intrinsic("standard_metadata.parser_error", step.values[1])
            case places.ChecksumVerified():
                if not step.values[0]:
                    self._intrinsic("standard_metadata.checksum_error", 1)
            case places.ChecksumUpdated(_, target):
                self._set(target, step.values[0])
            case places.ActionRun():
                self._arguments = step.values
            case places.PrimitiveRun():
                self._primitive(step.place, step.values)

    def _primitive(self, place: places.PrimitiveRun, values: tuple[int, ...]) -> None:
        env = Environment(self.packet, self._machine, self._arguments)
        if place.result is not None:
            assign(place.result, values[-1], env, self._machine)
            if isinstance(place.result, FieldRef):
                self._assigned.add((place.result.header, place.result.field))
        elif place.call.name in MOVES_HEADERS:
            run_primitive(place.call, env, self._machine)
            if place.call.name in ("drop", "mark_to_drop"):
                ref = self._program.intrinsic("standard_metadata.egress_spec")
                if ref is not None:
                    self._assigned.add((ref.header, ref.field))

    def _extract(self, step: Step) -> None:
        assert isinstance(step.place, places.Extracted)
        target, index = step.place.operation.target, step.values[0]
        if isinstance(target, HeaderRef):
            header = self.packet.headers[target.name]
        elif isinstance(target, StackRef):
            stack = self.packet.stacks[target.name]
            header, stack.next = stack.at(index), index + 1
        else:
            unions = self.packet.union_stacks[target.stack]
            member = self._program.header_union_stacks[target.stack].type.member_index(target.member)
            header, unions.next = unions.at(index).members[member], index + 1
        fill_header(header, step.data)


def fill_header(header: HeaderState, data: bytes) -> None:
    """Make a header valid with the bytes extracted."""
    header.variable_bits = variable_bits(header.type, data)
    header.make_valid()
    left, bits = len(data) * 8, int.from_bytes(data, "big")
    for each in header.type.fields:
        left -= header.field_width_bits(each)
        header.set(each, bits >> left)


def variable_bits(header_type: HeaderType, data: bytes) -> int:
    """Return the width of a header's variable-length field on the wire; 0 without one."""
    fixed_bits = sum(each.width_bits for each in header_type.fields if not each.variable)
    return len(data) * 8 - fixed_bits if header_type.variable_field is not None else 0
