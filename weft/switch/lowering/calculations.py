"""Calculations: the input is copied to a byte buffer, over which a hash function of the C++ runtime runs.

Fields of invalid headers are left out, so offsets in the buffer depend on validity. The input is split into
runs, each of one header or of values that are always present. If runs that may be missing are whole
bytes, everything is copied in whole bytes; otherwise the runtime appends the bits of one run after the
other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from weft.switch.bmv2json import Calculation, Constant, FieldRef, HeaderRef, Payload
from weft.switch.lowering.emitter import I64, POINTER, VOID, Emitter, Value, constant, integer
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.fields import (
    HeaderPlace,
    field_place,
    header_place,
    is_valid,
    load_bits,
    load_field,
    variable_bytes,
)
from weft.switch.lowering.layout import bytes_for

ALGORITHMS = {
    "crc16": "weft_hash_crc16",
    "crc16_custom": "weft_hash_crc16",
    "crc32": "weft_hash_crc32",
    "crc32_custom": "weft_hash_crc32",
    "crcCCITT": "weft_hash_crc_ccitt",
    "csum16": "weft_hash_csum16",
    "cksum16": "weft_hash_csum16",
    "xor16": "weft_hash_xor16",
    "xor32": "weft_hash_xor32",
    "crc8_custom": "weft_hash_crc8",
    "crc64_custom": "weft_hash_crc64",
    "xxh64": "weft_hash_xxh64",
    "bmv2_hash": "weft_hash_xxh64",
    "identity": "weft_hash_identity",
}
"""Function of the C++ runtime for each algorithm; the custom CRCs have BMv2's initial parameters."""

RANDOM = "random"
"""v1model's algorithm that ignores its input (BMv2 does not have it)."""


@dataclass(frozen=True, slots=True)
class _Bits:
    """Consecutive bits of a header as they lie on the wire."""

    bit_offset: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class _Variable:
    """The variable-length field of a header."""


@dataclass(slots=True)
class _Run:
    """Consecutive input; present only if `header` is valid, always if it is None."""

    header: str | None
    pieces: list[_Bits | _Variable | FieldRef | Constant] = field(default_factory=list)

    @property
    def width_bits(self) -> int:
        """Width without variable-length fields."""
        widths = (piece.width_bits or 0 for piece in self.pieces if not isinstance(piece, _Variable))
        return sum(widths)


def hash_calculation(emit: Emitter, calculation: Calculation) -> Value:
    """Return the hash of a named calculation (i64)."""
    return hash_of(emit, calculation.input, calculation.algorithm, f"calculation '{calculation.name}'")


def hash_of(
    emit: Emitter, items: Iterable[FieldRef | Constant | HeaderRef | Payload], algorithm: str, where: str
) -> Value:
    """Return the hash of `items` (i64). Raises UnsupportedError for an unknown algorithm."""
    if algorithm == RANDOM:
        return emit.call_runtime("weft_random_between", I64, emit.context, I64(0), I64(2**64 - 1))
    if algorithm not in ALGORITHMS:
        raise UnsupportedError(f"hash algorithm '{algorithm}'", place=where, valid=sorted((*ALGORITHMS, RANDOM)))
    items = list(items)
    with_payload = any(isinstance(item, Payload) for item in items)
    runs = _runs(emit, items)
    name = ALGORITHMS[algorithm]
    if name == "weft_hash_identity" and not with_payload and (value := _one_value(runs)) is not None:
        return emit.resize(_always_value(emit, value), 64)
    if name == "weft_hash_csum16" and not with_payload and _whole_words(runs):
        return _internet_checksum(emit, runs)
    capacity = sum(_max_bytes(emit, run) for run in runs) + 8
    buffer = emit.local(capacity)
    size = _append_bytes(emit, runs, buffer) if _whole_bytes(runs) else _append_bits(emit, runs, buffer, capacity)
    emit.check(buffer, size)
    if with_payload:
        function = emit.shared.runtime_function(name, I64, [POINTER, I64])
        return emit.call_runtime("weft_hash_with_payload", I64, function, buffer, size, emit.state)
    return emit.call_runtime(name, I64, buffer, size)


