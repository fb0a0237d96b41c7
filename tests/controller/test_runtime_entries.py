"""Entries in the tutorials' schema: how values are written, and what is said of those that are wrong."""

from __future__ import annotations

import contextlib
from typing import Any

import finsy
import pytest
from finsy.proto import p4d, p4i, p4r
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from weft.compiler import compile_artifacts
from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.controller.pipeline import Pipeline
from weft.controller.plain_values import number_of
from weft.controller.runtime_entries import runtime_entries

KINDS = (
    "table_entries", "multicast_group_entries", "clone_session_entries", "action_profile_members",
    "action_profile_groups", "register_entries", "meter_entries", "counter_entries", "value_set_entries",
)  # fmt: skip
KEYS = ("table", "match", "action_name", "address", "replicas", "members", "register", "index", "meter")
P4 = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> address; bit<48> mac; bit<16> port; bit<8> kind; bit<128> address6; }
struct headers_t { h_t h; }
struct pair_t { bit<16> port; @match(ternary) bit<8> kind; }
struct metadata_t { bit<2> colour; }
parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(2) kinds;
    value_set<pair_t>(4) pairs;
    state start { p.extract(hdr.h); transition select(hdr.h.kind) { kinds: accept; default: more; } }
    state more { transition select(hdr.h.port, hdr.h.kind) { pairs: accept; default: accept; } }
}
control V(inout headers_t hdr, inout metadata_t m) { apply {} }
control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    action forward(bit<9> port, bit<48> mac) { s.egress_spec = port; hdr.h.mac = mac; }
    action drop() { mark_to_drop(s); }
    table exact_table {
        key = { hdr.h.mac: exact; hdr.h.kind: exact @name("kind"); }
        actions = { forward; drop; @defaultonly NoAction; }
        support_timeout = true;
    }
    table prefixes { key = { hdr.h.address: lpm; } actions = { forward; drop; } }
    table ranges { key = { hdr.h.port: range; hdr.h.address6: ternary; } actions = { forward; drop; } }
    @max_group_size(16)
    action_selector(HashAlgorithm.crc16, 3, 16) choices;
    action_profile(4) alone;
    direct_meter<bit<2>>(MeterType.bytes) rates;
    register<bit<12>>(4) small;
    register<int<8>>(4) signed;
    register<bool>(4) flags;
    counter(4, CounterType.packets) seen;
    meter(4, MeterType.packets) limits;
    table chosen {
        key = { hdr.h.kind: exact @name("kind"); hdr.h.port: selector; }
        actions = { forward; drop; }
        implementation = choices;
    }
    table shared { key = { hdr.h.kind: optional; } actions = { forward; drop; } implementation = alone; }
    action metered() { rates.read(m.colour); }
    table metered_table { key = { hdr.h.kind: exact; } actions = { metered; } meters = rates; size = 2; }
    table fixed {
        key = { hdr.h.kind: exact; }
        actions = { drop; }
        const entries = { 1: drop(); }
        const default_action = drop();
    }
    apply {
        exact_table.apply(); prefixes.apply(); ranges.apply(); chosen.apply(); shared.apply(); metered_table.apply();
        fixed.apply();
        bit<12> a; small.read(a, 0); small.write(1, a);
        int<8> b; signed.read(b, 0); signed.write(1, b);
        bool c; flags.read(c, 0); flags.write(1, c);
        seen.count(0); limits.execute_meter<bit<2>>(0, m.colour);
    }
}
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control C(inout headers_t hdr, inout metadata_t m) { apply {} }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    source = tmp_path_factory.mktemp("p4") / "own.p4"
    source.write_text(P4, encoding="utf-8")
    return Pipeline(text_format.Parse(compile_artifacts(source).p4info_text, p4i.P4Info()))


def entry(**changes: Any) -> dict[str, Any]:
    found = {
        "table": "I.prefixes",
        "match": {"hdr.h.address": ["10.0.1.0", 24]},
        "action_name": "I.forward",
        "action_params": {"port": 1, "mac": "02:00:00:00:00:01"},
    }
    return {key: value for key, value in (found | changes).items() if value is not None}


