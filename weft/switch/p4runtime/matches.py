"""Match fields: P4Runtime's FieldMatch to the backend's matches and back (§9.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from finsy.proto import p4i, p4r

from weft.switch.backend import ExactMatch, LpmMatch, Match, RangeMatch, TableKey, TernaryMatch
from weft.switch.p4runtime.errors import RequestError, choices, invalid
from weft.switch.p4runtime.pipeline import BoundField
from weft.switch.p4runtime.translation import Translation
from weft.switch.p4runtime.values import decode, encode

_EXACT, _LPM, _TERNARY, _RANGE = (
    p4i.MatchField.EXACT,
    p4i.MatchField.LPM,
    p4i.MatchField.TERNARY,
    p4i.MatchField.RANGE,
)
_ONEOF_NAMES: dict[int, str] = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


class KeyDecoder:
    """Reads the keys of one table or value set."""

    def __init__(self, fields: Sequence[BoundField]) -> None:
        self._fields = fields
        self._places = {field.id: index for index, field in enumerate(fields)}
        self._kinds = tuple(_ONEOF_NAMES[field.match_type] for field in fields)
        self._nothing_given = tuple(_wildcard(field) for field in fields)

    def decode(self, matches: Iterable[p4r.FieldMatch]) -> TableKey:
        """Return the backend's key. Omitted fields match everything; exact fields must not be omitted."""
        key = list(self._nothing_given)
        given = 0
        for match in matches:
            index = self._places.get(match.field_id, -1)
            if index < 0:
                valid = choices(f"{field.id} ({field.name})" for field in self._fields)
                raise invalid(f"unknown match field id {match.field_id}", valid=valid)
            field = self._fields[index]
            if given >> index & 1:
                raise invalid(f"match field {field.name!r} is given twice")
            given |= 1 << index
            if match.WhichOneof("field_match_type") != self._kinds[index]:
                got = match.WhichOneof("field_match_type") or "nothing"
                raise invalid(f"match field {field.name!r}: expected match type {self._kinds[index]!r}, got {got!r}")
            try:
                key[index] = _decode_given(field, match)
            except RequestError as error:
                raise RequestError(error.code, error, place=f"match field {field.name!r}") from error
        return self._complete(key)

    def _complete(self, key: list[Match | None]) -> TableKey:
        complete = tuple([match for match in key if match is not None])
        if len(complete) < len(key):
            name = self._fields[key.index(None)].name
            raise invalid(f"match field {name!r}: an exact match is missing")
        return complete


def _wildcard(field: BoundField) -> Match | None:
    match field.match_type:
        case p4i.MatchField.LPM:
            return LpmMatch(0, 0)
        case p4i.MatchField.TERNARY | p4i.MatchField.OPTIONAL:
            return TernaryMatch(0, 0)
        case p4i.MatchField.RANGE:
            return RangeMatch(0, (1 << field.width_bits) - 1)
    return None


def _decode_given(field: BoundField, match: p4r.FieldMatch) -> Match:
    width_bits = field.width_bits
    if field.translation is not None:
        return _decode_translated(field, field.translation, match)
    kind = field.match_type
    if kind == _EXACT:
        return ExactMatch(decode(match.exact.value, width_bits))
    if kind == _LPM:
        return _decode_lpm(match.lpm, width_bits)
    if kind == _TERNARY:
        return _decode_ternary(match.ternary, width_bits)
    if kind == _RANGE:
        return _decode_range(match.range, width_bits)
    return TernaryMatch(decode(match.optional.value, width_bits), (1 << width_bits) - 1)


def _decode_translated(field: BoundField, translation: Translation, match: p4r.FieldMatch) -> Match:
    """Decode a match of a translated type, which matches as a whole: masks cannot be translated (§18.1.3)."""
    ones = (1 << field.width_bits) - 1
    match field.match_type:
        case p4i.MatchField.OPTIONAL:
            return TernaryMatch(translation.decode(match.optional.value), ones)
        case p4i.MatchField.TERNARY:
            if translation.covers_all(match.ternary.mask):
                return TernaryMatch(translation.decode(match.ternary.value), ones)
        case p4i.MatchField.LPM:
            prefix = match.lpm.prefix_len
            if prefix > 0 and translation.covers_all(_ones_before(prefix, translation)):
                return LpmMatch(translation.decode(match.lpm.value), field.width_bits)
        case p4i.MatchField.RANGE:
            if match.range.low == match.range.high:
                value = translation.decode(match.range.low)
                return RangeMatch(value, value)
        case _:
            return ExactMatch(translation.decode(match.exact.value))
    raise invalid("a value of a translated type is matched as a whole, or the field is left out")


