"""Tables of the native switch: every match kind against the oracle, sizes, errors, profiles."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_builder import (
    Json,
    action,
    call,
    extract,
    field,
    key,
    param,
    program,
    state,
    std,
    table,
    transition,
)
from native_twin import Twin
from router_program import router_document

from tests.refusals import refused
from weft.switch.backend import (
    ActionCall,
    CapacityExceededError,
    EntryExistsError,
    EntryNotFoundError,
    ExactMatch,
    GroupMember,
    GroupRef,
    InvalidRequestError,
    LpmMatch,
    Match,
    MemberRef,
    NotReadyError,
    RangeMatch,
    TableEntry,
    TableKey,
    TernaryMatch,
    UnsupportedProgramError,
)
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch

WIDTH = 12
FULL = (1 << WIDTH) - 1


def table_document(kinds: tuple[str, ...]) -> Json:
    """A program with one table over 12-bit fields of a header, whose action sets the egress port."""
    fields = [(f"k{i}", WIDTH) for i in range(len(kinds))]
    padding = -len(kinds) * WIDTH % 8
    headers = {"keys": fields + ([("pad", padding)] if padding else [])}
    to_port = action("to_port", 1, [("port", 9)], call("assign", std("egress_spec"), param(0)))
    none = action("none", 2, [])
    keys = [key(kind, "keys", f"k{i}") for i, kind in enumerate(kinds)]
    ingress = {"init_table": "t", "tables": [table("t", 1, keys, [to_port, none])]}
    states = [state("start", 0, [extract("keys")], [], [transition(None, None)])]
    return program(headers, [("unused", 8)], states, [to_port, none], ingress)


def frame(values: list[int]) -> bytes:
    bits = 0
    for value in values:
        bits = bits << WIDTH | value
    size = (len(values) * WIDTH + 7) // 8
    return (bits << size * 8 - len(values) * WIDTH).to_bytes(size, "big")


SMALL = st.sampled_from([0, 1, 2, 3, 0x7FF, 0x800, 0xFFE, FULL]) | st.integers(0, FULL)


def _match(kind: str) -> st.SearchStrategy[Match]:
    if kind == "exact":
        return st.builds(ExactMatch, SMALL)
    if kind == "lpm":
        return st.builds(lambda v, n: LpmMatch(v & (FULL ^ FULL >> n), n), SMALL, st.integers(0, WIDTH))
    if kind == "ternary":
        masks = st.sampled_from([0, FULL, 0xF00, 0x00F]) | st.integers(0, FULL)
        return st.builds(lambda v, m: TernaryMatch(v & m, m), SMALL, masks)
    return st.tuples(SMALL, SMALL).map(lambda pair: RangeMatch(min(pair), max(pair)))


KINDS = [("exact", "exact"), ("exact", "lpm"), ("ternary", "exact", "lpm"), ("range", "ternary"), ("lpm",)]
TWINS = {kinds: Twin(table_document(kinds)) for kinds in KINDS}


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(KINDS), st.data())
def test_lookup_among_random_entries(kinds: tuple[str, ...], data: st.DataObject) -> None:
    twin = TWINS[kinds]
    twin.both(lambda switch: switch.load(twin.program))
    needs_priority = {"ternary", "range"} & set(kinds)
    # Different priorities: which of two equal ones wins is not specified.
    priorities = data.draw(st.permutations(range(1, 13)))
    installed: list[TableEntry] = []
    for port, priority in enumerate(priorities):
        match = tuple(data.draw(_match(kind)) for kind in kinds)
        entry = TableEntry(match, ActionCall("to_port", (port + 1,)), priority if needs_priority else 0)
        if any(other.key == match for other in installed):
            continue
        twin.both(lambda switch, entry=entry: switch.table_insert("t", entry))
        installed.append(entry)
    for entry in installed[::3]:
        twin.both(lambda switch, entry=entry: switch.table_delete("t", entry.key, entry.priority))
    for _ in range(8):
        twin.process(1, frame([data.draw(SMALL) for _ in kinds]))
    for entry in installed:
        low = [match.low if isinstance(match, RangeMatch) else match.value for match in entry.key]
        twin.process(1, frame(low))


def test_long_prefixes_before_many_short_ones() -> None:
    """Most keys are in none of the tuples of long prefixes, which a filter says of them; the short ones have many."""
    rng = random.Random(1)
    twin = TWINS["lpm",]
    twin.both(lambda switch: switch.load(twin.program))

    def entry(prefix_length: int) -> TableEntry:
        value = rng.randrange(FULL + 1) & (FULL ^ FULL >> prefix_length)
        return TableEntry((LpmMatch(value, prefix_length),), ActionCall("to_port", (rng.randrange(1, 500),)), 0)

    entries: dict[TableKey, TableEntry] = {}
    for prefix_length, count in ((12, 150), (9, 40), (7, 60), (3, 4)):
        for new in (entry(prefix_length) for _ in range(count)):
            if entries.setdefault(new.key, new) is new:
                twin.both(lambda switch, new=new: switch.table_insert("t", new))
    for deleted in [None, *rng.sample(list(entries.values()), 60)]:
        if deleted is not None:
            twin.both(lambda switch, deleted=deleted: switch.table_delete("t", deleted.key, 0))
        for _ in range(300 if deleted is None else 10):
            twin.process(1, frame([rng.randrange(FULL + 1)]))


@pytest.fixture
def switch() -> NativeSwitch:
    made = NativeSwitch()
    made.load(load_program(router_document()))
    return made


def test_many_entries_are_all_found_and_all_removed(switch: NativeSwitch) -> None:
    switch.load(load_program(json.dumps(table_document(("exact", "exact"))).encode()))
    keys = [(ExactMatch(i % 64), ExactMatch(i * 7 % 4096)) for i in range(1024)]
    for port, match in enumerate(keys):
        switch.table_insert("t", TableEntry(match, ActionCall("to_port", (port % 500,))))
    for port, (first, second) in enumerate(keys):
        assert switch.process(1, frame([first.value, second.value]))[0][0] == port % 500
    with refused(CapacityExceededError, problem="1024"):
        switch.table_insert("t", TableEntry((ExactMatch(77), ExactMatch(1)), ActionCall("to_port", (1,))))
    for index, match in enumerate(keys):
        if index % 2:
            switch.table_delete("t", match, 0)
    for index, (first, second) in enumerate(keys):
        expected = 0 if index % 2 else index % 500
        assert switch.process(1, frame([first.value, second.value]))[0][0] == expected


def with_constant_entries(*values: int) -> Program:
    """The program with one exact key; for the key 0x10 + n its own entry, number n, sends to port n."""
    document = table_document(("exact",))
    (own,) = (each for each in document["pipelines"][0]["tables"] if each["name"] == "t")
    own["entries"] = [
        {
            "match_key": [{"match_type": "exact", "key": hex(value)}],
            "action_entry": {"action_id": 1, "action_data": [hex(value & 0xF)]},
            "priority": number,
        }
        for number, value in enumerate(values, start=1)
    ]
    return load_program(json.dumps(document).encode())


def test_switches_of_one_program_share_its_entries_but_not_their_own() -> None:
    loaded = with_constant_entries(0x11, 0x12)
    changed, other = NativeSwitch(), NativeSwitch()
    for made in (changed, other):
        made.load(loaded, preinitialized=["t"])
    changed.table_delete("t", (ExactMatch(0x11),), 0)
    changed.table_set_default("t", ActionCall("to_port", (9,)))
    assert [changed.process(1, frame([value]))[0][0] for value in (0x11, 0x12, 5)] == [9, 2, 9]
    assert [other.process(1, frame([value]))[0][0] for value in (0x11, 0x12, 5)] == [1, 2, 0]
    changed.load(loaded)
    assert [changed.process(1, frame([value]))[0][0] for value in (0x11, 0x12, 5)] == [1, 2, 0]


def test_errors_of_table_writes(switch: NativeSwitch) -> None:
    entry = TableEntry((LpmMatch(0x0A000000, 8),), ActionCall("route", (1, 2)))
    switch.table_insert("routes", entry)
    with pytest.raises(EntryExistsError):
        switch.table_insert("routes", entry)
    with pytest.raises(EntryNotFoundError):
        switch.table_delete("routes", (LpmMatch(0x0B000000, 8),), 0)
    with refused(InvalidRequestError, valid="'acl', 'ecmp', 'police_table', 'routes', 'tbl_send_out', 'tbl_to_cpu'"):
        switch.table_insert("rotues", entry)
    with refused(InvalidRequestError, place="table 'routes', action 'route', parameter 'port'", problem="0x200"):
        switch.table_insert("routes", TableEntry((LpmMatch(0, 0),), ActionCall("route", (512, 2))))
    with pytest.raises(NotReadyError):
        NativeSwitch().table_insert("routes", entry)


def test_members_and_groups_in_use_stay(switch: NativeSwitch) -> None:
    with refused(EntryNotFoundError, problem="member 1"):
        switch.table_insert("ecmp", TableEntry((ExactMatch(1),), MemberRef(1)))
    switch.member_insert("selector", 1, ActionCall("set_port", (1,)))
    with pytest.raises(EntryExistsError):
        switch.member_insert("selector", 1, ActionCall("set_port", (1,)))
    with refused(EntryNotFoundError, problem="member 2"):
        switch.group_insert("selector", 1, [GroupMember(1), GroupMember(2)])
    switch.group_insert("selector", 1, [GroupMember(1)])
    switch.table_insert("ecmp", TableEntry((ExactMatch(1),), GroupRef(1)))
    for delete in (switch.member_delete, switch.group_delete):
        with refused(NotReadyError, problem="in use"):
            delete("selector", 1)
    switch.table_delete("ecmp", (ExactMatch(1),), 0)
    switch.group_delete("selector", 1)
    switch.member_delete("selector", 1)


def test_failed_group_leaves_no_trace(switch: NativeSwitch) -> None:
    with pytest.raises(EntryNotFoundError):
        switch.group_modify("selector", 1, [])
    with refused(InvalidRequestError, valid="1 to 65535", problem="weight"):
        switch.group_insert("selector", 1, [GroupMember(1, 0)])
    switch.group_insert("selector", 1, [])


def test_unsupported_program_leaves_the_old_one_running(switch: NativeSwitch) -> None:
    document = json.loads(router_document())
    document["calculations"][0]["algo"] = "md5"
    with refused(UnsupportedProgramError, problem="md5"):
        switch.load(load_program(json.dumps(document).encode()))
    assert switch.process(510, b"\x03\x80" + b"frame of some length") == [(7, b"frame of some length")]


def test_key_field_of_an_invalid_header_is_zero() -> None:
    document = table_document(("exact",))
    document["parsers"][0]["parse_states"][0]["parser_ops"] = []
    twin = Twin(document)
    entry = TableEntry((ExactMatch(0),), ActionCall("to_port", (3,)))
    twin.both(lambda each: each.table_insert("t", entry))
    assert [port for port, _ in twin.process(1, b"\xff\xff")] == [3]


def test_reading_a_field_of_a_header_that_was_never_valid_gives_zero() -> None:
    read = call("assign", std("egress_spec"), field("keys", "k0"))
    document = table_document(("exact",))
    document["parsers"][0]["parse_states"][0]["parser_ops"] = []
    document["actions"][1]["primitives"] = [read]
    assert [port for port, _ in Twin(document).process(1, b"\xff\xff")] == [0]