def entities(tree: Any, pipeline: Pipeline) -> list[Entity]:
    return list(runtime_entries(tree, pipeline.names).entities.values())


def read(pipeline: Pipeline, **changes: Any) -> finsy.P4TableEntry:
    (found,) = entities({"table_entries": [entry(**changes)]}, pipeline)
    assert isinstance(found, finsy.P4TableEntry)
    pipeline.encoder().entity_set([found])
    assert not pipeline.left_out
    return found


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (["10.0.1.7", 24], (0x0A000100, 24)),
        ("10.0.1.0/24", (0x0A000100, 24)),
        ("10.0.1.1", (0x0A000101, 32)),
        ([0x0A000000, 8], (0x0A000000, 8)),
        (["0x0a000000", 0], (0, 0)),
    ],
)
def test_prefixes(pipeline: Pipeline, value: Any, match: tuple[int, int]) -> None:
    assert read(pipeline, match={"hdr.h.address": value}).match == {"hdr.h.address": match}


def test_exact_ternary_and_range_matches(pipeline: Pipeline) -> None:
    exact = read(pipeline, table="exact_table", match={"mac": "02:00:00:00:00:0a", "kind": [6]}, idle_timeout_ns=5)
    assert exact.match == {"hdr.h.mac": 0x02000000000A, "kind": 6}
    assert exact.idle_timeout_ns == 5
    match = {"port": [1, "0x400"], "address6": "2001:db8::1 &&& 0xffff"}
    ranges = read(pipeline, table="ranges", match=match, priority=3)
    assert ranges.match == {"hdr.h.port": (1, 1024), "hdr.h.address6": (1, 0xFFFF)}
    assert ranges.priority == 3


