"""A small router that uses every kind of P4Runtime entity: its BMv2 JSON and its P4Info."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format
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

CPU_PORT = 510
IPV4 = [
    ("version_ihl", 8),
    ("tos", 8),
    ("length", 16),
    ("id", 16),
    ("fragment", 16),
    ("ttl", 8),
    ("protocol", 8),
    ("checksum", 16),
    ("src", 32),
    ("dst", 32),
]
HEADERS = {
    "packet_in": [("ingress_port", 9), ("reserved", 7)],
    "packet_out": [("egress_port", 9), ("reserved", 7)],
    "ethernet": [("dst", 48), ("src", 48), ("type", 16)],
    "ipv4": IPV4,
}
ROUTES, ACL, ECMP, POLICE = 0x02000001, 0x02000002, 0x02000003, 0x02000004
ROUTE, PERMIT, DENY, SET_PORT, POLICE_ACTION, LEARN, NO_ACTION, MULTICAST, CLONE = (
    0x01000000 + i for i in range(1, 10)
)
PROFILE, COUNTER, DIRECT_COUNTER, METER, DIRECT_METER, REGISTER, DIGEST, VALUE_SET = (
    0x11000001,
    0x12000001,
    0x13000001,
    0x14000001,
    0x15000001,
    0x16000001,
    0x17000001,
    0x03000001,
)
CELLS = 16
ACL_SIZE = 8


def _actions() -> dict[str, Json]:
    scalars = "scalars"
    index_of = param(0)
    listed = [
        action(
            "route",
            1,
            [("port", 9), ("mac", 48)],
            call("assign", std("egress_spec"), param(0)),
            call("assign", field("ethernet", "dst"), param(1)),
            call("assign", field("ipv4", "ttl"), op("-", field("ipv4", "ttl"), const(1))),
        ),
        action("permit", 2, []),
        action("deny", 3, [], call("mark_to_drop", named("header", "standard_metadata"))),
        action("set_port", 4, [("port", 9)], call("assign", std("egress_spec"), param(0))),
        action(
            "police",
            5,
            [("index", 32)],
            call("execute_meter", named("meter_array", "meter"), index_of, field(scalars, "colour")),
            call("count", named("counter_array", "counter"), index_of),
            call("register_read", field(scalars, "cell"), named("register_array", "register"), index_of),
            call("assign", field(scalars, "cell"), op("+", field(scalars, "cell"), const(1))),
            call("register_write", named("register_array", "register"), index_of, field(scalars, "cell")),
        ),
        action("learn", 6, [], call("generate_digest", const(1), const(1))),
        action("NoAction", 7, []),
        action("multicast", 8, [("group", 16)], call("assign", std("mcast_grp"), param(0))),
        action("clone", 9, [("session", 32)], call("clone_ingress_pkt_to_egress", param(0), const(1))),
        action(
            "send_out",
            10,
            [],
            call("assign", std("egress_spec"), field("packet_out", "egress_port")),
            call("remove_header", named("header", "packet_out")),
        ),
        action(
            "to_cpu",
            11,
            [],
            call("add_header", named("header", "packet_in")),
            call("assign", field("packet_in", "ingress_port"), std("ingress_port")),
        ),
    ]
    return {each["name"]: each for each in listed}


def _keyless(name: str, number: int, run: Json, next_node: str | None) -> Json:
    entry = {"action_id": run["id"], "action_const": True, "action_data": [], "action_entry_const": True}
    return table(name, number, [], [run], next_node, default_entry=entry)


def router_json() -> Json:
    """The program as a JSON document."""
    actions = _actions()
    none = actions["NoAction"]
    states = [
        state(
            "start",
            0,
            [],
            [std("ingress_port")],
            [transition(CPU_PORT, "parse_packet_out"), transition(None, "parse_ethernet")],
        ),
        state("parse_packet_out", 1, [extract("packet_out")], [], [transition(None, "parse_ethernet")]),
        state(
            "parse_ethernet",
            2,
            [extract("ethernet")],
            [field("ethernet", "type")],
            [
                transition(0x0800, "parse_ipv4"),
                {"type": "parse_vset", "value": "ip_types", "mask": None, "next_state": "parse_ipv4"},
                transition(None, None),
            ],
        ),
        state("parse_ipv4", 3, [extract("ipv4")], [], [transition(None, None)]),
    ]
    police_actions = [actions[name] for name in ("police", "learn", "multicast", "clone", "NoAction")]
    ingress = {
        "init_table": "is_packet_out",
        "conditionals": [
            conditional("is_packet_out", 0, valid("packet_out"), "tbl_send_out", "is_ipv4"),
            conditional("is_ipv4", 1, valid("ipv4"), "routes", "police_table"),
        ],
        "tables": [
            _keyless("tbl_send_out", 0, actions["send_out"], None),
            table(
                "routes",
                1,
                [key("lpm", "ipv4", "dst")],
                [actions["route"], none, actions["deny"]],
                "ecmp",
                with_counters=True,
                support_timeout=True,
            ),
            table(
                "ecmp",
                2,
                [key("exact", "ipv4", "dst")],
                [actions["set_port"], none],
                "acl",
                type="indirect_ws",
                action_profile="selector",
                default_entry=...,
            ),
            table(
                "acl",
                3,
                [
                    key("ternary", "ipv4", "src"),
                    key("range", "ipv4", "ttl"),
                    key("ternary", "ipv4", "protocol"),
                ],
                [actions["deny"], actions["permit"]],
                "police_table",
                max_size=ACL_SIZE,
                direct_meters="acl_meter",
            ),
            table("police_table", 4, [key("exact", "standard_metadata", "ingress_port")], police_actions),
        ],
        "action_profiles": [
            {
                "name": "selector",
                "id": 0,
                "max_size": 8,
                "selector": {"algo": "crc32", "input": [field("ipv4", "src"), field("ipv4", "dst")]},
            }
        ],
    }
    egress = {
        "init_table": "is_to_cpu",
        "conditionals": [
            conditional("is_to_cpu", 2, op("==", std("egress_port"), const(CPU_PORT)), "tbl_to_cpu", None)
        ],
        "tables": [_keyless("tbl_to_cpu", 5, actions["to_cpu"], None)],
    }
    checksum_input = [field("ipv4", name) for name, _ in IPV4 if name != "checksum"]
    return program(
        HEADERS,
        [("colour", 2), ("cell", 32), ("pad", 6)],
        states,
        list(actions.values()),
        ingress,
        egress,
        parse_vsets=[{"name": "ip_types", "id": 0, "compressed_bitwidth": 16}],
        counter_arrays=[
            {"name": "counter", "id": 0, "is_direct": False, "size": CELLS},
            {"name": "routes_counter", "id": 1, "is_direct": True, "binding": "routes"},
        ],
        meter_arrays=[
            _meter("meter", 0),
            {
                **_meter("acl_meter", 1),
                "is_direct": True,
                "binding": "acl",
                "result_target": ["scalars", "colour"],
            },
        ],
        register_arrays=[{"name": "register", "id": 0, "size": CELLS, "bitwidth": 32}],
        learn_lists=[
            {
                "id": 1,
                "name": "digest_t",
                "elements": [field("ethernet", "src"), std("ingress_port")],
            }
        ],
        field_lists=[{"id": 1, "name": "fl", "elements": [std("ingress_port")]}],
        calculations=[{"name": "ipv4_sum", "id": 0, "algo": "csum16", "input": checksum_input}],
        checksums=[
            {
                "name": "ipv4_checksum",
                "id": 0,
                "target": ["ipv4", "checksum"],
                "type": "generic",
                "calculation": "ipv4_sum",
                "if_cond": valid("ipv4"),
            }
        ],
    )


def _meter(name: str, number: int) -> Json:
    return {
        "name": name,
        "id": number,
        "is_direct": False,
        "size": CELLS,
        "rate_count": 2,
        "type": "packets",
    }


@cache
def router_document() -> bytes:
    return json.dumps(router_json()).encode()


P4INFO = f"""
tables {{
  preamble {{ id: {ROUTES} name: "routes" alias: "routes" }}
  match_fields {{ id: 1 name: "ipv4.dst" bitwidth: 32 match_type: LPM }}
  action_refs {{ id: {ROUTE} }} action_refs {{ id: {NO_ACTION} scope: TABLE_ONLY }}
  action_refs {{ id: {DENY} scope: DEFAULT_ONLY }}
  direct_resource_ids: {DIRECT_COUNTER} size: 1024 idle_timeout_behavior: NOTIFY_CONTROL
}}
tables {{
  preamble {{ id: {ACL} name: "acl" alias: "acl" }}
  match_fields {{ id: 1 name: "ipv4.src" bitwidth: 32 match_type: TERNARY }}
  match_fields {{ id: 2 name: "ipv4.ttl" bitwidth: 8 match_type: RANGE }}
  match_fields {{ id: 3 name: "ipv4.protocol" bitwidth: 8 match_type: OPTIONAL }}
  action_refs {{ id: {DENY} }} action_refs {{ id: {PERMIT} }}
  direct_resource_ids: {DIRECT_METER} size: {ACL_SIZE}
}}
tables {{
  preamble {{ id: {ECMP} name: "ecmp" alias: "ecmp" }}
  match_fields {{ id: 1 name: "ipv4.dst" bitwidth: 32 match_type: EXACT }}
  action_refs {{ id: {SET_PORT} }} action_refs {{ id: {NO_ACTION} }}
  implementation_id: {PROFILE} size: 1024
}}
tables {{
  preamble {{ id: {POLICE} name: "police_table" alias: "police_table" }}
  match_fields {{ id: 1 name: "ingress_port" bitwidth: 9 match_type: EXACT }}
  action_refs {{ id: {POLICE_ACTION} }} action_refs {{ id: {LEARN} }} action_refs {{ id: {NO_ACTION} }}
  action_refs {{ id: {MULTICAST} }} action_refs {{ id: {CLONE} }}
  size: 1024
}}
actions {{
  preamble {{ id: {ROUTE} name: "route" alias: "route" }}
  params {{ id: 1 name: "port" bitwidth: 9 }} params {{ id: 2 name: "mac" bitwidth: 48 }}
}}
actions {{ preamble {{ id: {PERMIT} name: "permit" alias: "permit" }} }}
actions {{ preamble {{ id: {DENY} name: "deny" alias: "deny" }} }}
actions {{
  preamble {{ id: {SET_PORT} name: "set_port" alias: "set_port" }}
  params {{ id: 1 name: "port" bitwidth: 9 }}
}}
actions {{
  preamble {{ id: {POLICE_ACTION} name: "police" alias: "police" }}
  params {{ id: 1 name: "index" bitwidth: 32 }}
}}
actions {{ preamble {{ id: {LEARN} name: "learn" alias: "learn" }} }}
actions {{ preamble {{ id: {NO_ACTION} name: "NoAction" alias: "NoAction" }} }}
actions {{
  preamble {{ id: {MULTICAST} name: "multicast" alias: "multicast" }}
  params {{ id: 1 name: "group" bitwidth: 16 }}
}}
actions {{
  preamble {{ id: {CLONE} name: "clone" alias: "clone" }}
  params {{ id: 1 name: "session" bitwidth: 32 }}
}}
action_profiles {{
  preamble {{ id: {PROFILE} name: "selector" alias: "selector" }}
  table_ids: {ECMP} with_selector: true size: 8 max_group_size: 4 sum_of_weights {{}}
}}
counters {{
  preamble {{ id: {COUNTER} name: "counter" alias: "counter" }}
  spec {{ unit: BOTH }} size: {CELLS}
}}
direct_counters {{
  preamble {{ id: {DIRECT_COUNTER} name: "routes_counter" alias: "routes_counter" }}
  spec {{ unit: BOTH }} direct_table_id: {ROUTES}
}}
meters {{ preamble {{ id: {METER} name: "meter" alias: "meter" }} spec {{ unit: PACKETS }} size: {CELLS} }}
direct_meters {{
  preamble {{ id: {DIRECT_METER} name: "acl_meter" alias: "acl_meter" }}
  spec {{ unit: PACKETS }} direct_table_id: {ACL}
}}
controller_packet_metadata {{
  preamble {{ id: 0x4000001 name: "packet_in" alias: "packet_in"
    annotations: "@controller_header(\\"packet_in\\")" }}
  metadata {{ id: 1 name: "ingress_port" bitwidth: 9 }} metadata {{ id: 2 name: "reserved" bitwidth: 7 }}
}}
controller_packet_metadata {{
  preamble {{ id: 0x4000002 name: "packet_out" alias: "packet_out"
    annotations: "@controller_header(\\"packet_out\\")" }}
  metadata {{ id: 1 name: "egress_port" bitwidth: 9 }}
  metadata {{ id: 2 name: "reserved" bitwidth: 7 annotations: "@padding" }}
}}
value_sets {{
  preamble {{ id: {VALUE_SET} name: "ip_types" alias: "ip_types" }}
  match {{ id: 1 name: "type" bitwidth: 16 match_type: EXACT }} size: 4
}}
registers {{
  preamble {{ id: {REGISTER} name: "register" alias: "register" }}
  type_spec {{ bitstring {{ bit {{ bitwidth: 32 }} }} }} size: {CELLS}
}}
digests {{
  preamble {{ id: {DIGEST} name: "digest_t" alias: "digest_t" }}
  type_spec {{ struct {{ name: "digest_t" }} }}
}}
type_info {{
  structs {{
    key: "digest_t"
    value {{
      members {{ name: "src" type_spec {{ bitstring {{ bit {{ bitwidth: 48 }} }} }} }}
      members {{ name: "port" type_spec {{ bitstring {{ bit {{ bitwidth: 9 }} }} }} }}
    }}
  }}
}}
"""


@cache
def router_p4info() -> p4i.P4Info:
    return text_format.Parse(P4INFO, p4i.P4Info())


def router_config(cookie: int = 7) -> p4r.ForwardingPipelineConfig:
    """The forwarding pipeline config of the router."""
    config = p4r.ForwardingPipelineConfig(p4info=router_p4info(), p4_device_config=router_document())
    config.cookie.cookie = cookie
    return config


def entity(text: str) -> p4r.Entity:
    """An entity from text; table, action and array ids are written as numbers."""
    return text_format.Parse(text, p4r.Entity())


def update(kind: str, text: str) -> p4r.Update:
    """An update from `INSERT`, `MODIFY` or `DELETE` and an entity's text."""
    types: dict[str, Any] = dict(p4r.Update.Type.items())
    return p4r.Update(type=types[kind], entity=entity(text))
