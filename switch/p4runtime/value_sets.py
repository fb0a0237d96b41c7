"""Parser value sets (P4Runtime §9.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4i, p4r

from switch.backend import ExactMatch, LpmMatch, Match, SwitchBackend, TableKey, TernaryMatch
from switch.p4runtime.errors import (
    ALREADY_EXISTS,
    RESOURCE_EXHAUSTED,
    UNIMPLEMENTED,
    RequestError,
    place,
)
from switch.p4runtime.matches import decode_key, encode_key
from switch.p4runtime.pipeline import BoundField, Pipeline, lookup
from switch.p4runtime.updates import require_modify


class ValueSets:
    """All value sets of a device."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._members: dict[int, list[TableKey]] = {number: [] for number in pipeline.value_sets}

    def write(self, update_type: int, message: p4r.ValueSetEntry) -> None:
        """Replace the members of a value set."""
        require_modify(update_type, "a value set entry")
        info = lookup(self._pipeline.value_sets, message.value_set_id, "value set")
        with place(f"value set {info.preamble.name!r}"):
            if len(message.members) > info.size:
                raise RequestError(
                    RESOURCE_EXHAUSTED, f"{len(message.members)} members are more than its size {info.size}"
                )
            fields = _fields(info)
            keys: list[TableKey] = []
            for index, member in enumerate(message.members):
                with place(f"member {index}"):
                    key = decode_key(fields, member.match)
                    if key in keys:
                        raise RequestError(ALREADY_EXISTS, "the member is listed twice")
                    keys.append(key)
            packed = [_pack(fields, key) for key in keys]
            self._backend.value_set_write(info.preamble.name, packed)
            self._members[message.value_set_id] = keys

    def read(self, query: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
        """The value set with the query's id; all for 0."""
        sets = self._pipeline.value_sets
        selected = (
            sets.values() if query.value_set_id == 0 else [lookup(sets, query.value_set_id, "value set")]
        )
        for info in selected:
            fields = _fields(info)
            entry = p4r.ValueSetEntry(value_set_id=info.preamble.id)
            for key in self._members[info.preamble.id]:
                entry.members.add().match.extend(encode_key(fields, key))
            yield entry


def _fields(info: p4i.ValueSet) -> list[BoundField]:
    return [BoundField(field.id, field.name, field.match_type, field.bitwidth) for field in info.match]


def _pack(fields: Sequence[BoundField], key: TableKey) -> tuple[int, int]:
    """Value and mask laid out as a parser transition's: each field padded to whole bytes."""
    packed_value = packed_mask = 0
    for field, match in zip(fields, key, strict=True):
        padded_bits = (field.width_bits + 7) // 8 * 8
        value, mask = _value_and_mask(match, field.width_bits)
        packed_value = packed_value << padded_bits | value
        packed_mask = packed_mask << padded_bits | mask
    return packed_value, packed_mask


def _value_and_mask(match: Match, width_bits: int) -> tuple[int, int]:
    match match:
        case ExactMatch(value):
            return value, (1 << width_bits) - 1
        case TernaryMatch(value, mask):
            return value, mask
        case LpmMatch(value, length):
            return value, (1 << width_bits) - (1 << (width_bits - length))
    raise RequestError(UNIMPLEMENTED, "range matches are not supported in value sets")
