"""Converts a table's keys and actions to C++'s form and back; prepared once per program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.switch import backend
from weft.switch.backend.checks import MATCH_TYPES, check_call, check_key, check_table_action
from weft.switch.bmv2json import KeyField, MatchKind, Program, Table, TableType
from weft.switch.lowering.layout import (
    bytes_for,
    key_bytes,
    key_offsets,
)
from weft.switch.native.bindings import ACTION, GROUP, MEMBER, Binding, CalledActions, checked_id

NativeKey: TypeAlias = tuple[bytes, bytes, bytes, bytes, int]
"""Value, mask, low, high and priority; low and high are empty for tables without range fields."""

_MAX_PRIORITY = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Field:
    """A key field and its bytes in the key."""

    kind: MatchKind
    match_type: type[backend.Match]
    width_bits: int
    ones: int
    place: slice
    shift_bits: int
    """Position of the field's last bit in the key as one number."""

    def decode(self, value: bytes, mask: bytes, low: bytes, high: bytes) -> backend.Match:
        """The match in a native key."""
        if self.kind is MatchKind.RANGE:
            bounds = (int.from_bytes(bound[self.place], "big") for bound in (low, high))
            return backend.RangeMatch(*bounds)
        number = int.from_bytes(value[self.place], "big")
        if self.kind is MatchKind.LPM:
            return backend.LpmMatch(number, int.from_bytes(mask[self.place], "big").bit_count())
        if self.kind is MatchKind.TERNARY:
            return backend.TernaryMatch(number, int.from_bytes(mask[self.place], "big"))
        return backend.ExactMatch(number)


def _field(key: KeyField, offset: int, key_size_bytes: int) -> _Field:
    width_bits = key.field.width_bits
    end = offset + bytes_for(width_bits)
    ones, shift_bits = (1 << width_bits) - 1, 8 * (key_size_bytes - end)
    return _Field(key.kind, MATCH_TYPES[key.kind], width_bits, ones, slice(offset, end), shift_bits)


class NativeTable:
    """The encoding of a table's entries, shared by switches that run the same program.

    `index` is the table's number (`Program.table_numbers`); `modifiable` is whether its entries may change.

    `key_size_bytes` is the size of its native keys.
    """

    def __init__(self, table: Table, index: int, *, modifiable: bool) -> None:
        self.table = table
        self.index = index
        self.modifiable = modifiable
        self.key_size_bytes = key_bytes(table)
        pairs = zip(table.key, key_offsets(table), strict=True)
        self._fields = tuple(_field(key, offset, self.key_size_bytes) for key, offset in pairs)
        self._needs_priority = table.needs_priority
        self._ranks_by_prefix = table.kind is MatchKind.LPM
        self._has_ranges = any(field.kind is MatchKind.RANGE for field in table.key)
        self._actions = CalledActions(table.actions)
        self._by_id = self._actions.by_id

    # ---- keys

    def encode_key(self, key: backend.TableKey, priority: int) -> NativeKey:
        """Return the native key. InvalidRequestError names the field that does not fit the table."""
        if priority > _MAX_PRIORITY:
            raise backend.InvalidRequestError(
                f"table {self.table.name!r}: priority {priority}", valid=f"to {_MAX_PRIORITY}"
            )
        value = mask = low = high = 0
        fits = len(key) == len(self._fields) and (priority > 0 or not self._needs_priority)
        rank = priority if self._needs_priority else 0
        for field, match in zip(self._fields, key, strict=False):
            ones, shift = field.ones, field.shift_bits
            fits = fits and type(match) is field.match_type
            if isinstance(match, backend.ExactMatch):
                significant = ones
            elif isinstance(match, backend.TernaryMatch):
                significant = match.mask
                fits = fits and 0 <= significant <= ones
            elif isinstance(match, backend.LpmMatch):
                fits = fits and 0 <= match.prefix_length <= field.width_bits
                significant = ones ^ ones >> match.prefix_length if fits else 0
                if self._ranks_by_prefix:
                    rank = match.prefix_length  # the longest prefix wins
            else:
                fits = fits and 0 <= match.low <= match.high <= ones
                low |= match.low << shift
                high |= match.high << shift
                continue
            fits = fits and not match.value & ~significant
            value |= match.value << shift
            mask |= significant << shift
        if not fits:
            check_key(self.table, key, priority)
            raise AssertionError("check_key raises")
        size = self.key_size_bytes
        if not self._has_ranges:
            return value.to_bytes(size, "big"), mask.to_bytes(size, "big"), b"", b"", rank
        return (
            value.to_bytes(size, "big"),
            mask.to_bytes(size, "big"),
            low.to_bytes(size, "big"),
            high.to_bytes(size, "big"),
            rank,
        )

    def decode_key(self, value: bytes, mask: bytes, low: bytes, high: bytes) -> backend.TableKey:
        """The key of an entry."""
        return tuple(field.decode(value, mask, low, high) for field in self._fields)

    def decode_entry(
        self, value: bytes, mask: bytes, low: bytes, high: bytes, rank: int, *action: Any
    ) -> backend.TableEntry:
        """Convert an entry from C++'s form."""
        return self.entry(self.decode_key(value, mask, low, high), rank if self._needs_priority else 0, *action)

    # ---- actions

    def encode_action(self, action: backend.TableAction) -> Binding:
        """Return the binding of an entry's action. Raises InvalidRequestError if it does not fit the table."""
        if isinstance(action, backend.ActionCall) and self.table.type is TableType.SIMPLE:
            packed = self._actions.packed(action)
            if packed is None:
                check_call(f"table {self.table.name!r}", self.table.actions, action)
                raise AssertionError("check_call raises")
            return ACTION, *packed
        check_table_action(self.table, action)
        if isinstance(action, backend.MemberRef):
            return MEMBER, checked_id("member", action.member_id), b""
        assert isinstance(action, backend.GroupRef)
        return GROUP, checked_id("group", action.group_id), b""

    def entry(
        self, key: backend.TableKey, priority: int, kind: int, number: int, data: bytes, idle_timeout_ns: int
    ) -> backend.TableEntry:
        """Return an entry with an action in C++'s form."""
        action: backend.TableAction
        if kind == ACTION:
            name, layout = self._by_id[number]
            action = backend.ActionCall(name, layout.unpack(data))
        else:
            action = backend.MemberRef(number) if kind == MEMBER else backend.GroupRef(number)
        return backend.TableEntry(key, action, priority, idle_timeout_ns)


_tables: dict[tuple[str, frozenset[str]], dict[str, NativeTable]] = {}
_MAX_PROGRAMS = 16


def tables_of(program: Program, preinitialized: frozenset[str]) -> dict[str, NativeTable]:
    """Return a program's tables by name; `preinitialized` ones may change although the program lists their entries."""
    key = program.content_hash, preinitialized
    found = _tables.get(key)
    if found is None:
        found = {
            name: NativeTable(
                table,
                program.table_numbers[name],
                modifiable=not table.immutable or table.name in preinitialized,
            )
            for name, table in program.tables.items()
        }
        if len(_tables) >= _MAX_PROGRAMS:
            _tables.clear()
        _tables[key] = found
    return found
