"""Tables with so many masks that entries share tuples: native switch and oracle must still find the same entry."""

from __future__ import annotations

import json
import random

import pytest
from native_twin import Twin
from test_native_tables import FULL, WIDTH, frame, table_document

from weft.switch.backend import ActionCall, LpmMatch, Match, RangeMatch, TableEntry, TernaryMatch

ENTRIES = 400
PACKETS = 300
KINDS = [("ternary", "ternary"), ("range", "ternary"), ("range",), ("ternary", "lpm", "range")]


def random_match(kind: str, rng: random.Random) -> Match:
    """Prefixes, scattered bits, wide and narrow ranges."""
    value = rng.randrange(FULL + 1)
    if kind == "range":
        return RangeMatch(value, min(FULL, value + rng.choice((0, 3, 100, FULL))))
    length = rng.randint(0, WIDTH)
    prefix = FULL ^ FULL >> length
    if kind == "lpm":
        return LpmMatch(value & prefix, length)
    mask = prefix if rng.random() < 0.7 else rng.randrange(FULL + 1)
    return TernaryMatch(value & mask, mask)


def near(match: Match, rng: random.Random) -> int:
    """A value that matches, or occasionally one next to it."""
    if isinstance(match, RangeMatch):
        value = rng.randint(match.low, match.high)
    elif isinstance(match, LpmMatch):
        value = match.value | rng.randrange(FULL + 1) & FULL >> match.prefix_length
    else:
        assert isinstance(match, TernaryMatch)
        value = match.value | rng.randrange(FULL + 1) & ~match.mask
    return value ^ (rng.random() < 0.1) & FULL


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_many_masks(kinds: tuple[str, ...]) -> None:
    rng = random.Random(str(kinds))
    twin = Twin(json.dumps(table_document(kinds)).encode())
    entries: list[TableEntry] = []
    for priority in rng.sample(range(1, 10 * ENTRIES), ENTRIES):
        key = tuple(random_match(kind, rng) for kind in kinds)
        entries.append(TableEntry(key, ActionCall("to_port", (priority % 500,)), priority))
        twin.both(lambda switch: switch.table_insert("t", entries[-1]))

    def compare() -> None:
        for _ in range(PACKETS):
            twin.process(1, frame([near(match, rng) for match in rng.choice(entries).key]))

    compare()
    rng.shuffle(entries)
    while len(entries) > ENTRIES // 4:  # back to few masks, by a way that empties tuples
        gone = entries.pop()
        twin.native.table_delete("t", gone.key, gone.priority)
        twin.oracle.table_delete("t", gone.key, gone.priority)
    compare()
    listed = {(entry.key, entry.priority) for entry in twin.native.table_entries("t")}
    assert listed == {(entry.key, entry.priority) for entry in entries}
    changed = entries[0]
    entry = TableEntry(changed.key, ActionCall("to_port", (501,)), changed.priority)
    twin.both(lambda switch: switch.table_modify("t", entry))
    compare()