def test_default_actions(pipeline: Pipeline) -> None:
    found = read(pipeline, match=None, default_action=True, action_name="drop", action_params=None)
    assert found.is_default_action
    assert not found.match


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"table": "I.prefix"}, "unknown table 'I.prefix'; did you mean 'I.prefixes'?"),
        ({"table": None}, "table is missing"),
        ({"match": {"hdr.h.adress": "10.0.1.0"}}, "of I.prefixes; did you mean 'hdr.h.address'?"),
        ({"match": {"address": ["10.0.1.0", 33]}}, "match.address: a prefix of 33 bits (valid: 0 to 32)"),
        ({"match": {"address": ["10.0.1.0", 1, 2]}}, "is not a match of this key (valid: [VALUE, LENGTH])"),
        ({"match": {"address": ["10.0.1", 24]}}, "match.address: '10.0.1' is not a value (valid: a number, 0x…"),
        ({"match": {"address": ["::1:0:0:0", 24]}}, "does not fit 32 bits (valid: 0 to 4294967295)"),
        ({"match": [1]}, "match: must be a mapping of keys to values, is [1]"),
        ({"action_name": "I.foward"}, "unknown action 'I.foward' of I.prefixes; did you mean 'I.forward'?"),
        ({"action_params": {"port": 1}}, "action_params: I.forward needs mac, too"),
        ({"action_params": {"prt": 1}}, "unknown parameter 'prt' of I.forward; did you mean 'port'?"),
        ({"action_params": {"port": 512}}, "action_params.port: 512 does not fit 9 bits (valid: 0 to 511)"),
        ({"idle_timeout_ns": -1}, "-1 is negative (valid: 0 to"),
        ({"priority": -1}, "priority: -1 is negative (valid: 0 to 2147483647)"),
        ({"match": list(range(10**5))}, "match: must be a mapping of keys to values, is [0, 1, 2"),
        ({"priority": 1}, "priority: entries of I.prefixes have none"),
        ({"idle_timeout_ns": 7}, "idle_timeout_ns: table I.prefixes has no support_timeout = true"),
        ({"default_action": True}, "match: a default entry matches what no other does"),
        ({"default_action": "yes"}, "default_action: 'yes' (valid: true, false)"),
        ({"tabel": "x"}, "unknown key 'tabel'; did you mean 'table'?"),
        ({"table": "ranges", "match": {}}, "priority: entries of I.ranges need one"),
        ({"table": "ranges", "match": {"port": [5, 4]}, "priority": 1}, "the range [5, 4] ends before it begins"),
        ({"table": "exact_table", "match": {"kind": 1}}, "match: table I.exact_table needs hdr.h.mac, which"),
    ],
)  # fmt: skip
def test_wrong_table_entries(pipeline: Pipeline, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        runtime_entries({"table_entries": [entry(), entry(**changes)]}, pipeline.names)
    assert str(raised.value).startswith("table_entries[1]: ")
    assert problem in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ([], "a file of entries is a mapping"),
        ({"table_entry": []}, "unknown key 'table_entry'; did you mean 'table_entries'?"),
        ({"table_entries": {}}, "table_entries: must be a list"),
        ({"table_entries": [3]}, "table_entries[0]: an entry of a table is a mapping"),
        ({"multicast_group_entries": [{"multicast_group_id": 0, "replicas": []}]}, "multicast_group_id: 0"),
        ({"multicast_group_entries": [{"multicast_group_id": 1}]}, "replicas is missing"),
        (
            {"clone_session_entries": [{"clone_session_id": 1, "replicas": [{"egress_prt": 1}]}]},
            "clone_session_entries[0]: replicas[0]: unknown key 'egress_prt'; did you mean 'egress_port'?",
        ),
        (
            {"clone_session_entries": [{"clone_session_id": 1, "replicas": [{"egress_port": 1}] * 2}]},
            "replicas[1]: port 1 with instance 0 is there twice",
        ),
    ],
)
def test_wrong_files(pipeline: Pipeline, tree: Any, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        runtime_entries(tree, pipeline.names)
    assert problem in str(raised.value)


def test_groups_and_sessions(pipeline: Pipeline) -> None:
    tree = {
        "target": "bmv2",
        "p4info": "build/own.p4info.txtpb",
        "bmv2_json": "build/own.json",
        "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
        "clone_session_entries": [
            {"clone_session_id": 5, "replicas": [{"egress_port": 2}], "packet_length_bytes": 128}
        ],
    }
    group, session = entities(tree, pipeline)
    assert group == finsy.P4MulticastGroupEntry(1, replicas=[(1, 1)])
    assert session == finsy.P4CloneSessionEntry(5, replicas=[(2, 0)], packet_length_bytes=128)
    assert len(pipeline.encoder().entity_set([group, session])) == 2


FORWARD = {"action_name": "forward", "action_params": {"port": 1, "mac": 1}}
MEMBERS = {
    "action_profile_members": [{"action_profile": "choices", "member_id": number, **FORWARD} for number in (1, 2)]
    + [{"action_profile": "I.alone", "member_id": 7, "action_name": "I.drop"}]
}
RATES = {"cir": 10, "cburst": 100, "pir": 20, "pburst": 200}


def test_action_profiles_and_what_refers_to_them(pipeline: Pipeline) -> None:
    tree = MEMBERS | {
        "action_profile_groups": [
            {"action_profile": "choices", "group_id": 3, "members": [
                {"member_id": 1, "weight": 2}, {"member_id": 2, "watch_port": 5}]}
        ],
        "table_entries": [
            {**CHOSEN, "group_id": 3},
            {"table": "chosen", "match": {"kind": 2}, "member_id": 2},
            {"table": "shared", "match": {"kind": 2}, "member_id": 7, "priority": 1},
        ],
    }  # fmt: skip
    found = entities(tree, pipeline)
    assert [type(each).__name__ for each in found] == [
        *["P4TableEntry"] * 3, *["P4ActionProfileMember"] * 3, "P4ActionProfileGroup"
    ]  # fmt: skip
    group = found[-1]
    assert group == finsy.P4ActionProfileGroup(
        "I.choices",
        group_id=3,
        max_size=16,
        members=[finsy.P4Member(1, weight=2), finsy.P4Member(2, weight=(1, 5))],
    )
    assert [each.action for each in found[:3] if isinstance(each, finsy.P4TableEntry)] == [
        finsy.P4IndirectAction(group_id=3),
        finsy.P4IndirectAction(member_id=2),
        finsy.P4IndirectAction(member_id=7),
    ]
    assert len(pipeline.encoder().entity_set(found)) == len(found)
    assert not pipeline.left_out


def test_one_shot_sets_and_direct_meters(pipeline: Pipeline) -> None:
    sets = [{**FORWARD, "weight": 3}, {"action_name": "drop"}]
    found = read_of(pipeline, {**CHOSEN, "action_set": sets})
    assert found.action == finsy.P4IndirectAction(
        [(3, finsy.P4TableAction("I.forward", port=1, mac=1)), (1, finsy.P4TableAction("I.drop"))]
    )
    entry = {"table": "metered_table", "match": {"kind": 1}, "action_name": "metered", "meter_config": RATES}
    assert read_of(pipeline, entry).meter_config == finsy.P4MeterConfig(**RATES)


def read_of(pipeline: Pipeline, wanted: dict[str, Any]) -> finsy.P4TableEntry:
    (found,) = entities({"table_entries": [wanted]}, pipeline)
    assert isinstance(found, finsy.P4TableEntry)
    assert len(pipeline.encoder().entity_set([found])) == 1
    return found


def test_cells(pipeline: Pipeline) -> None:
    tree = {
        "register_entries": [
            {"register": "small", "index": 3, "value": "0xfff"},
            {"register": "I.signed", "value": -2},
            {"register": "flags", "index": 0, "value": True},
        ],
        "meter_entries": [{"meter": "limits", "index": 1, **RATES}],
        "counter_entries": [{"counter": "seen", "index": 1, "packet_count": 4}, {"counter": "seen"}],
        "value_set_entries": [
            {"value_set": "kinds", "members": [7, "0x9"]},
            {"value_set": "pairs", "members": [{"port": 1, "kind": [4, 12]}, {"port": 2}]},
        ],
    }
    found = runtime_entries(tree, pipeline.names)
    assert not found.entities
    schema = pipeline.schema()
    encoded = [each.encode(schema) for each in found.cells.values()]
    assert [(each.register_entry.HasField("index"), each.register_entry.data) for each in encoded[:3]] == [
        (True, p4d.P4Data(bitstring=b"\x0f\xff")),
        (False, p4d.P4Data(bitstring=b"\xfe")),
        (True, p4d.P4Data(bool=True)),
    ]
    assert encoded[3].meter_entry.config == p4r.MeterConfig(**RATES)
    assert encoded[4].counter_entry.data == p4r.CounterData(packet_count=4)
    assert not encoded[5].counter_entry.HasField("index")
    kinds, pairs = (each.value_set_entry.members for each in encoded[6:])
    assert [each.match[0].exact.value for each in kinds] == [b"\x07", b"\x09"]
    assert [len(each.match) for each in pairs] == [2, 1]


CHOSEN = {"table": "chosen", "match": {"kind": 1}}


def of(kind: str, *wanted: dict[str, Any]) -> dict[str, Any]:
    return {kind: list(wanted)}


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (of("table_entries", {**CHOSEN, **FORWARD}),
         "table_entries[0]: table I.chosen chooses by an action profile: give one of member_id, group_id, action_set,"
         " not action_name, action_params"),
        (of("table_entries", {"table": "prefixes", "member_id": 1}),
         "member_id: table I.prefixes has no action profile"),
        (MEMBERS | of("table_entries", {**CHOSEN, "member_id": 7}),
         "table_entries[0]: member 7 of I.choices is not in the file (valid: 1, 2)"),
        (of("table_entries", {**CHOSEN, "group_id": 1}), "(valid: none is)"),
        (of("table_entries", {**CHOSEN, "action_set": [{**FORWARD, "weight": 0}]}),
         "action_set[0]: weight: 0 (valid: 1 to"),
        (of("table_entries", {**CHOSEN, "action_set": []}), "action_set: has no actions"),
        (of("table_entries", {"table": "fixed", "match": {"kind": 1}, "action_name": "drop"}),
         "table: the entries of I.fixed are const"),
        (of("table_entries", {"table": "fixed", "default_action": True, "action_name": "drop"}),
         "default_action: I.fixed has a const one"),
        (of("table_entries", *({"table": "metered_table", "match": {"kind": kind}, "action_name": "metered"}
                               for kind in range(3))),
         "table_entries[2]: I.metered_table has room for 2"),
        (of("table_entries", {"table": "exact_table", "match": {"mac": 1, "kind": 1}, **FORWARD,
                              "meter_config": RATES}),
         "meter_config: table I.exact_table has no direct meter"),
        (of("action_profile_members", {"action_profile": "choice", "member_id": 1}),
         "unknown action profile 'choice'; did you mean 'choices'?"),
        (of("action_profile_members", {"action_profile": "alone", "member_id": 0, "action_name": "drop"}),
         "member_id: 0"),
        (of("action_profile_members", {"action_profile": "alone", "member_id": 1, "action_name": "metered"}),
         "unknown action 'metered' of I.alone"),
        (of("action_profile_members", *({"action_profile": "choices", "member_id": number, **FORWARD}
                                        for number in range(1, 5))),
         "action_profile_members[3]: I.choices has room for 3"),
        (of("action_profile_groups", {"action_profile": "alone", "group_id": 1, "members": []}),
         "I.alone has no selector"),
        (of("action_profile_groups", {"action_profile": "choices", "group_id": 1, "members": [{"member_id": 1}] * 2}),
         "members[1]: member 1 is there twice"),
        (of("action_profile_groups", {"action_profile": "choices", "group_id": 1, "members": [
            {"member_id": 1, "weight": 17}]}), "members: 17 as the sum of weights (valid: at most 16)"),
        (of("action_profile_groups", {"action_profile": "choices", "group_id": 1, "max_size": 17, "members": []}),
         "max_size: 17 (valid: 1 to 16)"),
        (of("action_profile_groups", {"action_profile": "choices", "group_id": 1, "members": [{"member_id": 1}]}),
         "action_profile_groups[0]: member 1 of I.choices is not in the file"),
        (of("register_entries", {"register": "smal", "value": 1}), "unknown register 'smal'; did you mean 'small'?"),
        (of("register_entries", {"register": "small", "value": 4096}), "value: 4096 does not fit 12 bits"),
        (of("register_entries", {"register": "small", "index": 4, "value": 1}), "index: 4 (valid: 0 to 3)"),
        (of("register_entries", {"register": "small"}), "value is missing"),
        (of("register_entries", {"register": "small", "value": 1}, {"register": "I.small", "value": 2}),
         "register_entries[1]: has the same key as register_entries[0]"),
        (of("meter_entries", {"meter": "limits", **RATES, "pir": 1}), "pir: 1 is below cir 10"),
        (of("meter_entries", {"meter": "limits", "cir": 1}), "cburst is missing"),
        (of("counter_entries", {"counter": "seen", "packets": 1}),
         "unknown key 'packets'; did you mean 'packet_count'?"),
        (of("value_set_entries", {"value_set": "kinds", "members": [1, 2, 3]}),
         "members: 3 of them (valid: at most 2)"),
        (of("value_set_entries", {"value_set": "pairs", "members": [3]}), "members[0]: must be a mapping of fields"),
        (of("value_set_entries", {"value_set": "pairs", "members": [{"kind": 3}]}), "members[0]: needs port, too"),
    ],
)  # fmt: skip
def test_wrong_profiles_and_cells(pipeline: Pipeline, tree: Any, problem: str) -> None:
    with pytest.raises(SettingError) as raised:
        runtime_entries(tree, pipeline.names)
    assert problem in str(raised.value)


@given(st.integers(1, 128), st.data())
def test_every_number_that_fits_is_itself_however_it_is_written(bits: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, (1 << bits) - 1))
    assert {number_of(each, bits) for each in (number, str(number), hex(number), [number])} == {number}
    assert number_of(number - (1 << bits), bits) == number if number >> (bits - 1) else True
    with pytest.raises(SettingError):
        number_of(number + (1 << bits), bits)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda each: (
    st.lists(each, max_size=3)
    | st.dictionaries(st.sampled_from([*KEYS, *KINDS]), each)
)))  # fmt: skip
def test_any_content_is_read_or_refused(pipeline: Pipeline, tree: Any) -> None:
    with contextlib.suppress(SettingError):
        runtime_entries(tree, pipeline.names)
    for kind in KINDS:
        with contextlib.suppress(SettingError):
            found = runtime_entries({kind: [tree]}, pipeline.names)
            assert len(found.entities) + len(found.cells) == 1
