"""Entries in the tutorials' schema: how values are written, and what is said of those that are wrong."""

from __future__ import annotations

import contextlib
from typing import Any

import finsy
import pytest
from finsy.proto import p4i
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from weft.compiler import compile_artifacts
from weft.controller.errors import SettingError
from weft.controller.pipeline import Pipeline
from weft.controller.plain_values import number_of
from weft.controller.runtime_entries import runtime_entries

P4 = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> address; bit<48> mac; bit<16> port; bit<8> kind; bit<128> address6; }
struct headers_t { h_t h; }
struct metadata_t {}
parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
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
    apply { exact_table.apply(); prefixes.apply(); ranges.apply(); }
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


def read(pipeline: Pipeline, **changes: Any) -> finsy.P4TableEntry:
    (found,) = runtime_entries({"table_entries": [entry(**changes)]}, pipeline.names)
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
    exact = read(
        pipeline, table="exact_table", match={"mac": "02:00:00:00:00:0a", "kind": [6]}, idle_timeout_ns=5
    )
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
        ({"match": {"address": ["10.0.1.0", 1, 2]}}, "is no match of this key (valid: [VALUE, LENGTH])"),
        ({"match": {"address": ["10.0.1", 24]}}, "match.address: '10.0.1' is no value (valid: a number, 0x…"),
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
        "multicast_group_entries": [
            {"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}
        ],
        "clone_session_entries": [
            {"clone_session_id": 5, "replicas": [{"egress_port": 2}], "packet_length_bytes": 128}
        ],
    }
    group, session = runtime_entries(tree, pipeline.names)
    assert group == finsy.P4MulticastGroupEntry(1, replicas=[(1, 1)])
    assert session == finsy.P4CloneSessionEntry(5, replicas=[(2, 0)], packet_length_bytes=128)
    assert len(pipeline.encoder().entity_set([group, session])) == 2


@given(st.integers(1, 128), st.data())
def test_every_number_that_fits_is_itself_however_it_is_written(bits: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, (1 << bits) - 1))
    assert {number_of(each, bits) for each in (number, str(number), hex(number), [number])} == {number}
    assert number_of(number - (1 << bits), bits) == number if number >> (bits - 1) else True
    with pytest.raises(SettingError):
        number_of(number + (1 << bits), bits)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda each: (
    st.lists(each, max_size=3)
    | st.dictionaries(st.sampled_from(["table_entries", "table", "match", "action_name", "address", "replicas"]), each)
)))  # fmt: skip
def test_any_content_is_read_or_refused(pipeline: Pipeline, tree: Any) -> None:
    with contextlib.suppress(SettingError):
        runtime_entries(tree, pipeline.names)
    for kind in ("table_entries", "multicast_group_entries", "clone_session_entries"):
        with contextlib.suppress(SettingError):
            assert len(runtime_entries({kind: [tree]}, pipeline.names)) == 1
