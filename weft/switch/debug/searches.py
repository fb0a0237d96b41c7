"""Translates a condition into tests of records, with which a native switch finds packets without recording them.

A test says that a part of the condition holds for a packet with a certain record (engine/switch/packet_search.hpp).
Most parts are decided by records alone. Some are only *perhaps* true: comparisons of two fields, and of fields of
headers that the program assigns to or moves as a whole. Packets for which the condition perhaps holds are traced, and
`Condition` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

from weft.engine import _core
from weft.switch.bmv2json import FieldRef, HeaderRef, Program, RegisterRef
from weft.switch.debug.atoms import (
    COMPARISONS,
    ActionWas,
    Atom,
    BothThere,
    Compared,
    FieldValue,
    HeaderThere,
    InPort,
    Number,
    Operand,
    OutPort,
    SentDigest,
    StateWas,
    TableWas,
    WasAbsorbed,
    WasDropped,
)
from weft.switch.debug.conditions import Condition, Part
from weft.switch.debug.replay import DROP_PORT, MOVES_HEADERS
from weft.switch.lowering.layout import bytes_for
from weft.switch.native.trace_records import RecordReader
from weft.switch.trace import places
from weft.switch.trace.absorption import absorbs
from weft.switch.trace.values import key_text

MOST_PARTS = 64
_ALWAYS, _NEVER, _COMPARE, _COMPARE_SIZE, _ASK = range(5)
"""SearchTest::Kind."""
_SIGNS = ("==", "!=", "<", "<=", ">", ">=")
"""In the order of SearchTest::Sign."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT, _AND, _OR = -1, -2, -3
"""PacketSearch::Rule."""
_WORD_BYTES, _LONG_BYTES, _LONGEST_BYTES = 4, 8, 16


@dataclass(frozen=True, slots=True)
class Test:
    """A record that may make a part of a condition true: SearchTest, which explains the fields."""

    site: int
    part: int
    kind: int = _ALWAYS
    is_certain: bool = True
    assigns: bool = False
    offset: int = 0
    size_bytes: int = 0
    little_endian: bool = False
    shift: int = 0
    mask: int = 0
    sign: int = 0
    constant: int = 0
    zero_at: int = 0
    zero_bytes: int = 0


@dataclass(frozen=True)
class Search:
    """The tests by which a native switch looks for packets that match `condition`.

    `needs_steps`: the switch has to run instrumented code. `is_certain`: no packet holds only perhaps.
    """

    tests: tuple[Test, ...]
    rule: tuple[int, ...]
    holds_for_zero: int
    undecidable: int
    ask: Callable[[int, bytes], bool]

    @property
    def needs_steps(self) -> bool:
        """Whether a test is about a place of the program."""
        return any(test.site >= _core.switch_abi()["kFirstProgramSite"] for test in self.tests)

    @property
    def is_certain(self) -> bool:
        """Whether records decide for every packet."""
        return not self.undecidable and all(test.is_certain for test in self.tests)

    def native_tests(self) -> list[dict[str, object]]:
        """Return the tests for `_core.Switch.search_packets`."""
        return [asdict(test) for test in self.tests]


def search_for(condition: Condition, program: Program) -> Search:
    """Translate a condition on packets of a program."""
    if len(condition.atoms) > MOST_PARTS:
        return Search((), (0,), 0, 1, lambda _test, _data: False)
    maker = _Maker(program)
    made = [maker.part(index, atom) for index, atom in enumerate(condition.atoms)]
    tests = tuple(sorted((test for part in made for test in part.tests), key=lambda test: test.site))
    holds_for_zero = sum(1 << index for index, part in enumerate(made) if part.holds_for_zero)
    undecidable = sum(1 << index for index, part in enumerate(made) if part.is_undecidable)
    reader = RecordReader(program)

    def ask(number: int, data: bytes) -> bool:
        atom = condition.atoms[tests[number].part]
        assert isinstance(atom, TableWas)
        match = reader.match(atom.table, data)
        return match is not None and key_text(match[0], atom.widths_bits, atom.names) == atom.entry

    return Search(tests, tuple(_postfix(condition.tree)), holds_for_zero, undecidable, ask)


def _postfix(part: Part) -> Iterator[int]:
    if part.operator == "atom":
        yield part.index
        return
    for number, each in enumerate(part.parts):
        yield from _postfix(each)
        if number:
            yield _AND if part.operator == "and" else _OR
    if part.operator == "not":
        yield _NOT


