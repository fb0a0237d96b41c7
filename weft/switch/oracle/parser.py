"""Runs parsers and deparsers."""

from __future__ import annotations

from weft.switch import bmv2json
from weft.switch.oracle.expressions import Environment, boolean, evaluate, integer
from weft.switch.oracle.primitives import Machine, run_primitive
from weft.switch.oracle.state import HeaderState, PacketState
from weft.switch.oracle.tracing import report
from weft.switch.trace import places

UNKNOWN_ERROR = 2**31 - 1
"""The code of an error that the program does not declare."""


class ParserError(Exception):
    """Parsing ends with this error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ParserRun:
    """The run of one packet through a parser."""

    def __init__(self, parser: bmv2json.Parser, packet: PacketState, data: bytes, machine: Machine) -> None:
        self._parser = parser
        self._packet = packet
        self._data = data
        self._machine = machine
        self._position_bits = 0
        self._env = Environment(packet, machine, lookahead=self._look_ahead)

    def run(self) -> int:
        """Parse; the unparsed rest becomes the packet's payload.

        Returns the error code, NoError's on success.
        """
        code = self._packet.program.errors.get("NoError", 0)
        try:
            self._run_states()
        except ParserError as error:
            code = error.code
        report(self._packet, places.ParserEnded(), (self._position_bits // 8, code))
        self._packet.payload = self._data[(self._position_bits + 7) // 8 :]
        return code

    def _run_states(self) -> None:
        name = self._parser.initial_state
        steps = 0
        while name is not None:
            steps += 1
            if steps > bmv2json.PARSER_STEP_LIMIT:
                self._fail("ParserTimeout")
            state = self._parser.states[name]
            report(self._packet, places.StateEntered(name))
            for operation in state.operations:
                self._run_operation(operation)
            name = self._next(state)

    def _fail(self, error: str) -> None:
        raise ParserError(self._packet.program.errors.get(error, UNKNOWN_ERROR))

    def _peek(self, position_bits: int, width_bits: int) -> int:
        if position_bits + width_bits > 8 * len(self._data):
            self._fail("PacketTooShort")
        first, last = position_bits // 8, (position_bits + width_bits + 7) // 8
        chunk = int.from_bytes(self._data[first:last], "big")
        return chunk >> (8 * last - position_bits - width_bits) & ((1 << width_bits) - 1)

    def _look_ahead(self, offset_bits: int, width_bits: int) -> int:
        return self._peek(self._position_bits + offset_bits, width_bits)

    def _run_operation(self, operation: bmv2json.ParserOperation) -> None:
        match operation:
            case bmv2json.Extract():
                self._extract(operation)
            case bmv2json.SetField(target, source):
                self._packet.set(target, integer(source, self._env))
                report(self._packet, places.FieldSet(operation), (self._packet.get(target),))
            case bmv2json.Verify(condition, error):
                if not boolean(condition, self._env):
                    raise ParserError(integer(error, self._env))
            case bmv2json.Advance(bits):
                self._advance(integer(bits, self._env))
            case bmv2json.ParserPrimitive(call):
                run_primitive(call, self._env, self._machine)

    def _advance(self, bits: int) -> None:
        if bits < 0 or bits % 8:
            self._fail("ParserInvalidArgument")
        if self._position_bits + bits > 8 * len(self._data):
            self._fail("PacketTooShort")
        self._position_bits += bits

    def _extract(self, operation: bmv2json.Extract) -> None:
        before = self._position_bits // 8
        index = self._extract_target(operation)
        extracted = self._data[before : self._position_bits // 8]
        report(self._packet, places.Extracted(operation), (index,), extracted)

    def _extract_target(self, operation: bmv2json.Extract) -> int:
        """Extract to the target; return the index in a stack, else 0."""
        match operation.target:
            case bmv2json.HeaderRef(name):
                self._extract_header(self._packet.headers[name], operation)
                return 0
            case bmv2json.StackRef(name):
                stack = self._packet.stacks[name]
                if stack.next >= len(stack.elements):
                    self._fail("StackOutOfBounds")
                self._extract_header(stack.elements[stack.next], operation)
                stack.next += 1
                return stack.next - 1
            case bmv2json.UnionStackMember(name, member):
                unions = self._packet.union_stacks[name]
                if unions.next >= len(unions.elements):
                    self._fail("StackOutOfBounds")
                index = self._packet.program.header_union_stacks[name].type.member_index(member)
                self._extract_header(unions.elements[unions.next].members[index], operation)
                unions.next += 1
                return unions.next - 1

    def _extract_header(self, header: HeaderState, operation: bmv2json.Extract) -> None:
        variable_bits = 0
        if operation.length_bits is not None:
            variable_bits = integer(operation.length_bits, self._env)
            field = header.type.variable_field
            assert field is not None
            if variable_bits < 0 or variable_bits % 8:
                self._fail("ParserInvalidArgument")
            fixed_bits = header.type.width_bits - field.width_bits
            if self._position_bits + fixed_bits + variable_bits > 8 * len(self._data):
                self._fail("PacketTooShort")
            if variable_bits > field.width_bits:
                self._fail("HeaderTooShort")
        width_bits = variable_bits + sum(field.width_bits for field in header.type.fields if not field.variable)
        bits = self._peek(self._position_bits, width_bits)
        self._position_bits += width_bits
        header.variable_bits = variable_bits
        header.make_valid()
        remaining_bits = width_bits
        for field in header.type.fields:
            remaining_bits -= header.field_width_bits(field)
            header.set(field, bits >> remaining_bits)

    def _next(self, state: bmv2json.ParseState) -> str | None:
        if all(transition.kind is bmv2json.TransitionKind.DEFAULT for transition in state.transitions):
            return state.transitions[0].next_state if state.transitions else None
        key = 0
        for field in state.transition_key:
            width_bits = field.width_bits
            value = self._key_field(field) & ((1 << width_bits) - 1)
            key = key << (width_bits + 7) // 8 * 8 | value
        report(self._packet, places.select_place(state), (key,))
        for transition in state.transitions:
            if self._fits(transition, key):
                return transition.next_state
        return None

    def _key_field(
        self, field: bmv2json.FieldRef | bmv2json.StackField | bmv2json.UnionStackField | bmv2json.Lookahead
    ) -> int:
        value = evaluate(field, self._env)
        assert isinstance(value, int)
        return value

    def _fits(self, transition: bmv2json.Transition, key: int) -> bool:
        mask = -1 if transition.mask is None else transition.mask
        match transition.kind:
            case bmv2json.TransitionKind.DEFAULT:
                return True
            case bmv2json.TransitionKind.VALUE:
                return key & mask == transition.value & mask
        assert transition.value_set is not None
        members = self._machine.value_set_members(transition.value_set)
        return any(key & mask & own == value & mask & own for value, own in members)


def deparse(deparser: bmv2json.Deparser, packet: PacketState) -> bytes:
    """The packet's bytes: its valid headers in order, then the payload."""
    data = b""
    for name in deparser.order:
        header = packet.headers[name]
        if header.valid:
            report(packet, places.HeaderEmitted(name))
            bits, width_bits = header.to_bits()
            data += bits.to_bytes(width_bits // 8, "big")
    return data + packet.payload
