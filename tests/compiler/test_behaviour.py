"""Compiled programs do what the language says: run on the oracle switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import run

# data: a=01 b=02 c=0304 d=05060708, payload ff
PACKET = "0102030405060708ff"


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        ("hdr.data.a = hdr.data.a + 255;", "0002030405060708ff"),
        ("hdr.data.a = hdr.data.a |-| 2;", "0002030405060708ff"),
        ("hdr.data.a = hdr.data.b |+| 0xff;", "ff02030405060708ff"),
        ("hdr.data.c[11:4] = 0xaa;", "01020aa405060708ff"),
        ("hdr.data.c = hdr.data.a ++ hdr.data.b;", "0102010205060708ff"),
        # Eight ones from bit 1: 0x0304 becomes 0x03fe.
        ("hdr.data.c[hdr.data.a +: 8] = 0xff;", "010203fe05060708ff"),
        ("hdr.data.d = (bit<32>)(int<32>)(int<8>)hdr.data.b - 3;", "01020304ffffffffff"),
        ("hdr.data.a = hdr.data.b > 1 ? hdr.data.b : 8w9;", "0202030405060708ff"),
        ("hdr.data.a = (bit<8>)(bit<1>)(hdr.data.b == 2 && hdr.data.c != 0);", "0102030405060708ff"),
        ("hdr.data.d = hdr.data.d << hdr.data.c;", "0102030400000000ff"),
        ("hdr.data.b += 7; hdr.data.b *= 2;", "0112030405060708ff"),
        ("bit<8> t = hdr.data.a; hdr.data.a = hdr.data.b; hdr.data.b = t;", "0201030405060708ff"),
        (
            "{ tuple<bit<8>, bit<8>> t = { hdr.data.b, hdr.data.a }; hdr.data.a = t[0]; }",
            "0202030405060708ff",
        ),
    ],
)
def test_expressions(tmp_path: Path, apply: str, expected: str) -> None:
    assert run(tmp_path, PACKET, apply=apply) == [(2, expected)]


def test_swapping_assignment_reads_before_it_writes(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="struct pair_t { bit<8> first; bit<8> second; }",
        metadata="pair_t pair;",
        apply="""
            meta.pair = { hdr.data.a, hdr.data.b };
            meta.pair = { meta.pair.second, meta.pair.first };
            hdr.data.a = meta.pair.first; hdr.data.b = meta.pair.second;""",
    )
    assert out == [(2, "0201030405060708ff")]


def test_functions_inline_with_returns_and_side_effects(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="""
            bit<8> bump(inout bit<8> value) { if (value == 1) { value = 7; return 100; } value = 9; return 200; }
        """,
        apply="hdr.data.b = bump(hdr.data.a) + bump(hdr.data.a);",
    )
    # 100 + 200 wraps to 44; a became 7, then 9.
    assert out == [(2, "092c030405060708ff")]


def test_operands_are_read_before_later_side_effects(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="bit<8> zero(inout bit<8> value) { value = 0; return 1; }",
        apply="hdr.data.b = hdr.data.a + zero(hdr.data.a);",
    )
    assert out == [(2, "0002030405060708ff")]


def test_short_circuit_skips_the_call(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="bool touch(inout bit<8> value) { value = 0xee; return true; }",
        apply="if (hdr.data.a == 9 && touch(hdr.data.b)) { hdr.data.a = 0xdd; }",
    )
    assert out == [(2, PACKET)]


def test_exit_in_a_call_copies_arguments_back(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        locals="action leave(inout bit<8> value) { value = 0x77; exit; }",
        apply="leave(hdr.data.a); hdr.data.b = 0;",
    )
    assert out == [(2, "7702030405060708ff")]


def test_stack_operations(tmp_path: Path) -> None:
    parser = """
        state start { packet.extract(hdr.data); transition items; }
        state items {
            packet.extract(hdr.items.next);
            transition select(hdr.items.last.v) { 0x80 &&& 0x80: items; default: accept; }
        }"""
    apply = "hdr.items.push_front(1); hdr.items[0].setValid(); hdr.items[0].v = 0x42;"
    out = run(tmp_path, "01020304050607088101ff", parser=parser, apply=apply)
    assert out == [(2, "0102030405060708428101ff")]


def test_run_time_index(tmp_path: Path) -> None:
    parser = """
        state start {
            packet.extract(hdr.data);
            packet.extract(hdr.items.next); packet.extract(hdr.items.next); packet.extract(hdr.items.next);
            transition accept;
        }"""
    apply = "hdr.items[hdr.data.a].v = hdr.items[hdr.data.b].v + 1;"
    out = run(tmp_path, "0102030405060708101112", parser=parser, apply=apply)
    assert out == [(2, "0102030405060708101312")]


def test_select_on_ranges_and_several_keys(tmp_path: Path) -> None:
    parser = """
        state start {
            packet.extract(hdr.data);
            transition select(hdr.data.a, hdr.data.c) {
                (1, 0x0300 .. 0x0305): more;
                (_, 7): accept;
            }
        }
        state more { packet.extract(hdr.extra); transition accept; }"""
    apply = "if (hdr.extra.isValid()) { hdr.extra.v = 0x55; }"
    assert run(tmp_path, PACKET, parser=parser, apply=apply) == [(2, "010203040506070855")]


def test_select_without_a_match_raises_no_match(tmp_path: Path) -> None:
    parser = """
        state start { packet.extract(hdr.data); transition select(hdr.data.a) { 9: accept; } }"""
    apply = "if (standard_metadata.parser_error == error.NoMatch) { hdr.data.b = 0xee; }"
    assert run(tmp_path, PACKET, parser=parser, apply=apply) == [(2, "01ee030405060708ff")]


def test_lookahead_and_advance(tmp_path: Path) -> None:
    parser = """
        state start {
            meta.y = packet.lookahead<bit<16>>();
            packet.advance(16);
            packet.extract(hdr.data);
            transition select(packet.lookahead<bit<4>>()) { 0xf: accept; default: reject; }
        }"""
    out = run(tmp_path, "abcd" + PACKET, parser=parser, apply="hdr.data.c = meta.y;")
    assert out == [(2, "0102abcd05060708ff")]


def test_condition_in_a_state(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        "010203040506070810ff",
        parser="""
        state start {
            packet.extract(hdr.data);
            if (hdr.data.a == 1) { meta.x = 3; } else { meta.x = 4; }
            transition select(meta.x) { 3: extra; default: accept; }
        }
        state extra { packet.extract(hdr.extra); transition accept; }""",
        apply="hdr.data.b = meta.x; hdr.extra.v = hdr.extra.v + 1;",
    )
    assert out == [(2, "010303040506070811ff")]


def test_control_with_locals_and_return(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="""
            control Add(inout bit<8> value)(bit<8> amount) {
                apply { if (value == 2) { return; } value = value + amount; }
            }""",
        locals="Add(16) add; Add(32) other;",
        apply="add.apply(hdr.data.a); other.apply(hdr.data.b);",
    )
    assert out == [(2, "1102030405060708ff")]


@pytest.mark.parametrize(("value", "expected"), [(1, "0a"), (2, "0b"), (3, "0b"), (4, "0c")])
def test_switch_on_a_value(tmp_path: Path, value: int, expected: str) -> None:
    apply = """
        switch (hdr.data.a) {
            1: { hdr.data.b = 10; }
            2:
            3: { hdr.data.b = 11; }
            default: { hdr.data.b = 12; }
        }"""
    packet = f"{value:02x}02030405060708"
    assert run(tmp_path, packet, apply=apply) == [(2, f"{value:02x}{expected}030405060708")]


def test_for_in_unrolls(tmp_path: Path) -> None:
    apply = "for (bit<8> i in 1 .. 4) { if (i == 3) { continue; } hdr.data.a = hdr.data.a + i; }"
    assert run(tmp_path, PACKET, apply=apply) == [(2, "0802030405060708ff")]


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        ("for (bit<8> i = 0; i < 4; i = i + 1) { hdr.data.a = hdr.data.a + i; }", "0702"),
        ("for (bit<8> i = 1, bit<8> j = 7; i < 4; i += 1, j = j - 2) { hdr.data.a = j; }", "0302"),
        (
            "for (bit<8> i = 0; i < 9; i = i + 1) { if (i == 3) { break; } hdr.data.a = hdr.data.a + 1; }",
            "0402",
        ),
        ("for (bit<8> i = 0; i < 0; i = i + 1) { hdr.data.a = 0; }", "0102"),
        ("bit<8> m = 1; for (bit<8> i = 0; i < 3; i = i + 1, m = m << 1) { hdr.data.b = m; }", "0104"),
    ],
)
def test_counting_loops_unroll(tmp_path: Path, apply: str, expected: str) -> None:
    assert run(tmp_path, PACKET, apply=apply) == [(2, f"{expected}030405060708ff")]


def test_header_comparison_and_literals(tmp_path: Path) -> None:
    apply = """
        hdr.extra = { 0x21 };
        hdr.items[0] = hdr.extra;
        if (hdr.items[0] == hdr.extra) { hdr.data.a = 0xaa; }
        hdr.extra.setInvalid();
        if (hdr.items[0] != hdr.extra) { hdr.data.b = 0xbb; }"""
    assert run(tmp_path, PACKET, apply=apply) == [(2, "aabb03040506070821ff")]


def test_registers_and_hash(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        locals="register<bit<16>>(4) memory;",
        apply="""
            bit<16> value;
            memory.write(1, hdr.data.c + 1);
            memory.read(value, (bit<32>)hdr.data.a);
            hdr.data.c = value;
            hash(hdr.data.d, HashAlgorithm.crc32, 32w0, { 72w0x313233343536373839 }, 64w0x100000000);""",
    )
    # CRC-32 of "123456789" is cbf43926.
    assert out == [(2, "01020305cbf43926ff")]


def test_checksum_update(tmp_path: Path) -> None:
    data = "{ hdr.data.a, hdr.data.b, hdr.data.d }"
    update = f"update_checksum(hdr.data.isValid(), {data}, hdr.data.c, HashAlgorithm.csum16);"
    total = 0x0102 + 0x0506 + 0x0708
    assert run(tmp_path, PACKET, update=update) == [(2, f"0102{0xFFFF - total:04x}05060708ff")]


def test_mark_to_drop(tmp_path: Path) -> None:
    assert run(tmp_path, PACKET, apply="mark_to_drop(standard_metadata);") == []


def test_table_hit_miss_and_entries(tmp_path: Path) -> None:
    table = """
        action set(bit<8> value) { hdr.data.b = value; }
        action none() {}
        table t {
            key = { hdr.data.a: exact; hdr.data.c: ternary; }
            actions = { set; none; }
            default_action = none();
            const entries = {
                (1, 0x0300 &&& 0xff00): set(0x31);
                (1, _): set(0x32);
                (2, _): none();
            }
        }"""
    apply = "if (!t.apply().hit) { hdr.data.d = 0; }"
    assert run(tmp_path, PACKET, locals=table, apply=apply) == [(2, "0131030405060708ff")]
    other = "0902030405060708"
    assert run(tmp_path, other, locals=table, apply=apply) == [(2, "0902030400000000")]
    ran = "switch (t.apply().action_run) { set: { hdr.data.d = 1; } default: { hdr.data.d = 2; } }"
    assert run(tmp_path, PACKET, locals=table, apply=ran) == [(2, "0131030400000001ff")]
    assert run(tmp_path, "0202030405060708", locals=table, apply=ran) == [(2, "0202030400000002")]


def test_action_with_bound_argument_and_branches(tmp_path: Path) -> None:
    table = """
        action add(inout bit<8> target, bit<8> amount) {
            if (amount > 4) { target = target + amount; } else { target = 0; return; }
            hdr.data.d = 1;
        }
        table t { key = { hdr.data.b: exact; } actions = { add(hdr.data.a); } default_action = add(hdr.data.a, 5); }"""
    assert run(tmp_path, PACKET, locals=table, apply="t.apply();") == [(2, "0602030400000001ff")]


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        ("for (bit<8> i in 1 .. 3) { hdr.data.b = hdr.data.b + i; }", "0108030405060708ff"),
        # The loop goes on from its own counter, not from what the body made of the variable.
        ("for (bit<8> i in 1 .. 3) { i = i + 10; hdr.data.b = hdr.data.b + i; }", "0126030405060708ff"),
        (
            "for (bit<8> i in hdr.data.a .. 3) { i = i + 10; hdr.data.b = hdr.data.b + i; }",
            "0126030405060708ff",
        ),
        ("for (bit<8> i = 0; i < 8; i += 1) { i = i + 1; hdr.data.b += 1; }", "0106030405060708ff"),
    ],
)
def test_loops_and_their_variables(tmp_path: Path, apply: str, expected: str) -> None:
    assert run(tmp_path, PACKET, apply=apply) == [(2, expected)]


def test_constants_may_be_structs_tuples_and_comparisons(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="""
            struct pair_t { bit<8> first; bit<8> second; }
            const pair_t PAIR = { second = 7, first = 9 };
            const tuple<bit<8>, pair_t> BOTH = { 5, { 1, 2 } };
            const bit<8> SECOND = PAIR.second;
            const bit<8> INNER = BOTH[1].second;
            const bool SAME = PAIR == { 9, 7 };""",
        apply="hdr.data.a = SECOND; hdr.data.b = INNER + (SAME ? 8w0x10 : 0);",
    )
    assert out == [(2, "0712030405060708ff")]


def test_parsers_copy_the_last_element_of_a_stack_and_look_ahead_at_stacks(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        "010203040506070811223344",
        declarations="header one_t { bit<8> v; } struct two_t { one_t[2] pair; }",
        metadata="small_t copy; bit<8> ahead;",
        parser="""
            state start {
                packet.extract(hdr.data);
                two_t next = packet.lookahead<two_t>();
                meta.ahead = next.pair[1].v;
                packet.extract(hdr.items.next);
                packet.extract(hdr.items.next);
                meta.copy = hdr.items.last;
                transition accept;
            }""",
        apply="hdr.data.a = meta.copy.v; hdr.data.b = meta.ahead + (meta.copy.isValid() ? 8w1 : 0);",
    )
    assert out == [(2, "222303040506070811223344")]


def test_arrays_hold_any_data(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        PACKET,
        declarations="struct pair_t { bit<8> first; bit<8> second; }",
        metadata="bit<8>[3] bytes;",
        locals="pair_t[2] pairs;",
        apply="""
            meta.bytes = { 1, hdr.data.b, 3 };
            bit<8>[3] other = meta.bytes;
            pairs[1].second = other[1] + (bit<8>)other.size;
            pairs[0] = pairs[1];
            for (bit<8> each in other) { hdr.data.a = hdr.data.a + each; }
            hdr.data.b = pairs[0].second;""",
    )
    # 1 + 1 + 2 + 3, and 2 + 3.
    assert out == [(2, "0705030405060708ff")]
