"""The oracle's packet path: parsing, matching, actions, checksums, copies and drops."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_builder import (
    Json,
    action,
    call,
    conditional,
    const,
    extract,
    field,
    key,
    named,
    op,
    param,
    program,
    state,
    std,
    table,
    transition,
    valid,
)

from weft.switch.backend import (
    ActionCall,
    CloneSession,
    CounterValue,
    Digest,
    ExactMatch,
    GroupMember,
    GroupRef,
    IdleTimeout,
    InvalidRequestError,
    LpmMatch,
    MeterConfig,
    NotReadyError,
    PacketIn,
    RangeMatch,
    Replica,
    TableEntry,
    TernaryMatch,
)
from weft.switch.bmv2json import load_program
from weft.switch.oracle import OracleSwitch, Output, Timing
from weft.switch.oracle.hashes import ALGORITHMS

BYTE = {"data": [("a", 8), ("b", 8), ("c", 16)]}
METADATA = [("m", 32), ("n", 8), ("flag", 8)]
START = [state("start", 0, [extract("data")], [], [transition(None, None)])]
TO_PORT_1 = call("assign", std("egress_spec"), const(1))


def keyless(run: Json, name: str = "t", number: int = 0, next_node: str | None = None) -> Json:
    return table(name, number, [], [run], next_node)


def switch_with(document: Json) -> OracleSwitch:
    made = OracleSwitch()
    made.load(load_program(json.dumps(document)))
    return made


def one_action(
    *calls: Json, egress: tuple[Json, ...] = (), states: list[Json] = START, **sections: Any
) -> OracleSwitch:
    """A switch whose ingress sends to port 1 and runs `calls`; egress runs `egress`."""
    first = action("in", 1, [], TO_PORT_1, *calls)
    second = action("out", 2, [], *egress)
    return switch_with(
        program(
            BYTE,
            METADATA,
            states,
            [first, second],
            {"init_table": "t", "tables": [keyless(first)]},
            {"init_table": "e", "tables": [keyless(second, "e", 1)]},
            **sections,
        )
    )


def sent(switch: OracleSwitch, data: bytes, port: int = 3, timing: Timing | None = None) -> list[Output]:
    return switch.process(port, data, timing)


def run(*calls: Json, data: bytes = b"\x01\x02\x03\x04rest", **more: Any) -> bytes:
    (output,) = sent(one_action(*calls, **more), data)
    return output.data


A, B, C = (field("data", name) for name in "abc")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (op("+", A, const(0xFF)), 0x00),
        (op("-", A, B), 0xFF),
        (op("*", B, const(100)), 200),
        (op("/", const(7), const(2)), 3),
        (op("/", const(7), const(0)), 0),
        (op("%", const(7), const(4)), 3),
        (op("<<", A, const(7)), 0x80),
        (op("<<", A, const(1 << 40)), 0),
        (op(">>", const(0x80), B), 0x20),
        (op("&", const(0xF3), const(0x3F)), 0x33),
        (op("|", A, B), 3),
        (op("^", const(0xFF), B), 0xFD),
        (op("~", None, A), 0xFE),
        (op("-", None, A), 0xFF),
        (op("two_comp_mod", const(257), const(8)), 1),
        (op("two_comp_mod", const(-129), const(8)), 127),
        (op("sat_cast", const(300), const(8)), 127),
        (op("sat_cast", const(-300), const(8)), 0x80),
        (op("usat_cast", const(300), const(8)), 255),
        (op("usat_cast", const(-1), const(8)), 0),
        (op("b2d", None, op("==", A, const(1))), 1),
        (op("b2d", None, op("!=", A, const(1))), 0),
        (op("b2d", None, op("<", A, B)), 1),
        (op("b2d", None, op(">=", A, B)), 0),
        (op("b2d", None, op("and", valid("data"), op("not", None, op(">", A, B)))), 1),
        (op("b2d", None, op("or", op("d2b", None, const(0)), op("valid", None, named("header", "data")))), 1),
        (op("b2d", None, op("==", named("header", "data"), named("header", "data"))), 1),
        (op("?", const(5), const(6), cond=op("==", A, B)), 6),
        (op("access_field", named("header", "data"), None) | {}, None),
    ],
)
def test_expressions(expression: Json, expected: int | None) -> None:
    if expected is None:  # the right side of access_field is a plain number
        expression["value"]["right"] = 1
        expected = 2
    assert run(call("assign", A, expression))[0] == expected


def test_a_packet_too_short_sets_the_error_and_goes_on() -> None:
    switch = one_action(
        call("assign", field("scalars", "m"), std("parser_error")),
        call("add_header", named("header", "data")),
        call("assign", A, field("scalars", "m")),
    )
    (output,) = sent(switch, b"\x01\x02")
    assert output.data == b"\x01\x00\x00\x00\x01\x02"


def test_lookahead_select_and_advance() -> None:
    states = [
        state(
            "start",
            0,
            [call("set", field("scalars", "n"), {"type": "lookahead", "value": [8, 8]})],
            [{"type": "lookahead", "value": [0, 4]}],
            [
                transition(0xA, "skip", width=1),
                transition(0x30, "take", mask=0x0F, width=1),
                transition(None, None),
            ],
        ),
        state("skip", 1, [call("advance", const(16))], [], [transition(None, "take")]),
        state("take", 2, [extract("data")], [], [transition(None, None)]),
    ]
    put = call("assign", A, field("scalars", "n"))
    assert run(put, data=b"\xa7\x55\x01\x02\x03\x04!", states=states) == b"\x55\x02\x03\x04!"
    assert run(put, data=b"\x07\x66\x01\x02!", states=states) == b"\x66\x66\x01\x02!"


def test_verify_ends_parsing_with_its_error() -> None:
    states = [
        state(
            "start",
            0,
            [extract("data"), call("verify", op("==", A, const(9)), const(3))],
            [],
            [transition(None, None)],
        )
    ]
    assert run(call("assign", B, std("parser_error")), states=states)[:2] == b"\x01\x03"
    assert run(call("assign", B, std("parser_error")), states=states, data=b"\x09234")[:2] == b"\x09\x00"


def test_a_parser_without_end_is_ended() -> None:
    states = [state("start", 0, [], [], [transition(None, "start")])]
    switch = one_action(
        call("add_header", named("header", "data")), call("assign", A, std("parser_error")), states=states
    )
    assert sent(switch, b"x") == [Output(1, b"\x05\x00\x00\x00x")]


def test_jumps_and_exit() -> None:
    jump = call("_jump_if_zero", op("-", A, const(1)), const(3))
    assert run(jump, call("assign", B, const(9)), call("assign", C, const(7)))[:4] == b"\x01\x02\x00\x07"
    assert run(call("exit"), call("assign", A, const(9)), egress=(call("assign", B, const(9)),))[:2] == b"\x01\x09"


def test_header_validity_and_packet_length() -> None:
    length = call("assign", field("scalars", "m"), std("packet_length"))
    assert run(call("remove_header", named("header", "data"))) == b"rest"
    again = [call("remove_header", named("header", "data")), call("add_header", named("header", "data"))]
    assert run(*again) == b"\0\0\0\0rest"
    put = (length, call("add_header", named("header", "data")), call("assign", A, field("scalars", "m")))
    assert run(call("remove_header", named("header", "data")), egress=put) == b"\x04\0\0\0rest"


def test_truncate_drop_and_assert() -> None:
    assert run(call("truncate", const(5))) == b"\x01\x02\x03\x04r"
    switch = one_action(call("mark_to_drop", named("header", "standard_metadata")))
    assert sent(switch, b"1234") == []
    assert switch.drops == {"program_ingress": 1}
    switch = one_action(egress=(call("drop"),))
    assert sent(switch, b"1234") == []
    assert switch.drops == {"program_egress": 1}
    switch = one_action(call("assert", op("==", A, const(9))))
    assert sent(switch, b"1234") == []
    assert switch.drops == {"assertion": 1}


def test_queue_metadata_reaches_egress() -> None:
    switch = one_action(egress=(call("assign", C, std("deq_qdepth")), call("assign", A, std("egress_port"))))
    (output,) = sent(switch, b"1234", timing=Timing(dequeue_depth=0x1234))
    assert output.data == b"\x012\x12\x34"


def test_multicast_makes_copies_with_their_instance() -> None:
    switch = one_action(
        call("assign", std("mcast_grp"), const(7)),
        egress=(call("assign", A, std("egress_rid")), call("assign", B, std("instance_type"))),
    )
    assert sent(switch, b"1234") == []
    assert switch.drops == {"empty_multicast_group": 1}
    switch.multicast_group_set(7, [Replica(4, 10), Replica(5, 11)])
    assert sent(switch, b"1234") == [Output(4, b"\x0a\x0534"), Output(5, b"\x0b\x0534")]


LISTS = {"field_lists": [{"id": 1, "name": "kept", "elements": [field("scalars", "m")]}]}


def test_an_ingress_clone_is_the_packet_as_received() -> None:
    switch = one_action(
        call("assign", A, const(0x77)),
        call("assign", field("scalars", "m"), const(0x42)),
        call("clone_ingress_pkt_to_egress", const(5), const(1)),
        egress=(call("assign", B, std("instance_type")), call("assign", C, field("scalars", "m"))),
        **LISTS,
    )
    switch.clone_session_set(5, CloneSession((Replica(9, 1),), packet_length_bytes=6))
    outputs = sent(switch, b"\x01\x02\x03\x04rest")
    assert sorted(outputs, key=lambda output: output.port) == [
        Output(1, b"\x77\x00\x00\x42rest"),
        Output(9, b"\x01\x01\x00\x42re"),
    ]


def test_an_egress_clone_keeps_headers_and_loses_metadata() -> None:
    only_once = call("_jump_if_zero", op("-", std("instance_type"), const(2)), const(4))
    switch = one_action(
        call("assign", field("scalars", "m"), const(1)),
        egress=(
            only_once,
            call("assign", A, const(0x77)),
            call("assign", field("scalars", "n"), const(5)),
            call("clone_egress_pkt_to_egress", const(5), const(1)),
            call("assign", B, field("scalars", "n")),
            call("assign", C, field("scalars", "m")),
        ),
        **LISTS,
    )
    switch.clone_session_set(5, CloneSession((Replica(9),)))
    assert sent(switch, b"1234") == [Output(1, b"\x77\x05\x00\x01"), Output(9, b"\x77\x00\x00\x01")]


def test_resubmit_and_recirculate_keep_their_fields_and_end() -> None:
    first_time = call("_jump_if_zero", std("instance_type"), const(3))
    switch = one_action(
        first_time,
        call("_jump", const(6)),
        call("assign", A, const(9)),
        call("assign", field("scalars", "m"), const(3)),
        call("resubmit", const(1)),
        call("assign", B, field("scalars", "m")),
        **LISTS,
    )
    assert sent(switch, b"1234") == [Output(1, b"1\x0334")]
    switch = one_action(call("resubmit", const(1)), **LISTS)
    assert sent(switch, b"1234") == []
    assert switch.drops == {"pass_limit": 1}
    again = call("_jump_if_zero", op("-", A, const(0x33)), const(3))
    switch = one_action(egress=(again, call("assign", A, op("+", A, const(1))), call("recirculate", const(1))), **LISTS)
    assert sent(switch, b"1234") == [Output(1, b"3234")]


def test_digests_and_packet_ins_become_events() -> None:
    lists = [{"id": 1, "name": "d", "elements": [A, C]}]
    switch = one_action(
        call("generate_digest", const(1), const(1)),
        call("assign", std("egress_spec"), const(510)),
        learn_lists=lists,
    )
    assert sent(switch, b"\x01\x02\x03\x04") == []
    assert switch.wait_stream_event(0) == Digest(1, (1, 0x0304))
    assert switch.wait_stream_event(0) == PacketIn(b"\x01\x02\x03\x04")
    assert switch.wait_stream_event(0) is None


def test_hash_with_base_and_modulus() -> None:
    calculations = [
        {
            "name": "h",
            "id": 0,
            "algo": "crc16",
            "input": [A, B, {"type": "hexstr", "value": "0x3", "bitwidth": 16}],
        }
    ]
    hashed = call("modify_field_with_hash_based_offset", C, const(10), named("calculation", "h"), const(1000))
    (output,) = sent(one_action(hashed, calculations=calculations), b"\x01\x02\x00\x00")
    # CRC-16/ARC of 01 02 00 03 by definition: bitwise division, reflected
    remainder = 0
    for byte in b"\x01\x02\x00\x03":
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (0xA001 * (remainder & 1))
    assert int.from_bytes(output.data[2:4], "big") == 10 + remainder % 1000


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("crc16", 0xBB3D),
        ("crc32", 0xCBF43926),
        ("crcCCITT", 0x29B1),
        ("xor16", 0x3132 ^ 0x3435 ^ 0x3736 ^ 0x3938),
    ],
)
def test_hashes_have_their_check_values(algorithm: str, expected: int) -> None:

    data = b"123456789" if algorithm != "xor16" else b"12457698"
    assert ALGORITHMS[algorithm](data) == expected


# ---- tables

FORWARD = action("forward", 3, [("port", 9)], call("assign", std("egress_spec"), param(0)))
NOTHING = action("nothing", 4, [])


def table_switch(*keys: Json, **more: Any) -> OracleSwitch:
    made = table("t", 0, list(keys), [FORWARD, NOTHING], **more)
    return switch_with(
        program(
            BYTE,
            METADATA,
            START,
            [FORWARD, NOTHING],
            {"init_table": "t", "tables": [made], "action_profiles": [PROFILE]},
            counter_arrays=[{"name": "tc", "id": 0, "is_direct": True, "binding": "t"}],
        )
    )


PROFILE = {"name": "p", "id": 0, "max_size": 4, "selector": {"algo": "identity", "input": [A]}}


def port_of(switch: OracleSwitch, data: bytes) -> int:
    (output,) = sent(switch, data)
    return output.port


def entry(port: int, *matches: Any, priority: int = 0, **more: Any) -> TableEntry:
    return TableEntry(matches, ActionCall("forward", (port,)), priority, **more)


def test_the_longest_prefix_wins() -> None:
    switch = table_switch(key("lpm", "data", "c"))
    switch.table_insert("t", entry(1, LpmMatch(0, 0)))
    switch.table_insert("t", entry(2, LpmMatch(0x1200, 8)))
    switch.table_insert("t", entry(3, LpmMatch(0x1234, 16)))
    assert [port_of(switch, b"xx" + end) for end in (b"\x12\x34", b"\x12\x35", b"\x13\x34")] == [3, 2, 1]


def test_the_highest_priority_wins() -> None:
    switch = table_switch(key("ternary", "data", "a"), key("range", "data", "c"))
    anything = RangeMatch(0, 0xFFFF)
    switch.table_insert("t", entry(1, TernaryMatch(0, 0), anything, priority=1))
    switch.table_insert("t", entry(2, TernaryMatch(0x10, 0xF0), anything, priority=2))
    switch.table_insert("t", entry(3, TernaryMatch(0x10, 0xF0), RangeMatch(5, 9), priority=3))
    assert [port_of(switch, data) for data in (b"\x12x\0\x05", b"\x12x\0\x0a", b"\x22x\0\x05")] == [3, 2, 1]


def test_counters_hit_miss_and_default() -> None:
    switch = table_switch(key("exact", "data", "a"), with_counters=True)
    switch.table_insert("t", entry(2, ExactMatch(1)))
    switch.table_set_default("t", ActionCall("forward", (5,)))
    assert [port_of(switch, data) for data in (b"\x01xxx", b"\x02xxx!")] == [2, 5]
    assert switch.direct_counter_read("t", (ExactMatch(1),), 0) == CounterValue(1, 4)
    assert switch.direct_counter_read("t", None, 0) == CounterValue(1, 5)
    switch.table_set_default("t", None)
    assert port_of(switch, b"\x02xxx") == 0


def test_constant_entries_prefer_the_first() -> None:
    def constant(port: str, priority: int, mask: str) -> Json:
        return {
            "match_key": [{"match_type": "ternary", "key": "0x10", "mask": mask}],
            "action_entry": {"action_id": 3, "action_data": [port]},
            "priority": priority,
        }

    switch = table_switch(key("ternary", "data", "a"), entries=[constant("0x2", 1, "0xf0"), constant("0x3", 2, "0x10")])
    assert [port_of(switch, data) for data in (b"\x11xxx", b"\x31xxx", b"\x01xxx")] == [2, 3, 0]


def test_a_group_picks_a_live_member_by_weight() -> None:
    switch = table_switch(key("exact", "data", "b"), type="indirect_ws", action_profile="p", default_entry=...)
    for number in (1, 2):
        switch.member_insert("p", number, ActionCall("forward", (number,)))
    switch.group_insert("p", 7, [GroupMember(1, 2, watch_port=1), GroupMember(2)])
    switch.table_insert("t", TableEntry((ExactMatch(0),), GroupRef(7)))
    assert [port_of(switch, bytes([n, 0, 0, 0])) for n in range(6)] == [1, 1, 2, 1, 1, 2]
    switch.set_port_up(1, False)
    assert [port_of(switch, bytes([n, 0, 0, 0])) for n in range(3)] == [2, 2, 2]
    with pytest.raises(NotReadyError):
        switch.group_delete("p", 7)
    with pytest.raises(NotReadyError):
        switch.member_delete("p", 1)


def test_idle_entries_are_reported_after_each_timeout_without_a_hit() -> None:
    switch = table_switch(key("exact", "data", "a"), support_timeout=True)
    switch.table_insert("t", entry(2, ExactMatch(1), idle_timeout_ns=100))
    expected = IdleTimeout("t", (ExactMatch(1),), 0)
    switch.advance_time(99)
    assert switch.wait_stream_event(0) is None
    switch.advance_time(100)
    switch.advance_time(199)
    assert [switch.wait_stream_event(0), switch.wait_stream_event(0)] == [expected, None]
    switch.advance_time(300)
    assert [switch.wait_stream_event(0), switch.wait_stream_event(0)] == [expected, None]
    sent(switch, b"\x01xxx", timing=Timing(now_ns=310))
    assert switch.table_idle_ns("t", (ExactMatch(1),), 0) == 0
    switch.advance_time(410)
    assert switch.wait_stream_event(0) == expected


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (entry(1, ExactMatch(256)), "value 0x100 does not fit 8 bits"),
        (entry(512, ExactMatch(1)), "parameter 'port': value 0x200 does not fit 9 bits"),
        (entry(1, LpmMatch(1, 8)), "expected ExactMatch, got LpmMatch"),
        (entry(1), "expected 1 matches, got 0"),
        (TableEntry((ExactMatch(1),), ActionCall("fly")), "(valid: 'forward', 'nothing')"),
        (TableEntry((ExactMatch(1),), GroupRef(1)), "no action profile"),
        (entry(1, ExactMatch(1), idle_timeout_ns=5), "does not support idle timeouts"),
    ],
)
def test_bad_entries_are_refused(bad: TableEntry, message: str) -> None:
    switch = table_switch(key("exact", "data", "a"))
    with pytest.raises(InvalidRequestError) as caught:
        switch.table_insert("t", bad)
    assert message in str(caught.value)


def test_meters_follow_rfc_2698() -> None:
    meters = [{"name": "m", "id": 0, "is_direct": False, "size": 1, "rate_count": 2, "type": "packets"}]
    switch = one_action(
        call("execute_meter", named("meter_array", "m"), const(0), field("scalars", "n")),
        call("assign", A, field("scalars", "n")),
        meter_arrays=meters,
    )
    assert sent(switch, b"1234")[0].data[0] == 0
    switch.meter_write("m", 0, MeterConfig(1, 1, 2, 2))
    colours = [sent(switch, b"1234", timing=Timing(now_ns=0))[0].data[0] for _ in range(4)]
    assert colours == [0, 1, 2, 2]
    # half a second later: one peak token, no committed one
    assert sent(switch, b"1234", timing=Timing(now_ns=5 * 10**8))[0].data[0] == 1


def test_registers_and_counters_out_of_range_change_nothing() -> None:
    switch = one_action(
        call("register_write", named("register_array", "r"), A, const(0x1FF)),
        call("register_read", B, named("register_array", "r"), A),
        call("count", named("counter_array", "k"), A),
        register_arrays=[{"name": "r", "id": 0, "size": 4, "bitwidth": 8}],
        counter_arrays=[{"name": "k", "id": 0, "is_direct": False, "size": 4}],
    )
    assert sent(switch, b"\x03234")[0].data[1] == 0xFF
    assert sent(switch, b"\x04234")[0].data == b"\x04234"
    assert list(switch.register_read_all("r")) == [0, 0, 0, 0xFF]
    assert [value.packets for value in switch.counter_read_all("k")] == [0, 0, 0, 1]


# ---- stacks

STACKED = {"h0": [("v", 7), ("more", 1)], "h1": [("v", 7), ("more", 1)]}


def stack_switch(*calls: Json) -> OracleSwitch:
    document = program(
        STACKED,
        METADATA,
        [
            state(
                "start",
                0,
                [{"op": "extract", "parameters": [{"type": "stack", "value": "hs"}]}],
                [{"type": "stack_field", "value": ["hs", "more"]}],
                [transition(1, "start", width=1), transition(None, None)],
            )
        ],
        [action("in", 1, [], TO_PORT_1, *calls)],
        {"init_table": "t", "tables": [keyless({"name": "in", "id": 1})]},
    )
    # both instances have one type
    document["headers"][3]["header_type"] = "h0_t"
    document["header_stacks"] = [{"name": "hs", "id": 0, "header_type": "h0_t", "header_ids": [2, 3]}]
    return switch_with(document)


def test_stacks_extract_push_and_pop() -> None:
    stack = named("header_stack", "hs")
    assert sent(stack_switch(), b"\x03\x04!")[0].data == b"\x03\x04!"
    assert sent(stack_switch(call("pop", stack, const(1))), b"\x03\x04!")[0].data == b"\x04!"
    pushed = stack_switch(call("push", stack, const(1)))
    assert sent(pushed, b"\x03\x04!")[0].data == b"\x03!"
    last = op("dereference_header_stack", stack, op("last_stack_index", None, stack))
    assigned = call(
        "assign", {"type": "expression", "value": {"op": "access_field", "left": last, "right": 0}}, const(5)
    )
    assert sent(stack_switch(assigned), b"\x03\x04!")[0].data == b"\x03\x0a!"
    beyond = op("dereference_header_stack", stack, const(9))
    lost = call(
        "assign",
        {"type": "expression", "value": {"op": "access_field", "left": beyond, "right": 0}},
        const(5),
    )
    assert sent(stack_switch(lost), b"\x03\x04!")[0].data == b"\x03\x04!"


def test_a_stack_that_is_full_is_a_parser_error() -> None:
    switch = stack_switch(call("assign", field("h0", "v"), std("parser_error")))
    assert sent(switch, b"\x03\x05\x07!")[0].data == b"\x07\x05\x07!"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64), st.integers(0, 511))
def test_any_bytes_go_through_unharmed(data: bytes, port: int) -> None:
    branch = conditional("c", 0, op("==", A, const(1)), "t", None)
    run_all = action("in", 1, [], TO_PORT_1, call("assign", A, op("-", A, const(1))))
    switch = switch_with(
        program(
            BYTE,
            METADATA,
            START,
            [run_all],
            {"init_table": "c", "conditionals": [branch], "tables": [keyless(run_all)]},
        )
    )
    (output,) = switch.process(port, data)
    if len(data) >= 4 and data[0] == 1:
        assert output == Output(1, b"\0" + data[1:])
    else:
        assert output == Output(0, data)
