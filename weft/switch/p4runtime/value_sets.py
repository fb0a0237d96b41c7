"""Parser value sets (P4Runtime §9.6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from finsy.proto import p4r

from weft.switch.backend import ExactMatch, LpmMatch, Match, RangeMatch, SwitchBackend, TableKey, TernaryMatch
from weft.switch.p4runtime.errors import (
    ALREADY_EXISTS,
    RESOURCE_EXHAUSTED,
    RequestError,
    place,
    require_modify,
)
from weft.switch.p4runtime.matches import KeyDecoder, encode_key
from weft.switch.p4runtime.pipeline import BoundField, Pipeline, lookup

MAX_EXPANSION = 4096
"""Most (value, mask) pairs to which one member may expand."""


class ValueSets:
    """All value sets of a device."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._members: dict[int, list[TableKey]] = {number: [] for number in pipeline.value_sets}

    def write(self, update_type: int, message: p4r.ValueSetEntry) -> None:
        """Replace the members of a value set."""
        require_modify(update_type, "a value set entry")
        value_set = lookup(self._pipeline.value_sets, message.value_set_id, "value set")
        with place(f"value set {value_set.name!r}"):
            if len(message.members) > value_set.size:
                raise RequestError(
                    RESOURCE_EXHAUSTED,
                    f"{len(message.members)} members are more than its size {value_set.size}",
                )
            decoder = KeyDecoder(value_set.fields)
            keys: list[TableKey] = []
            for index, member in enumerate(message.members):
                with place(f"member {index}"):
                    key = decoder.decode(member.match)
                    if key in keys:
                        raise RequestError(ALREADY_EXISTS, "the member is listed twice")
                    keys.append(key)
            packed = [each for key in keys for each in _pack(value_set.fields, key)]
            self._backend.value_set_write(value_set.name, packed)
            self._members[message.value_set_id] = keys

    def read(self, query: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
        """Yield the value set with the query's id; all for 0."""
        sets = self._pipeline.value_sets
        selected = sets.values() if query.value_set_id == 0 else [lookup(sets, query.value_set_id, "value set")]
        for value_set in selected:
            entry = p4r.ValueSetEntry(value_set_id=value_set.id)
            for key in self._members[value_set.id]:
                entry.members.add().match.extend(encode_key(value_set.fields, key))
            yield entry


def _pack(fields: Sequence[BoundField], key: TableKey) -> list[tuple[int, int]]:
    """Return values and masks laid out like a parser transition's: each field padded to whole bytes.

    The switch has no ranges in value sets, so a range expands to prefixes, and several ranges to all their
    combinations.
    """
    choices_of_fields = [_values_and_masks(match, field.width_bits) for field, match in zip(fields, key, strict=True)]
    if math.prod(map(len, choices_of_fields)) > MAX_EXPANSION:
        raise RequestError(RESOURCE_EXHAUSTED, f"its ranges make more than {MAX_EXPANSION} combinations of prefixes")
    packed = []
    for combination in itertools.product(*choices_of_fields):
        packed_value = packed_mask = 0
        for field, (value, mask) in zip(fields, combination, strict=True):
            padded_bits = (field.width_bits + 7) // 8 * 8
            packed_value = packed_value << padded_bits | value
            packed_mask = packed_mask << padded_bits | mask
        packed.append((packed_value, packed_mask))
    return packed


def _values_and_masks(match: Match, width_bits: int) -> list[tuple[int, int]]:
    ones = (1 << width_bits) - 1
    match match:
        case ExactMatch(value):
            return [(value, ones)]
        case TernaryMatch(value, mask):
            return [(value, mask)]
        case LpmMatch(value, length):
            return [(value, ones ^ ones >> length)]
        case RangeMatch(low, high):
            return list(prefixes(low, high, width_bits))


def prefixes(low: int, high: int, width_bits: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest (value, mask) prefixes that together match `low` to `high`, both included."""
    ones = (1 << width_bits) - 1
    while low <= high:
        size = low & -low or 1 << width_bits  # the largest aligned block that starts here
        while low + size - 1 > high:
            size >>= 1
        yield low, ones & ~(size - 1)
        low += size