# ---- splitting the input


def _runs(emit: Emitter, items: list[FieldRef | Constant | HeaderRef | Payload]) -> list[_Run]:
    runs: list[_Run] = []
    for item in items:
        if isinstance(item, Payload):
            continue
        header, pieces = _pieces(emit, item)
        if not runs or runs[-1].header != header:
            runs.append(_Run(header))
        for piece in pieces:
            _add_piece(runs[-1], piece)
    return runs


def _pieces(
    emit: Emitter, item: FieldRef | Constant | HeaderRef
) -> tuple[str | None, list[_Bits | _Variable | FieldRef | Constant]]:
    if isinstance(item, Constant):
        return None, [item]
    if isinstance(item, HeaderRef):
        block = emit.layout.blocks[item.name]
        if not block.variable_bytes:
            return item.name, [_Bits(0, block.fixed_bytes * 8)]
        before = block.variable_at_byte * 8
        after = block.fixed_bytes * 8 - before
        parts: list[_Bits | _Variable] = [_Bits(0, before), _Variable(), _Bits(before, after)]
        return item.name, [part for part in parts if isinstance(part, _Variable) or part.width_bits]
    block = emit.layout.blocks[item.header]
    if not block.wire and block.fields[item.field].variable:
        raise UnsupportedError(f"a calculation over the variable '{item}' of type varbit")
    if not block.wire or item.is_validity:
        return None, [item]
    slot = block.fields[item.field]
    return item.header, [_Variable() if slot.variable else _Bits(slot.bit_offset, slot.width_bits)]


def _add_piece(run: _Run, piece: _Bits | _Variable | FieldRef | Constant) -> None:
    last = run.pieces[-1] if run.pieces else None
    if isinstance(piece, _Bits) and isinstance(last, _Bits) and last.bit_offset + last.width_bits == piece.bit_offset:
        run.pieces[-1] = _Bits(last.bit_offset, last.width_bits + piece.width_bits)
        return
    run.pieces.append(piece)


def _max_bytes(emit: Emitter, run: _Run) -> int:
    variable = emit.layout.blocks[run.header].variable_bytes if run.header is not None else 0
    return bytes_for(run.width_bits) + variable * sum(isinstance(piece, _Variable) for piece in run.pieces)


def _whole_bytes(runs: list[_Run]) -> bool:
    """Return whether every run that may be missing, and every variable-length field, starts and ends at a byte."""
    phase = 0
    for run in runs:
        if run.header is not None and (phase or run.width_bits % 8):
            return False
        for piece in run.pieces:
            if isinstance(piece, _Variable) and phase:
                return False
            phase = (phase + (0 if isinstance(piece, _Variable) else piece.width_bits or 0)) % 8
    return True


def _one_value(runs: list[_Run]) -> FieldRef | Constant | None:
    """Return the value that is the whole input, if it is always present, in whole bytes, and fits 64 bits."""
    if len(runs) != 1 or runs[0].header is not None or len(runs[0].pieces) != 1:
        return None
    (piece,) = runs[0].pieces
    is_value = isinstance(piece, FieldRef | Constant) and runs[0].width_bits in range(8, 65, 8)
    return piece if is_value else None  # type: ignore[return-value]


# ---- checksums of whole words


def _whole_words(runs: list[_Run]) -> bool:
    """Return whether the input consists only of 16-bit words of headers that start at a byte."""
    return all(
        run.header is not None
        and all(
            isinstance(piece, _Bits) and piece.bit_offset % 8 == 0 and piece.width_bits % 16 == 0
            for piece in run.pieces
        )
        for run in runs
    )