def _ones_before(prefix: int, translation: Translation) -> bytes:
    bits = int.from_bytes(translation.full_mask(), "big").bit_length()
    return encode((1 << bits) - 1 if prefix == bits else 0)


def _decode_lpm(match: p4r.FieldMatch.LPM, width_bits: int) -> LpmMatch:
    value = decode(match.value, width_bits)
    if not 1 <= match.prefix_len <= width_bits:
        hint = "; leave the field out to match everything" if match.prefix_len == 0 else ""
        raise invalid(f"prefix length {match.prefix_len} is out of range", valid=f"1 to {width_bits}{hint}")
    if value & ((1 << (width_bits - match.prefix_len)) - 1):
        raise invalid(f"value {value:#x} has bits set behind its prefix of {match.prefix_len} bits")
    return LpmMatch(value, match.prefix_len)


def _decode_ternary(match: p4r.FieldMatch.Ternary, width_bits: int) -> TernaryMatch:
    value, mask = decode(match.value, width_bits), decode(match.mask, width_bits)
    if mask == 0:
        raise invalid("mask 0 matches everything: leave the field out instead")
    if value & ~mask:
        raise invalid(f"value {value:#x} has bits set outside its mask {mask:#x}")
    return TernaryMatch(value, mask)


def _decode_range(match: p4r.FieldMatch.Range, width_bits: int) -> RangeMatch:
    low, high = decode(match.low, width_bits), decode(match.high, width_bits)
    if low > high:
        raise invalid(f"range starts at {low:#x}, above its end {high:#x}")
    if low == 0 and high == (1 << width_bits) - 1:
        raise invalid("the range matches everything: leave the field out instead")
    return RangeMatch(low, high)


def encode_key(fields: Sequence[BoundField], key: TableKey) -> list[p4r.FieldMatch]:
    """Return the canonical FieldMatches of a key: shortest strings, without fields that match everything."""
    encoded = []
    for field, match in zip(fields, key, strict=True):
        result = p4r.FieldMatch(field_id=field.id)
        if _encode_field(field, match, result):
            encoded.append(result)
    return encoded


def _encode_field(field: BoundField, match: Match, result: p4r.FieldMatch) -> bool:
    if field.translation is not None:
        return _encode_translated(field, field.translation, match, result)
    match match:
        case ExactMatch(value):
            result.exact.value = encode(value)
        case LpmMatch(value, prefix_length):
            result.lpm.value, result.lpm.prefix_len = encode(value), prefix_length
            return prefix_length > 0
        case TernaryMatch(value, mask) if field.match_type == p4i.MatchField.OPTIONAL:
            result.optional.value = encode(value)
            return mask > 0
        case TernaryMatch(value, mask):
            result.ternary.value, result.ternary.mask = encode(value), encode(mask)
            return mask > 0
        case RangeMatch(low, high):
            result.range.low, result.range.high = encode(low), encode(high)
            return not (low == 0 and high == (1 << field.width_bits) - 1)
    return True


def _encode_translated(field: BoundField, translation: Translation, match: Match, result: p4r.FieldMatch) -> bool:
    match match:
        case ExactMatch(value):
            result.exact.value = translation.encode(value)
        case LpmMatch(value, prefix_length):
            bits = int.from_bytes(translation.full_mask(), "big").bit_length()
            result.lpm.value, result.lpm.prefix_len = translation.encode(value), bits
            return prefix_length > 0
        case TernaryMatch(value, mask) if field.match_type == p4i.MatchField.OPTIONAL:
            result.optional.value = translation.encode(value)
            return mask > 0
        case TernaryMatch(value, mask):
            result.ternary.value, result.ternary.mask = translation.encode(value), translation.full_mask()
            return mask > 0
        case RangeMatch(low, high):
            result.range.low, result.range.high = translation.encode(low), translation.encode(high)
            return not (low == 0 and high == (1 << field.width_bits) - 1)
    return True
