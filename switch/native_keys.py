"""Table keys as the native switch takes them: value and mask, or bounds, as bytes in the layout of the
table's key.
"""

from __future__ import annotations

from typing import TypeAlias

from switch.backend import (
    ExactMatch,
    InvalidRequestError,
    LpmMatch,
    Match,
    RangeMatch,
    TableKey,
    TernaryMatch,
)
from switch.bmv2json import KeyField, MatchKind, Table
from switch.lowering.layout import bytes_for, key_bytes, key_offsets

NativeKey: TypeAlias = tuple[bytes, bytes, bytes, bytes, int]
"""Value, mask, low, high and priority; low and high are empty for tables without range fields."""

_KINDS: dict[MatchKind, type] = {
    MatchKind.VALID: ExactMatch,
    MatchKind.EXACT: ExactMatch,
    MatchKind.LPM: LpmMatch,
    MatchKind.TERNARY: TernaryMatch,
    MatchKind.RANGE: RangeMatch,
}


class KeyEncoder:
    """Encodes the keys of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._size = key_bytes(table)
        self._offsets = key_offsets(table)
        self._has_ranges = any(field.kind is MatchKind.RANGE for field in table.key)

    def encode(self, key: TableKey, priority: int) -> NativeKey:
        """The native key. InvalidRequestError names the field that does not fit the table."""
        table = self._table
        if len(key) != len(table.key):
            raise InvalidRequestError(f"table '{table.name}' has {len(table.key)} key fields, not {len(key)}")
        value, mask = bytearray(self._size), bytearray(self._size)
        low, high = (bytearray(self._size), bytearray(self._size)) if self._has_ranges else (b"", b"")
        rank = self._rank(priority)
        for field, offset, match in zip(table.key, self._offsets, key, strict=True):
            width = field.field.width_bits
            place = slice(offset, offset + bytes_for(width))
            size = place.stop - place.start
            if isinstance(match, RangeMatch) and field.kind is MatchKind.RANGE:
                assert isinstance(low, bytearray)
                assert isinstance(high, bytearray)
                self._check(field, match.low, match.high)
                if match.low > match.high:
                    raise self._error(field, f"range from {match.low} to {match.high} is empty")
                low[place] = match.low.to_bytes(size, "big")
                high[place] = match.high.to_bytes(size, "big")
                continue
            wanted, significant = self._value_and_mask(field, match, width)
            value[place] = wanted.to_bytes(size, "big")
            mask[place] = significant.to_bytes(size, "big")
            if isinstance(match, LpmMatch) and table.kind is MatchKind.LPM:
                rank = match.prefix_length
        return bytes(value), bytes(mask), bytes(low), bytes(high), rank

    def _rank(self, priority: int) -> int:
        if not self._table.needs_priority:
            if priority:
                raise InvalidRequestError(
                    f"table '{self._table.name}' takes no priority, but {priority} was given"
                )
            return 0
        if not 0 < priority < 1 << 31:
            raise InvalidRequestError(
                f"table '{self._table.name}': priority {priority} (valid: 1 to {(1 << 31) - 1})"
            )
        return priority

    def _value_and_mask(self, field: KeyField, match: Match, width: int) -> tuple[int, int]:
        full = (1 << width) - 1
        if not isinstance(match, _KINDS[field.kind]) or isinstance(match, RangeMatch):
            raise self._error(field, f"{type(match).__name__} does not fit a {field.kind.value} field")
        self._check(field, match.value)
        if isinstance(match, ExactMatch):
            return match.value, full
        if isinstance(match, LpmMatch):
            if not 0 <= match.prefix_length <= width:
                raise self._error(field, f"prefix length {match.prefix_length} (valid: 0 to {width})")
            significant = full ^ (full >> match.prefix_length)
        else:
            self._check(field, match.mask)
            significant = match.mask
        if match.value & ~significant:
            raise self._error(field, f"value {match.value:#x} has bits outside its mask {significant:#x}")
        return match.value, significant

    def _check(self, field: KeyField, *values: int) -> None:
        for value in values:
            if not 0 <= value < 1 << field.field.width_bits:
                raise self._error(field, f"value {value} does not fit into {field.field.width_bits} bits")

    def _error(self, field: KeyField, problem: str) -> InvalidRequestError:
        return InvalidRequestError(f"table '{self._table.name}', field '{field.name}': {problem}")