def _internet_checksum(emit: Emitter, runs: list[_Run]) -> Value:
    """Return the checksum of whole words (i64), computed in place without copies and calls.

    One's complement sums depend neither on byte order nor on how the words are grouped (RFC 1071, section 2), so
    native words of four bytes are added, and the sum is swapped.
    """
    builder = emit.builder
    total = emit.local(8)
    emit.store(I64(0), total, 8)
    for run in runs:
        assert run.header is not None
        place = header_place(emit, run.header)
        with emit.when(is_valid(emit, place), likely=True):
            words = [load for piece in run.pieces for load in _native_words(emit, place, piece)]
            emit.store(functools.reduce(builder.add, words, emit.load(total, I64, 8)), total, 8)
    result = emit.load(total, I64, 8)
    # Of 32 bits and carries: 33 bits, 18, 17, 16.
    for width in (32, 16, 16, 16):
        low = builder.and_(result, I64((1 << width) - 1))
        result = builder.add(builder.lshr(result, I64(width)), low)
    return builder.zext(builder.not_(emit.swap_bytes(emit.resize(result, 16))), I64)


def _native_words(emit: Emitter, place: HeaderPlace, piece: object) -> Iterator[Value]:
    """Yield the bits as native words of four bytes, the last one possibly of two, each as i64."""
    assert isinstance(piece, _Bits)
    end = (piece.bit_offset + piece.width_bits) // 8
    for at in range(piece.bit_offset // 8, end, 4):
        word = emit.load(emit.address(place.address, at), integer(min(4, end - at) * 8))
        yield emit.builder.zext(word, I64)


# ---- whole bytes


def _append_bytes(emit: Emitter, runs: list[_Run], buffer: Value) -> Value:
    """Write the runs to `buffer`; return the number of bytes written (i64)."""
    position = emit.local(8)
    emit.store(I64(0), position, 8)
    merged = _merge_always(runs)
    for run in merged:
        if run.header is None:
            _append_run(emit, run, None, buffer, position)
            continue
        place = header_place(emit, run.header)
        with emit.when(is_valid(emit, place)):
            _append_run(emit, run, place, buffer, position)
    return emit.load(position, I64, 8)


def _merge_always(runs: list[_Run]) -> list[_Run]:
    """Merge neighbouring runs that are always present, so that parts of bytes meet."""
    merged: list[_Run] = []
    for run in runs:
        if run.header is None and merged and merged[-1].header is None:
            merged[-1].pieces.extend(run.pieces)
        else:
            merged.append(_Run(run.header, list(run.pieces)))
    return merged


def _append_run(emit: Emitter, run: _Run, place: HeaderPlace | None, buffer: Value, position: Value) -> None:
    writer = _ByteWriter(emit, emit.address(buffer, emit.load(position, I64, 8)))
    for piece in run.pieces:
        if isinstance(piece, _Variable):
            assert place is not None
            size = emit.builder.zext(variable_bytes(emit, place), I64)
            writer.flush()
            target = emit.address(writer.start, writer.written_bytes)
            emit.copy(target, emit.address(place.address, place.block.variable_offset), size)
            writer = _ByteWriter(emit, emit.address(target, size))
        elif isinstance(piece, _Bits):
            assert place is not None
            writer.add_wire(place.address, piece)
        else:
            writer.add_value(_always_value(emit, piece))
    writer.flush()
    end = emit.builder.ptrtoint(emit.address(writer.start, writer.written_bytes), I64)
    emit.store(emit.builder.sub(end, emit.builder.ptrtoint(buffer, I64)), position, 8)


def _always_value(emit: Emitter, piece: FieldRef | Constant) -> Value:
    if isinstance(piece, Constant):
        assert piece.width_bits is not None
        return constant(piece.width_bits, piece.value)
    return load_field(emit, field_place(emit, piece))


class _ByteWriter:
    """Writes a bit string from an address on; parts of bytes are buffered until they are whole bytes."""

    def __init__(self, emit: Emitter, start: Value) -> None:
        self._emit = emit
        self.start = start
        self.written_bytes = 0
        self._pending: list[Value] = []

    def add_wire(self, base: Value, bits: _Bits) -> None:
        """Append bits of a header."""
        whole_bits = bits.width_bits // 8 * 8
        if not self._pending and bits.bit_offset % 8 == 0 and whole_bits:
            source = self._emit.address(base, bits.bit_offset // 8)
            self._emit.copy(self._emit.address(self.start, self.written_bytes), source, whole_bits // 8)
            self.written_bytes += whole_bits // 8
            bits = _Bits(bits.bit_offset + whole_bits, bits.width_bits - whole_bits)
        if bits.width_bits:
            self.add_value(load_bits(self._emit, base, bits.bit_offset, bits.width_bits))

    def add_value(self, value: Value) -> None:
        """Append an integer, most significant bit first."""
        self._pending.append(value)
        if sum(item.type.width for item in self._pending) % 8 == 0:
            self.flush()

    def flush(self) -> None:
        """Write the buffered bits, padded with zero bits at the end to whole bytes."""
        if not self._pending:
            return
        width = sum(item.type.width for item in self._pending)
        padded = bytes_for(width) * 8
        word, used = constant(padded, 0), 0
        for item in self._pending:
            used += item.type.width
            part = self._emit.resize(item, padded)
            if padded - used:
                part = self._emit.builder.shl(part, constant(padded, padded - used))
            word = self._emit.builder.or_(word, part)
        target = self._emit.address(self.start, self.written_bytes)
        self._emit.store(self._emit.swap_bytes(word), target)
        self.written_bytes += padded // 8
        self._pending.clear()


# ---- bit by bit


def _append_bits(emit: Emitter, runs: list[_Run], buffer: Value, capacity: int) -> Value:
    """Write as `_append_bytes`, for input in which a run with a part of a byte may be missing."""
    emit.clear(buffer, capacity)
    position = emit.local(8)
    emit.store(I64(0), position, 8)
    for run in runs:
        if run.header is None:
            for piece in run.pieces:
                assert isinstance(piece, FieldRef | Constant)
                _append_value(emit, _always_value(emit, piece), buffer, position)
            continue
        place = header_place(emit, run.header)
        with emit.when(is_valid(emit, place)):
            for piece in run.pieces:
                if isinstance(piece, _Bits):
                    value = load_bits(emit, place.address, piece.bit_offset, piece.width_bits)
                    _append_value(emit, value, buffer, position)
                elif isinstance(piece, _Variable):
                    bits = emit.builder.shl(emit.builder.zext(variable_bytes(emit, place), I64), I64(3))
                    source = emit.address(place.address, place.block.variable_offset)
                    _append(emit, source, bits, buffer, position)
    bits = emit.load(position, I64, 8)
    return emit.builder.lshr(emit.builder.add(bits, I64(7)), I64(3))


def _append_value(emit: Emitter, value: Value, buffer: Value, position: Value) -> None:
    width = value.type.width
    padded = bytes_for(width) * 8
    slot = emit.local(padded // 8)
    word = emit.resize(value, padded)
    if padded != width:
        word = emit.builder.shl(word, constant(padded, padded - width))
    emit.store(emit.swap_bytes(word), slot)
    _append(emit, slot, I64(width), buffer, position)


def _append(emit: Emitter, source: Value, count: Value, buffer: Value, position: Value) -> None:
    at = emit.load(position, I64, 8)
    end = emit.builder.lshr(emit.builder.add(emit.builder.add(at, count), I64(7)), I64(3))
    emit.check(buffer, end)
    emit.check(source, emit.builder.lshr(emit.builder.add(count, I64(7)), I64(3)))
    emit.call_runtime("weft_append_bits", VOID, buffer, at, source, count)
    emit.store(emit.builder.add(at, count), position, 8)


def scaled(emit: Emitter, hash_value: Value, base: Value, size: Value) -> Value:
    """Return `base + hash % size` (all i64); a size of 0 counts as 1."""
    at_least_one = emit.builder.select(emit.builder.icmp_unsigned("==", size, I64(0)), I64(1), size)
    return emit.builder.add(base, emit.builder.urem(hash_value, at_least_one))
