"""Parsers: one basic block or more per state, direct loads from the packet."""

from __future__ import annotations

from weft.switch import bmv2json
from weft.switch.lowering import stacks
from weft.switch.lowering.emitter import I1, I32, I64, POINTER, Emitter, Value, constant
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.expressions import lookahead_bytes, lower, lower_condition
from weft.switch.lowering.fields import HeaderPlace, header_place, note_move, set_valid
from weft.switch.lowering.layout import bytes_for
from weft.switch.lowering.primitives import assign, emit_primitives
from weft.switch.lowering.tracing import counting, report
from weft.switch.trace.places import Extracted, FieldSet, ParserEnded, StateEntered, select_place

UNDECLARED_ERROR = 2**31 - 1
"""Code of a core library error that the program does not declare, so that the program still sees an error."""

SWITCHABLE_KEY_BITS = 64
"""Widest select key that becomes an LLVM jump table or search tree; wider keys are compared one by one."""


class ParserLowering:
    """Writes the body of a parser to `emit`, which is positioned after the prologue."""

    def __init__(self, emit: Emitter, parser: bmv2json.Parser) -> None:
        self._emit = emit
        self._parser = parser
        self._data = emit.load_state("data", 64)
        self._data = emit.builder.inttoptr(self._data, POINTER)
        self._size = emit.load_state("size_bytes")
        emit.extent(self._data, emit.builder.zext(self._size, I64), "the packet")
        self._position = emit.local(4)
        emit.store(I32(0), self._position, 4)
        self._steps = emit.local(4)
        emit.store(I32(bmv2json.PARSER_STEP_LIMIT), self._steps, 4)
        self._blocks = {name: emit.block(f"state_{index}") for index, name in enumerate(parser.states)}
        self._accept = emit.block("accept")
        self._fail = emit.block("fail")
        self._error = emit.local(4)
        self._has_loops = _has_loops(parser)

    def run(self) -> None:
        """Emit all states; ends with a return."""
        emit = self._emit
        emit.builder.branch(self._target(self._parser.initial_state))
        for name, state in self._parser.states.items():
            emit.continue_in(self._blocks[name])
            emit.place = f"parser state '{name}'"
            try:
                self._state(state)
            except UnsupportedError as error:
                raise UnsupportedError(error, place=f"parser state '{name}'") from None
        emit.continue_in(self._fail)
        emit.store_state("parser_error", emit.load(self._error, I32, 4))
        emit.fall_into(self._accept)
        emit.store_state("payload_offset_bytes", self._at())
        report(emit, ParserEnded(), [self._at(), emit.load_state("parser_error")])
        emit.builder.ret_void()

    def _target(self, state: str | None) -> Value:
        return self._accept if state is None else self._blocks[state]

    def _at(self) -> Value:
        return self._emit.load(self._position, I32, 4)

    def _cursor(self) -> Value:
        return self._emit.address(self._data, self._emit.builder.zext(self._at(), I64))

    def _left(self) -> Value:
        return self._emit.builder.sub(self._size, self._at())

    # ---- errors

    def _require(self, condition: Value, error: str) -> None:
        """Stop parsing with the core library's `error` unless `condition` holds."""
        self._require_code(condition, I32(self._error_code(error)))

    def _error_code(self, error: str) -> int:
        code = self._emit.program.errors.get(error)
        return code if code is not None else UNDECLARED_ERROR

    def _require_code(self, condition: Value, code: Value) -> None:
        emit = self._emit
        passed, failed = emit.block("passed"), emit.block("failed")
        emit.builder.cbranch(condition, passed, failed)
        emit.continue_in(failed)
        emit.store(code, self._error, 4)
        emit.builder.branch(self._fail)
        emit.continue_in(passed)

    def _require_bytes(self, count: Value) -> None:
        enough = self._emit.builder.icmp_unsigned(">=", self._left(), count)
        self._require(enough, "PacketTooShort")

    def _advance(self, count: Value) -> None:
        self._emit.store(self._emit.builder.add(self._at(), count), self._position, 4)

    # ---- operations

    def _state(self, state: bmv2json.ParseState) -> None:
        emit = self._emit
        # A parser without loops passes each state at most once, so it needs no limit.
        if self._has_loops:
            steps = emit.load(self._steps, I32, 4)
            self._require(emit.builder.icmp_unsigned("!=", steps, I32(0)), "ParserTimeout")
            emit.store(emit.builder.sub(steps, I32(1)), self._steps, 4)
        report(emit, StateEntered(state.name))
        if emit.shared.in_place is not None and state.name in emit.shared.in_place.out_of_order:
            note_move(emit)
        for operation in state.operations:
            match operation:
                case bmv2json.Extract():
                    self._extract(operation)
                case bmv2json.SetField(target, source):
                    self._check_lookahead(lookahead_bytes(source))
                    assign(emit, target, source)
                    report(emit, FieldSet(operation), [lower(emit, target, target.width_bits)])
                case bmv2json.Verify(condition, error):
                    self._check_lookahead(max(lookahead_bytes(condition), lookahead_bytes(error)))
                    self._require_code(lower_condition(emit, condition), lower(emit, error, 32))
                case bmv2json.Advance(bits):
                    self._check_lookahead(lookahead_bytes(bits))
                    self._skip(lower(emit, bits, 64))
                case bmv2json.ParserPrimitive(call):
                    done = emit.block("done")
                    emit_primitives(emit, [call], done)
                    emit.continue_in(done)
        self._transition(state)

    def _check_lookahead(self, count: int) -> None:
        if count:
            self._require_bytes(I32(count))
            self._emit.lookahead_base = (self._cursor(), self._left())

    def _skip(self, bits: Value) -> None:
        builder = self._emit.builder
        whole = builder.icmp_unsigned("==", builder.and_(bits, I64(7)), I64(0))
        self._require(whole, "ParserInvalidArgument")
        count = builder.lshr(bits, I64(3))
        left = builder.zext(self._left(), I64)
        self._require(builder.icmp_unsigned("<=", count, left), "PacketTooShort")
        self._advance(builder.trunc(count, I32))

    def _extract(self, operation: bmv2json.Extract) -> None:
        emit = self._emit
        stack: stacks.AnyStack | None = None
        match operation.target:
            case bmv2json.HeaderRef(name):
                place = header_place(emit, name)
            case bmv2json.StackRef(name):
                stack = headers = emit.layout.stacks[name]
                self._require_room(stack)
                place = stacks.element(emit, headers, stacks.next_index(emit, stack))
            case bmv2json.UnionStackMember(name, member):
                stack = unions = emit.layout.union_stacks[name]
                self._require_room(stack)
                index = emit.program.header_union_stacks[name].type.member_index(member)
                place = stacks.union_element(emit, unions, stacks.next_index(emit, stack))[index]
        before = self._at()
        index = I32(0) if stack is None else stacks.next_index(emit, stack)
        if operation.length_bits is None:
            self._extract_fixed(place)
        else:
            self._check_lookahead(lookahead_bytes(operation.length_bits))
            self._extract_variable(place, lower(emit, operation.length_bits, 64))
        set_valid(emit, place, extracted=True)
        self._note_position(place, before)
        if emit.shared.places is not None:
            extracted = emit.address(self._data, emit.builder.zext(before, I64))
            size = emit.builder.sub(self._at(), before)
            report(emit, Extracted(operation), [index], extracted, size)
        if stack is not None:
            stacks.set_next_index(emit, stack, emit.builder.add(stacks.next_index(emit, stack), I32(1)))

    def _note_position(self, place: HeaderPlace, at: Value) -> None:
        """Store where in the packet a header begins that pipelines write to."""
        emit, in_place = self._emit, self._emit.shared.in_place
        if in_place is not None and in_place.usable and place.name is not None and place.name in in_place.names:
            emit.store(emit.resize(at, 16), position_address(emit, in_place.names.index(place.name)), 2)

    def _require_room(self, stack: stacks.AnyStack) -> None:
        room = self._emit.builder.icmp_unsigned("<", stacks.next_index(self._emit, stack), I32(stack.size))
        self._require(room, "StackOutOfBounds")

    def _extract_fixed(self, place: HeaderPlace) -> None:
        size = I32(place.block.fixed_bytes)
        self._require_bytes(size)
        self._emit.copy(place.address, self._cursor(), place.block.fixed_bytes)
        if place.block.variable_bytes:
            self._emit.store(I32(0), self._emit.address(place.address, place.block.length_offset), 4)
        self._advance(size)

    def _extract_variable(self, place: HeaderPlace, length_bits: Value) -> None:
        emit, builder, block = self._emit, self._emit.builder, place.block
        whole = builder.icmp_unsigned("==", builder.and_(length_bits, I64(7)), I64(0))
        self._require(whole, "ParserInvalidArgument")
        length = builder.lshr(length_bits, I64(3))
        left = builder.zext(self._left(), I64)
        total = builder.add(length, I64(block.fixed_bytes))
        # A negative length is huge here, and its sum with the fixed part may wrap.
        enough = builder.and_(builder.icmp_unsigned("<=", length, left), builder.icmp_unsigned("<=", total, left))
        self._require(enough, "PacketTooShort")
        self._require(builder.icmp_unsigned("<=", length, I64(block.variable_bytes)), "HeaderTooShort")
        before = block.variable_at_byte
        after = block.fixed_bytes - before
        cursor = self._cursor()
        emit.copy(place.address, cursor, before)
        behind = emit.address(cursor, before)
        emit.copy(emit.address(place.address, block.variable_offset), behind, length)
        emit.copy(emit.address(place.address, before), emit.address(behind, length), after)
        short_length = builder.trunc(length, I32)
        emit.store(short_length, emit.address(place.address, block.length_offset), 4)
        self._advance(builder.trunc(total, I32))

    # ---- transitions

    def _transition(self, state: bmv2json.ParseState) -> None:
        emit = self._emit
        # As in BMv2, a key without a choice is not computed, even if it would read beyond the packet.
        if not state.transition_key or all(item.kind is bmv2json.TransitionKind.DEFAULT for item in state.transitions):
            default = next((item for item in state.transitions if item.kind is bmv2json.TransitionKind.DEFAULT), None)
            emit.builder.branch(self._target(default.next_state if default else None))
            return
        self._check_lookahead(max(lookahead_bytes(field) for field in state.transition_key))
        key = self._key(state)
        report(emit, select_place(state), [key])
        if all(self._is_plain(item, state) for item in state.transitions) and key.type.width <= SWITCHABLE_KEY_BITS:
            self._switch(state, key)
        else:
            self._compare_in_order(state, key)

    def _key(self, state: bmv2json.ParseState) -> Value:
        """The key fields, each padded to whole bytes, concatenated."""
        emit = self._emit
        width = state.key_width_bits
        key, used = constant(width, 0), 0
        for item in state.transition_key:
            assert isinstance(
                item, bmv2json.FieldRef | bmv2json.StackField | bmv2json.UnionStackField | bmv2json.Lookahead
            )
            padded = bytes_for(item.width_bits) * 8
            used += padded
            part = emit.resize(lower(emit, item, item.width_bits), width)
            if width - used:
                part = emit.builder.shl(part, constant(width, width - used))
            key = emit.builder.or_(key, part)
        return key

    @staticmethod
    def _is_plain(item: bmv2json.Transition, state: bmv2json.ParseState) -> bool:
        if item.kind is bmv2json.TransitionKind.VALUE:
            return item.mask is None or item.mask == (1 << state.key_width_bits) - 1
        return item.kind is bmv2json.TransitionKind.DEFAULT

    def _case(self, state: bmv2json.ParseState, number: int) -> Value:
        """Return the target of a select's case; the number after the last case stands for no match."""
        chosen = state.transitions[number].next_state if number < len(state.transitions) else None
        return counting(self._emit, select_place(state), number, self._target(chosen))

    def _switch(self, state: bmv2json.ParseState, key: Value) -> None:
        default: Value | None = None
        cases: dict[int, Value] = {}
        for number, item in enumerate(state.transitions):
            if item.kind is bmv2json.TransitionKind.DEFAULT:
                default = self._case(state, number)
                break
            if item.value not in cases:
                cases[item.value] = self._case(state, number)
        if default is None:
            default = self._case(state, len(state.transitions))
        choice = self._emit.builder.switch(key, default)
        for value, target in cases.items():
            choice.add_case(constant(key.type.width, value), target)

    def _compare_in_order(self, state: bmv2json.ParseState, key: Value) -> None:
        emit, width = self._emit, state.key_width_bits
        for number, item in enumerate(state.transitions):
            if item.kind is bmv2json.TransitionKind.DEFAULT:
                emit.builder.branch(self._case(state, number))
                return
            mask = item.mask if item.mask is not None else (1 << width) - 1
            if item.kind is bmv2json.TransitionKind.VALUE_SET:
                matches = self._in_value_set(key, item, mask)
            else:
                masked = emit.builder.and_(key, constant(width, mask))
                matches = emit.builder.icmp_unsigned("==", masked, constant(width, item.value & mask))
            otherwise = emit.block("otherwise")
            emit.builder.cbranch(matches, self._case(state, number), otherwise)
            emit.continue_in(otherwise)
        emit.builder.branch(self._case(state, len(state.transitions)))

    def _in_value_set(self, key: Value, item: bmv2json.Transition, mask: int) -> Value:
        emit = self._emit
        assert item.value_set is not None
        size = key.type.width // 8
        buffer = emit.local(size)
        emit.store(emit.swap_bytes(key), buffer)
        return emit.call_runtime(
            "weft_value_set_contains",
            I1,
            emit.context,
            I32(emit.shared.value_set_indices[item.value_set]),
            buffer,
            emit.shared.constant_bytes(mask.to_bytes(size, "big")),
            I32(size),
        )


def position_address(emit: Emitter, number: int) -> Value:
    """The address of the position (u16) of a header in the packet, by its number in `HeadersInPlace.names`."""
    return emit.address(emit.state, emit.shared.abi["PacketState.positions"] + 2 * number)


def _has_loops(parser: bmv2json.Parser) -> bool:
    """Return whether some state can be entered twice, so that the parser needs a limit."""
    successors = {
        name: {item.next_state for item in state.transitions if item.next_state is not None}
        for name, state in parser.states.items()
    }
    # Remove states without successors repeatedly, until none or only loops are left.
    while ending := [name for name, targets in successors.items() if not targets]:
        for name in ending:
            del successors[name]
        for targets in successors.values():
            targets.difference_update(ending)
    return bool(successors)
