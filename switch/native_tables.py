"""One table of the native switch: its keys and actions in C++'s form and back, prepared once per program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from switch.backend import (
    ActionCall,
    ExactMatch,
    GroupRef,
    InvalidRequestError,
    LpmMatch,
    Match,
    MemberRef,
    RangeMatch,
    TableAction,
    TableEntry,
    TableKey,
    TernaryMatch,
)
from switch.bmv2json import Action, KeyField, MatchKind, Table, TableType
from switch.checks import check_call, check_key, check_table_action
from switch.lowering.layout import ActionDataLayout, action_data_layout, bytes_for, key_bytes, key_offsets
from switch.native_values import ACTION, GROUP, MEMBER, Binding, checked_id

NativeKey: TypeAlias = tuple[bytes, bytes, bytes, bytes, int]
"""Value, mask, low, high and priority; low and high are empty for tables without range fields."""

_MAX_PRIORITY = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Field:
    """A key field and the bytes of the key that hold it."""

    kind: MatchKind
    width_bits: int
    size_bytes: int
    all_ones: bytes
    place: slice

    def decode(self, value: bytes, mask: bytes, low: bytes, high: bytes) -> Match:
        """The match in a native key."""
        if self.kind is MatchKind.RANGE:
            bounds = (int.from_bytes(bound[self.place], "big") for bound in (low, high))
            return RangeMatch(*bounds)
        number = int.from_bytes(value[self.place], "big")
        if self.kind is MatchKind.LPM:
            return LpmMatch(number, int.from_bytes(mask[self.place], "big").bit_count())
        if self.kind is MatchKind.TERNARY:
            return TernaryMatch(number, int.from_bytes(mask[self.place], "big"))
        return ExactMatch(number)


def _field(key: KeyField, offset: int) -> _Field:
    width_bits = key.field.width_bits
    size = bytes_for(width_bits)
    all_ones = ((1 << width_bits) - 1).to_bytes(size, "big")
    return _Field(key.kind, width_bits, size, all_ones, slice(offset, offset + size))


class NativeTable:
    """`index` is the table's place in the program; `modifiable` says if its entries may change.

    `key_size_bytes` is the size of its native keys.
    """

    def __init__(self, table: Table, index: int, *, modifiable: bool) -> None:
        self.table = table
        self.index = index
        self.modifiable = modifiable
        self.key_size_bytes = key_bytes(table)
        pairs = zip(table.key, key_offsets(table), strict=True)
        self._fields = tuple(_field(key, offset) for key, offset in pairs)
        self._has_ranges = any(field.kind is MatchKind.RANGE for field in table.key)
        self._layouts: dict[str, tuple[Action, ActionDataLayout]] = {
            action.name: (action, action_data_layout(action)) for action in table.actions
        }
        self._by_id = {action.id: (action.name, layout) for action, layout in self._layouts.values()}

    # ---- keys

    def encode_key(self, key: TableKey, priority: int) -> NativeKey:
        """The native key. InvalidRequestError names the field that does not fit the table."""
        table = self.table
        check_key(table, key, priority)
        if priority > _MAX_PRIORITY:
            raise InvalidRequestError(
                f"table {table.name!r}: priority {priority} (valid: to {_MAX_PRIORITY})"
            )
        value, mask = bytearray(self.key_size_bytes), bytearray(self.key_size_bytes)
        low, high = bytearray(self.key_size_bytes), bytearray(self.key_size_bytes)
        rank = priority if table.needs_priority else 0
        for field, match in zip(self._fields, key, strict=True):
            if isinstance(match, RangeMatch):
                low[field.place] = match.low.to_bytes(field.size_bytes, "big")
                high[field.place] = match.high.to_bytes(field.size_bytes, "big")
                continue
            value[field.place] = match.value.to_bytes(field.size_bytes, "big")
            if isinstance(match, ExactMatch):
                mask[field.place] = field.all_ones
            elif isinstance(match, TernaryMatch):
                mask[field.place] = match.mask.to_bytes(field.size_bytes, "big")
            else:
                ones = (1 << field.width_bits) - 1
                significant = ones ^ ones >> match.prefix_length
                mask[field.place] = significant.to_bytes(field.size_bytes, "big")
                if table.kind is MatchKind.LPM:
                    rank = match.prefix_length  # the longest prefix wins
        if not self._has_ranges:
            return bytes(value), bytes(mask), b"", b"", rank
        return bytes(value), bytes(mask), bytes(low), bytes(high), rank

    def decode_key(self, value: bytes, mask: bytes, low: bytes, high: bytes) -> TableKey:
        """The key of an entry."""
        return tuple(field.decode(value, mask, low, high) for field in self._fields)

    def decode_entry(
        self, value: bytes, mask: bytes, low: bytes, high: bytes, rank: int, *action: Any
    ) -> TableEntry:
        """The entry that C++ gave."""
        return self.entry(
            self.decode_key(value, mask, low, high), rank if self.table.needs_priority else 0, *action
        )

    # ---- actions

    def encode_action(self, action: TableAction) -> Binding:
        """The binding of an entry. InvalidRequestError if it does not fit the table."""
        if isinstance(action, ActionCall) and self.table.type is TableType.SIMPLE:
            found = self._layouts.get(action.action)
            if found is None or len(action.arguments) != len(found[1].widths_bits):
                check_call(f"table {self.table.name!r}", self.table.actions, action)
                raise AssertionError("check_call raises")
            program_action, layout = found
            for argument, width_bits in zip(action.arguments, layout.widths_bits, strict=True):
                if not 0 <= argument < 1 << width_bits:
                    check_call(f"table {self.table.name!r}", self.table.actions, action)
            return ACTION, program_action.id, layout.pack(action.arguments)
        check_table_action(self.table, action)
        if isinstance(action, MemberRef):
            return MEMBER, checked_id("member", action.member_id), b""
        assert isinstance(action, GroupRef)
        return GROUP, checked_id("group", action.group_id), b""

    def entry(
        self, key: TableKey, priority: int, kind: int, number: int, data: bytes, idle_timeout_ns: int
    ) -> TableEntry:
        """An entry with the action that C++ gave."""
        action: TableAction
        if kind == ACTION:
            name, layout = self._by_id[number]
            action = ActionCall(name, layout.unpack(data))
        else:
            action = MemberRef(number) if kind == MEMBER else GroupRef(number)
        return TableEntry(key, action, priority, idle_timeout_ns)
