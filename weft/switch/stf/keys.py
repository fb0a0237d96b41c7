"""Makes keys of table entries from a script's values for some key fields."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.backend import ExactMatch, LpmMatch, Match, RangeMatch, TableKey, TernaryMatch
from weft.switch.bmv2json import KeyField, MatchKind, Table
from weft.switch.stf.errors import StfStatementError
from weft.switch.stf.names import canonical_key_name, resolve
from weft.switch.stf.statements import KeyValue


def table_key(table: Table, given: Sequence[tuple[str, KeyValue]]) -> TableKey:
    """Return the key of an entry; omitted fields match anything if their kind allows it.

    Raises StfStatementError for unknown fields, or a value that does not fit its field.
    """
    fields = {canonical_key_name(field.name): index for index, field in enumerate(table.key)}
    values: dict[int, KeyValue] = {}
    for name, value in given:
        index = resolve(fields, canonical_key_name(name), f"key field of table '{table.name}':")
        if index in values:
            raise StfStatementError(f"key field '{table.key[index].name}' is given twice")
        values[index] = value
    return tuple(
        _match(field, values[index]) if index in values else _anything(table, field)
        for index, field in enumerate(table.key)
    )


def _anything(table: Table, field: KeyField) -> Match:
    match field.kind:
        case MatchKind.LPM:
            return LpmMatch(0, 0)
        case MatchKind.TERNARY:
            return TernaryMatch(0, 0)
        case MatchKind.RANGE:
            return RangeMatch(0, _ones(field))
    raise StfStatementError(f"table '{table.name}': its key field '{field.name}' is exact and needs a value")


def _match(field: KeyField, given: KeyValue) -> Match:
    match field.kind:
        case MatchKind.LPM:
            return _lpm(field, given)
        case MatchKind.TERNARY:
            return _ternary(field, given)
        case MatchKind.RANGE:
            _refuse_parts(field, given, "wildcard_mask", "prefix_length", "mask")
            return RangeMatch(given.value, given.value if given.high is None else given.high)
    _refuse_parts(field, given, "wildcard_mask", "prefix_length", "mask", "high")
    return ExactMatch(given.value)


def _lpm(field: KeyField, given: KeyValue) -> LpmMatch:
    _refuse_parts(field, given, "mask", "high")
    width = field.field.width_bits
    length = width if given.prefix_length is None else given.prefix_length
    if given.wildcard_mask:
        if given.wildcard_mask & (given.wildcard_mask + 1):
            raise _misfit(field, given, "wildcards of a prefix stand at its end")
        length = width - given.wildcard_mask.bit_length()
    if not 0 <= length <= width:
        raise _misfit(field, given, f"the field has {width} bits")
    significant = _ones(field) ^ (_ones(field) >> length)
    return LpmMatch(given.value & significant | given.value & ~_ones(field), length)


def _ternary(field: KeyField, given: KeyValue) -> TernaryMatch:
    _refuse_parts(field, given, "prefix_length", "high")
    # A digit has up to four bits, so the first may extend beyond a field of, say, 9 bits.
    if given.wildcard_mask.bit_length() >= field.field.width_bits + 4:
        raise _misfit(field, given, f"the field has {field.field.width_bits} bits")
    mask = _ones(field) & ~given.wildcard_mask if given.mask is None else given.mask
    return TernaryMatch(given.value & mask | given.value & ~_ones(field), mask)


def _refuse_parts(field: KeyField, given: KeyValue, *parts: str) -> None:
    if any(getattr(given, part) not in (None, 0) for part in parts):
        raise _misfit(field, given, f"it is matched as {field.kind.value}")


def _misfit(field: KeyField, given: KeyValue, why: str) -> StfStatementError:
    return StfStatementError(f"key field '{field.name}' cannot be {given.text}: {why}")


def _ones(field: KeyField) -> int:
    return (1 << field.field.width_bits) - 1