@dataclass(frozen=True, slots=True)
class _Made:
    """The tests of one part; `holds_for_zero`: it holds if nothing assigns the metadata that it compares."""

    tests: tuple[Test, ...] = ()
    holds_for_zero: bool = False
    is_undecidable: bool = False


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A field or a port compared with a constant: `(value & mask) sign constant`."""

    sign: str
    mask: int
    constant: int

    def holds(self, value: int) -> bool:
        return COMPARISONS[self.sign](value & self.mask, self.constant)


class _Maker:
    def __init__(self, program: Program) -> None:
        self._program = program
        abi = _core.switch_abi()
        self._sites = {
            name.removeprefix("TraceSite."): number for name, number in abi.items() if name.startswith("TraceSite.")
        }
        self._places = [
            (abi["kFirstProgramSite"] + number, place) for number, place in enumerate(places.Places(program))
        ]
        in_stacks = [name for stack in program.header_stacks.values() for name in stack.headers]
        unions = [union.headers for union in program.header_unions.values()]
        self._moved_together = {*in_stacks, *(name for members in unions for name in members)}

    def part(self, index: int, atom: Atom) -> _Made:
        """Return the tests of an atom."""
        made = self._made(atom)
        return replace(made, tests=tuple(replace(test, part=index) for test in made.tests))

    def _made(self, atom: Atom) -> _Made:
        match atom:
            case Compared(sign, left, right):
                return self._compared(sign, left, right)
            case BothThere(left, right):
                return self._both_there(left, right)
            case HeaderThere(header):
                return _Made(tuple(self._header_tests(header)))
            case WasDropped(None):
                return _Made((self._own("dropped"),))
            case WasDropped(reason):
                number = _core.Switch.drop_reasons().index(reason or "")
                return _Made((self._own_number("dropped", 0, _equal(number, 32)),))
            case WasAbsorbed():
                return _Made(
                    tuple(
                        Test(site, 0)
                        for site, place in self._places
                        if isinstance(place, places.PrimitiveRun) and absorbs(place.call)
                    )
                )
            case SentDigest():
                return _Made((self._own("digest"),))
            case TableWas():
                return _Made(tuple(self._table_tests(atom)))
            case ActionWas(ids):
                return _Made(
                    tuple(
                        Test(site, 0)
                        for site, place in self._places
                        if isinstance(place, places.ActionRun) and place.action_id in ids
                    )
                )
            case StateWas(state):
                entered = places.StateEntered(state)
                return _Made(tuple(Test(site, 0) for site, place in self._places if place == entered))
        return _Made(is_undecidable=True)

    # ---- comparisons

    def _compared(self, sign: str, left: Operand, right: Operand) -> _Made:
        if isinstance(left, Number):
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if not isinstance(right, Number):
            return _Made(is_undecidable=True)
        mask = (1 << (left.width_bits or 0)) - 1
        if right.literal.mask is not None:
            mask &= right.literal.mask
        if isinstance(left, FieldValue) and left.mask is not None:
            mask &= left.mask
        constant = right.literal.value if right.literal.mask is None else right.literal.value & right.literal.mask
        comparison = _Comparison(sign, mask, constant)
        if isinstance(left, FieldValue):
            return self._field(left.ref, comparison)
        return _Made((self._port(left, comparison),))

    def _port(self, operand: Operand, comparison: _Comparison) -> Test:
        if isinstance(operand, OutPort):
            return self._own_number("sent", 0, comparison)
        return self._first_time(self._own_number("received", 0, comparison))

    def _first_time(self, test: Test) -> Test:
        """Only as the packet arrives at the switch: with instance type 0, which follows the port."""
        return replace(test, zero_at=_WORD_BYTES, zero_bytes=_WORD_BYTES)

    def _both_there(self, left: Operand, right: Operand) -> _Made:
        operands = [each for each in (left, right) if not isinstance(each, Number)]
        if len(operands) != 1:
            return _Made(is_undecidable=True)
        (operand,) = operands
        if isinstance(operand, InPort):
            return _Made((self._first_time(self._own("received")),))
        if isinstance(operand, OutPort):
            return _Made((self._own("sent"),))
        assert isinstance(operand, FieldValue)
        if self._program.headers[operand.ref.header].metadata:
            return _Made(holds_for_zero=True)
        return _Made(tuple(self._header_tests(operand.ref.header)))

    def _field(self, ref: FieldRef, comparison: _Comparison) -> _Made:
        if self._program.headers[ref.header].metadata:
            tests = (*self._own_tests(ref, comparison), *self._metadata_tests(ref, comparison))
            return _Made(tests, holds_for_zero=comparison.holds(0))
        return _Made(tuple(self._header_field_tests(ref, comparison)))

    # ---- records of the switch itself

    def _own(self, site: str) -> Test:
        return Test(self._sites[site], 0)

    def _own_number(self, site: str, offset: int, comparison: _Comparison, size_bytes: int = _WORD_BYTES) -> Test:
        return _comparing(
            Test(self._sites[site], 0, offset=offset, size_bytes=size_bytes, little_endian=True), comparison
        )

    def _own_tests(self, ref: FieldRef, comparison: _Comparison) -> Iterator[Test]:
        """Yield the tests of metadata that the switch assigns, as `Replay` does."""
        received = self._first_time(self._own_number("received", 0, comparison))
        arrival = self._own_number("received", 2 * _WORD_BYTES, comparison, _LONG_BYTES)
        length = _comparing(Test(self._sites["received"], 0), comparison, _COMPARE_SIZE)
        egress = [self._own_number("egress", number * _WORD_BYTES, comparison) for number in range(6)]
        since, now = (self._own_number("egress", number * _WORD_BYTES, comparison, _LONG_BYTES) for number in (6, 8))
        kind_of_copy = self._own_number("copied", _WORD_BYTES, comparison)
        all_of_them = {
            "standard_metadata.ingress_port": [received],
            "intrinsic_metadata.ingress_global_timestamp": [self._first_time(arrival)],
            "standard_metadata.packet_length": [length],
            "standard_metadata.instance_type": [
                self._own_number("received", _WORD_BYTES, comparison),
                kind_of_copy,
                egress[2],
            ],
            "queueing_metadata.qid": [self._own_number("enqueued", _WORD_BYTES, comparison)],
            "standard_metadata.egress_port": [egress[0]],
            "standard_metadata.egress_spec": [self._constant(self._own("egress"), ref, comparison, DROP_PORT + 1)],
            "intrinsic_metadata.egress_rid": [egress[1]],
            "queueing_metadata.enq_qdepth": [egress[3]],
            "queueing_metadata.deq_qdepth": [egress[4]],
            "queueing_metadata.deq_timedelta": [egress[5]],
            "queueing_metadata.enq_timestamp": [since],
            "intrinsic_metadata.egress_global_timestamp": [now],
        }
        for name, tests in all_of_them.items():
            if self._is(ref, name):
                yield from (replace(test, assigns=True) for test in tests)

    def _is(self, ref: FieldRef, intrinsic: str) -> bool:
        found = self._program.intrinsic(intrinsic)
        return found is not None and (found.header, found.field) == (ref.header, ref.field)

    def _constant(self, test: Test, ref: FieldRef, comparison: _Comparison, value: int) -> Test:
        """Return a test for a record that assigns always the same value."""
        holds = comparison.holds(value & ((1 << ref.width_bits) - 1))
        return replace(test, kind=_ALWAYS if holds else _NEVER, assigns=True)

    # ---- places of the program

    def _metadata_tests(self, ref: FieldRef, comparison: _Comparison) -> Iterator[Test]:
        for site, place in self._places:
            test = Test(site, 0, assigns=True)
            match place:
                case places.ParserEnded() if self._is(ref, "standard_metadata.parser_error"):
                    yield _comparing(replace(test, offset=_WORD_BYTES, size_bytes=_WORD_BYTES), comparison)
                case places.ChecksumVerified() if self._is(ref, "standard_metadata.checksum_error"):
                    wrong = replace(test, zero_bytes=bytes_for(1))
                    yield self._constant(wrong, ref, comparison, 1)
                case places.PrimitiveRun(call) if call.name in ("drop", "mark_to_drop"):
                    if self._is(ref, "standard_metadata.egress_spec"):
                        yield self._constant(test, ref, comparison, DROP_PORT)
                    elif self._is(ref, "intrinsic_metadata.mcast_grp"):
                        yield Test(site, 0, is_certain=False)
                case _:
                    yield from self._assignments(test, place, ref, comparison)

    def _assignments(self, test: Test, place: places.Place, ref: FieldRef, comparison: _Comparison) -> Iterator[Test]:
        """Yield the test of a place that reports a value assigned to a field."""
        target: object = None
        offset, width_bits = 0, ref.width_bits
        match place:
            case places.FieldSet(operation):
                target = operation.target
            case places.ChecksumUpdated(_, updated):
                target = updated
            case places.PrimitiveRun(_, operands, result, width_bits):
                target, offset = result, sum(bytes_for(width) for _, width in operands)
        if isinstance(target, FieldRef) and (target.header, target.field) == (ref.header, ref.field):
            yield _comparing(replace(test, offset=offset, size_bytes=bytes_for(width_bits)), comparison)

    def _header_field_tests(self, ref: FieldRef, comparison: _Comparison) -> Iterator[Test]:
        for site, place in self._places:
            if isinstance(place, places.Extracted):
                yield from self._extraction(Test(site, 0), place, ref, comparison)
            elif self._may_move(place, ref.header):
                yield Test(site, 0, is_certain=False)
            else:
                # The header may be invalid.
                yield from self._assignments(Test(site, 0, is_certain=False), place, ref, comparison)

    def _extraction(
        self, test: Test, place: places.Extracted, ref: FieldRef, comparison: _Comparison
    ) -> Iterator[Test]:
        target = place.operation.target
        if not isinstance(target, HeaderRef):
            if ref.header in self._moved_together:
                yield replace(test, is_certain=False)
            return
        if target.name != ref.header:
            return
        before_bits = 0
        for field in self._program.headers[ref.header].type.fields:
            if field.variable:
                yield replace(test, is_certain=False)
                return
            if field.name == ref.field:
                break
            before_bits += field.width_bits
        end_bits = before_bits + ref.width_bits
        first, last = before_bits // 8, bytes_for(end_bits)
        # The index in a stack stands before the header.
        there = replace(test, offset=_WORD_BYTES + first, size_bytes=last - first, shift=last * 8 - end_bits)
        yield _comparing(there, comparison)

    def _header_tests(self, header: str) -> Iterator[Test]:
        """Yield the tests of a header that becomes valid."""
        for site, place in self._places:
            if isinstance(place, places.Extracted):
                target = place.operation.target
                if isinstance(target, HeaderRef):
                    if target.name == header:
                        yield Test(site, 0)
                elif header in self._moved_together:
                    yield Test(site, 0, is_certain=False)
            elif self._may_move(place, header):
                assert isinstance(place, places.PrimitiveRun)
                adds = place.call.name == "add_header" and place.call.arguments[:1] == (HeaderRef(header),)
                yield Test(site, 0, is_certain=adds)

    def _may_move(self, place: places.Place, header: str) -> bool:
        """Return whether a place may change a header without a report of its fields."""
        if not isinstance(place, places.PrimitiveRun):
            return False
        if place.result is not None:
            in_stack = header in self._moved_together
            return in_stack and not isinstance(place.result, FieldRef | RegisterRef)
        if place.call.name not in MOVES_HEADERS or place.call.name in ("drop", "mark_to_drop", "remove_header"):
            return False
        target = place.call.arguments[0]
        if isinstance(target, FieldRef):
            return target.header == header
        return target.name == header if isinstance(target, HeaderRef) else header in self._moved_together

    def _table_tests(self, atom: TableWas) -> Iterator[Test]:
        for site, place in self._places:
            if not isinstance(place, places.TableApplied) or place.table != atom.table:
                continue
            found = Test(site, 0, offset=sum(map(bytes_for, place.key_bits)), size_bytes=1)
            if atom.hit is None:
                yield Test(site, 0)
            elif atom.entry is None:
                yield _comparing(found, _equal(int(atom.hit), 8))
            else:
                yield replace(found, kind=_ASK)


def _equal(constant: int, width_bits: int) -> _Comparison:
    return _Comparison("==", (1 << width_bits) - 1, constant)


def _comparing(test: Test, comparison: _Comparison, kind: int = _COMPARE) -> Test:
    """Complete a test of a number; one that is too wide holds perhaps."""
    if test.size_bytes > _LONGEST_BYTES:
        return replace(test, kind=_ALWAYS, is_certain=False)
    return replace(
        test,
        kind=kind,
        mask=comparison.mask,
        sign=_SIGNS.index(comparison.sign),
        constant=comparison.constant,
    )
