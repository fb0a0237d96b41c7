"""Table keys as the native switch takes them.

Value and mask, or bounds, as bytes in the layout of the table's key.
"""

from __future__ import annotations

from typing import TypeAlias

from switch.backend import InvalidRequestError, LpmMatch, RangeMatch, TableKey, TernaryMatch
from switch.bmv2json import MatchKind, Table
from switch.checks import check_key
from switch.lowering.layout import bytes_for, key_bytes, key_offsets

NativeKey: TypeAlias = tuple[bytes, bytes, bytes, bytes, int]
"""Value, mask, low, high and priority; low and high are empty for tables without range fields."""

_MAX_PRIORITY = (1 << 31) - 1


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
        check_key(table, key, priority)
        if priority > _MAX_PRIORITY:
            raise InvalidRequestError(
                f"table {table.name!r}: priority {priority} (valid: to {_MAX_PRIORITY})"
            )
        value, mask = bytearray(self._size), bytearray(self._size)
        low, high = bytearray(self._size), bytearray(self._size)
        rank = priority if table.needs_priority else 0
        for field, offset, match in zip(table.key, self._offsets, key, strict=True):
            width = field.field.width_bits
            size = bytes_for(width)
            place = slice(offset, offset + size)
            if isinstance(match, RangeMatch):
                low[place] = match.low.to_bytes(size, "big")
                high[place] = match.high.to_bytes(size, "big")
                continue
            significant = (1 << width) - 1
            if isinstance(match, LpmMatch):
                significant ^= significant >> match.prefix_length
                if table.kind is MatchKind.LPM:
                    rank = match.prefix_length  # the longest prefix wins
            elif isinstance(match, TernaryMatch):
                significant = match.mask
            value[place] = match.value.to_bytes(size, "big")
            mask[place] = significant.to_bytes(size, "big")
        if not self._has_ranges:
            return bytes(value), bytes(mask), b"", b"", rank
        return bytes(value), bytes(mask), bytes(low), bytes(high), rank
