"""P4Info: ids, names, types and references as p4c gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format
from p4_programs import compile_text, program_text

from weft.compiler import CompileError
from weft.compiler.p4info.ids import IdAllocator, IdConflict, Prefix, field_ids, one_at_a_time


@pytest.mark.parametrize(
    ("prefix", "name", "identifier"),
    [
        # From the P4Info of p4c's own samples.
        (Prefix.TABLE, "MyIngress.forward", 46460945),
        (Prefix.TABLE, "IngressI.indirect", 46872340),
        (Prefix.ACTION, "NoAction", 21257015),
        (Prefix.ACTION, "MyIngress.drop", 25652968),
        (Prefix.ACTION_PROFILE, "ap", 294074782),
        (Prefix.DIGEST, "test_digest_t", 387015589),
    ],
)
def test_ids_are_those_of_p4c(prefix: Prefix, name: str, identifier: int) -> None:
    ids = IdAllocator()
    ids.add(prefix, name)
    ids.assign()
    assert ids.id(prefix, name) == identifier


def test_ids_of_the_program_win_and_conflicts_are_refused() -> None:
    ids = IdAllocator()
    ids.add(Prefix.TABLE, "a", 0x02000001)
    with pytest.raises(IdConflict, match="also that of 'a'"):
        ids.add(Prefix.TABLE, "b", 1)
    with pytest.raises(IdConflict, match="another kind"):
        ids.add(Prefix.TABLE, "c", 0x01000007)
    ids.assign()
    assert ids.id(Prefix.TABLE, "a") == 0x02000001


def test_colliding_hashes_take_the_next_number() -> None:
    ids = IdAllocator()
    taken = Prefix.TABLE << 24 | (one_at_a_time("t") & 0xFFFFFF)
    ids.add(Prefix.TABLE, "fixed", taken)
    ids.add(Prefix.TABLE, "t")
    ids.assign()
    assert ids.id(Prefix.TABLE, "t") == taken + 1


def test_aliases_are_the_shortest_unique_suffixes() -> None:
    ids = IdAllocator()
    for name in ("ingress.acl.drop", "egress.acl.drop", "ingress.set", "set"):
        ids.add(Prefix.ACTION, name)
    assert ids.alias("ingress.acl.drop") == "ingress.acl.drop"
    assert ids.alias("ingress.set") == "ingress.set"
    assert ids.alias("set") == "set"


def test_field_ids_skip_those_taken() -> None:
    assert field_ids([None, None, None]) == [1, 2, 3]
    assert field_ids([2, None, None]) == [2, 3, 4]
    assert field_ids([None, 1, None]) == [2, 1, 3]


LOCALS = """
    @brief("counts hits") direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.bytes) rate;
    counter(16, CounterType.bytes) sent;
    register<bit<48>>(8) last_seen;
    action_selector(HashAlgorithm.crc32, 64, 16) @max_group_size(4) members;
    action forward(@id(7) port_t port, bit<8> mark) { standard_metadata.egress_spec = (bit<9>)port; rate.read(meta.x); }
    @id(0x02000123) table acl {
        key = {
            hdr.data.a: ternary @name("first");
            hdr.extra.isValid(): exact;
            hdr.data.c & 0xff0: exact;
            hdr.data.d[15:8]: range;
        }
        actions = { forward; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = hits; meters = rate; size = 99; support_timeout = true;
    }
    table route {
        key = { hdr.data.d: lpm; hdr.data.a: selector; hdr.data.b: selector; }
        actions = { forward; }
        implementation = members;
    }"""
LOCALS = LOCALS.replace(
    "action_selector(HashAlgorithm.crc32, 64, 16) @max_group_size(4) members;",
    "@max_group_size(4) action_selector(HashAlgorithm.crc32, 64, 16) members;",
)
DECLARATIONS = """
    @p4runtime_translation("example/port", 32) type bit<9> port_t;
    @controller_header("packet_in") header packet_in_t { bit<9> ingress_port; bit<7> reserved; }
    struct seen_t { bit<48> address; bit<9> port; }"""


@pytest.fixture(scope="module")
def info(tmp_path_factory: pytest.TempPathFactory) -> p4i.P4Info:
    text = program_text(
        declarations=DECLARATIONS,
        locals=LOCALS,
        apply="""
            acl.apply(); route.apply(); sent.count(1); last_seen.write(0, 1);
            digest<seen_t>(1, { (bit<48>)hdr.data.d, standard_metadata.ingress_port });""",
    )
    result = compile_text(tmp_path_factory.mktemp("p4info"), text)
    parsed = text_format.Parse(result.p4info_text(), p4i.P4Info())
    assert parsed == p4i.P4Info.FromString(result.p4info_bytes())
    return parsed


def test_tables(info: p4i.P4Info) -> None:
    acl, route = info.tables
    assert (acl.preamble.id, acl.preamble.name, acl.preamble.alias, acl.size) == (
        0x02000123,
        "I.acl",
        "acl",
        99,
    )
    assert [(field.id, field.name, field.bitwidth, field.match_type) for field in acl.match_fields] == [
        (1, "first", 8, p4i.MatchField.TERNARY),
        (2, "hdr.extra.$valid$", 1, p4i.MatchField.EXACT),
        (3, "hdr.data.c & 0xff0", 16, p4i.MatchField.EXACT),
        (4, "hdr.data.d[15:8]", 8, p4i.MatchField.RANGE),
    ]
    assert acl.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
    assert acl.const_default_action_id == acl.initial_default_action.action_id == 21257015
    assert [reference.scope for reference in acl.action_refs] == [
        p4i.ActionRef.TABLE_AND_DEFAULT,
        p4i.ActionRef.DEFAULT_ONLY,
    ]
    assert len(acl.direct_resource_ids) == 2
    assert [field.name for field in route.match_fields] == ["hdr.data.d"]
    assert route.implementation_id == info.action_profiles[0].preamble.id
    assert route.initial_default_action.action_id == 21257015


def test_externs_and_types(info: p4i.P4Info) -> None:
    assert info.direct_counters[0].preamble.doc.brief == "counts hits"
    assert info.direct_counters[0].spec.unit == p4i.CounterSpec.BOTH
    assert info.direct_meters[0].direct_table_id == 0x02000123
    assert (info.counters[0].size, info.registers[0].type_spec.bitstring.bit.bitwidth) == (16, 48)
    profile = info.action_profiles[0]
    assert (profile.with_selector, profile.size, profile.max_group_size) == (True, 64, 4)
    forward = next(action for action in info.actions if action.preamble.name == "I.forward")
    assert [(entry.id, entry.name, entry.bitwidth, entry.type_name.name) for entry in forward.params] == [
        (7, "port", 32, "port_t"),
        (2, "mark", 8, ""),
    ]
    assert info.type_info.new_types["port_t"].translated_type.uri == "example/port"
    assert info.digests[0].preamble.name == "seen_t"
    assert [member.name for member in info.type_info.structs["seen_t"].members] == ["address", "port"]
    header = info.controller_packet_metadata[0]
    assert header.preamble.name == "packet_in"
    assert [(entry.id, entry.name, entry.bitwidth) for entry in header.metadata] == [
        (1, "ingress_port", 9),
        (2, "reserved", 7),
    ]


def test_wrong_id_prefix_is_an_error(tmp_path: Path) -> None:
    text = program_text(
        locals="@id(0x01000001) table t { key = { hdr.data.a: exact; } actions = { NoAction; } }",
        apply="t.apply();",
    )
    with pytest.raises(CompileError, match="prefix of another kind"):
        compile_text(tmp_path, text)
