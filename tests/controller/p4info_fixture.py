"""P4Info of fabric.p4's control-plane objects, written by hand.

Pure-logic tests encode against it, so that they need no compiler; `test_fabric_p4info.py` does the same
against the compiler's own output and holds the two together.
"""

from __future__ import annotations

from finsy.proto import p4i

_PREFIX = {
    "table": 0x02,
    "action": 0x01,
    "selector": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "register": 0x16,
}
_KINDS = {"exact": p4i.MatchField.EXACT, "lpm": p4i.MatchField.LPM, "ternary": p4i.MatchField.TERNARY}

ACTIONS: dict[str, dict[str, int]] = {
    "NoAction": {},
    "FabricIngress.set_identity": {"switch_id": 12, "hash_seed": 32, "mac": 48, "ipv4": 32, "ipv6": 128},
    "FabricIngress.set_class": {"class": 3},
    "FabricIngress.permit": {},
    "FabricIngress.deny": {},
    "FabricIngress.punt": {},
    "FabricIngress.neighbours.arp_reply": {"mac": 48},
    "FabricIngress.neighbours.nd_reply": {"mac": 48},
    "FabricIngress.neighbours.unknown_neighbour": {},
    "FabricIngress.forwarding.set_next_hop": {"port": 9, "source_mac": 48, "destination_mac": 48},
    "FabricIngress.forwarding.set_ecmp_group": {"group": 16},
    "FabricIngress.forwarding.no_route": {},
    "FabricIngress.aggregation.set_job": {
        "queue_key": 32, "epoch": 16, "ip_version": 4, "slot_base": 16, "slot_count": 16, "full_bitmap": 32,
        "is_root": 1, "parent_port": 9, "parent_mac": 48, "parent_address": 128, "rank_at_parent": 16,
        "multicast_group": 16,
    },
    "FabricIngress.aggregation.foreign_job": {},
    "FabricIngress.aggregation.child": {"child_rank": 16, "child_bit": 32, "is_switch": 1},
    "FabricIngress.aggregation.parent": {},
    "FabricIngress.aggregation.foreign_port": {},
    "FabricIngress.drops.no_route": {},
    "FabricIngress.drops.ttl_expired": {},
    "FabricEgress.ecn.set_ecn": {"kmin": 19, "kmax": 19, "slope": 32},
    "FabricEgress.ecn.set_ecn_at_enqueue": {"kmin": 19, "kmax": 19, "slope": 32},
    "FabricEgress.telemetry.set_int": {
        "port_rate_code": 4, "ns_per_time_unit": 16, "cells_per_depth_unit": 16,
    },
}  # fmt: skip

# Table: (match fields, actions by last name, direct counter, size).
TABLES: dict[str, tuple[dict[str, tuple[int, str]], list[str], str | None, int]] = {
    "FabricIngress.identity": ({}, ["FabricIngress.set_identity", "NoAction"], None, 1),
    "FabricIngress.class_map": ({"dscp": (6, "exact")}, ["FabricIngress.set_class", "NoAction"], None, 64),
    "FabricIngress.class_map_ipv6": (
        {"dscp": (6, "exact")},
        ["FabricIngress.set_class", "NoAction"],
        None,
        64,
    ),
    "FabricIngress.acl": (
        {
            "port": (9, "ternary"),
            "ether_type": (16, "ternary"),
            "source": (128, "ternary"),
            "destination": (128, "ternary"),
            "protocol": (8, "ternary"),
            "source_port": (16, "ternary"),
            "destination_port": (16, "ternary"),
        },
        ["FabricIngress.permit", "FabricIngress.deny", "FabricIngress.punt"],
        "FabricIngress.acl_counter",
        1024,
    ),
    "FabricIngress.neighbours.arp_responder": (
        {"target_ipv4": (32, "exact")},
        ["FabricIngress.neighbours.arp_reply"],
        "FabricIngress.neighbours.arp_counter",
        1024,
    ),
    "FabricIngress.neighbours.nd_responder": (
        {"target_ipv6": (128, "exact")},
        ["FabricIngress.neighbours.nd_reply"],
        "FabricIngress.neighbours.nd_counter",
        1024,
    ),
    "FabricIngress.forwarding.ipv4_lpm": (
        {"destination": (32, "lpm")},
        [f"FabricIngress.forwarding.{name}" for name in ("set_next_hop", "set_ecmp_group", "no_route")],
        "FabricIngress.forwarding.ipv4_counter",
        16384,
    ),
    "FabricIngress.forwarding.ipv6_lpm": (
        {"destination": (128, "lpm")},
        [f"FabricIngress.forwarding.{name}" for name in ("set_next_hop", "set_ecmp_group", "no_route")],
        "FabricIngress.forwarding.ipv6_counter",
        16384,
    ),
    "FabricIngress.forwarding.ecmp": (
        {"group": (16, "exact")},
        ["FabricIngress.forwarding.set_next_hop", "FabricIngress.forwarding.no_route"],
        None,
        1024,
    ),
    "FabricIngress.aggregation.aggregation_job": (
        {"job_id": (16, "exact")},
        ["FabricIngress.aggregation.set_job", "FabricIngress.aggregation.foreign_job"],
        "FabricIngress.aggregation.job_counter",
        1024,
    ),
    "FabricIngress.aggregation.aggregation_member": (
        {"job_id": (16, "exact"), "port": (9, "exact")},
        [f"FabricIngress.aggregation.{name}" for name in ("child", "parent", "foreign_port")],
        "FabricIngress.aggregation.member_counter",
        16384,
    ),
    "FabricIngress.drops.drops": (
        {"reason": (8, "exact")},
        ["FabricIngress.drops.no_route", "FabricIngress.drops.ttl_expired"],
        "FabricIngress.drops.drop_counter",
        32,
    ),
    "FabricEgress.ecn.ecn_thresholds": (
        {"port": (9, "exact"), "class": (3, "exact")},
        ["FabricEgress.ecn.set_ecn", "FabricEgress.ecn.set_ecn_at_enqueue"],
        "FabricEgress.ecn.ecn_counter",
        4096,
    ),
    "FabricEgress.telemetry.int_port": (
        {"port": (9, "exact")},
        ["FabricEgress.telemetry.set_int"],
        "FabricEgress.telemetry.int_counter",
        512,
    ),
}
COUNTERS = {
    "FabricIngress.port_received": 512,
    "FabricEgress.port_sent": 512,
    "FabricEgress.ecn.ecn_marked": 512,
    "FabricIngress.aggregation.aggregation_outcomes": 8,
}
REGISTERS = {"FabricIngress.aggregation.slot_tag": (8192, 48)}
PACKET_HEADERS = {"packet_out": ("egress_port", "reserved"), "packet_in": ("ingress_port", "reserved")}
SELECTOR = "FabricIngress.forwarding.ecmp_selector"


def fabric_p4info() -> p4i.P4Info:
    """Build the message."""
    info = p4i.P4Info()
    info.pkg_info.arch = "v1model"
    for number, (name, parameters) in enumerate(ACTIONS.items(), 1):
        action = info.actions.add()
        _preamble(action.preamble, "action", number, name)
        for place, (parameter, bits) in enumerate(parameters.items(), 1):
            action.params.add(id=place, name=parameter, bitwidth=bits)
    for number, (name, (fields, actions, counter, size)) in enumerate(TABLES.items(), 1):
        table = info.tables.add(size=size)
        _preamble(table.preamble, "table", number, name)
        for place, (field, (bits, kind)) in enumerate(fields.items(), 1):
            table.match_fields.add(id=place, name=field, bitwidth=bits, match_type=_KINDS[kind])
        for action_name in actions:
            table.action_refs.add(id=_id("action", list(ACTIONS).index(action_name) + 1))
        if counter:
            direct = info.direct_counters.add(direct_table_id=table.preamble.id)
            _preamble(direct.preamble, "direct_counter", number, counter)
            direct.spec.unit = p4i.CounterSpec.BOTH
            table.direct_resource_ids.append(direct.preamble.id)
        table.is_const_table = name.endswith(".drops")
    _add_selector(info)
    _add_arrays(info)
    for number, (name, metadata) in enumerate(PACKET_HEADERS.items(), 1):
        header = info.controller_packet_metadata.add()
        header.preamble.id, header.preamble.name, header.preamble.alias = 0x04000000 + number, name, name
        for place, (field, bits) in enumerate(zip(metadata, (9, 7), strict=True), 1):
            header.metadata.add(id=place, name=field, bitwidth=bits)
    return info


def _add_selector(info: p4i.P4Info) -> None:
    selector = info.action_profiles.add(with_selector=True, size=1024)
    _preamble(selector.preamble, "selector", 1, SELECTOR)
    ecmp = next(table for table in info.tables if table.preamble.alias == "ecmp")
    ecmp.implementation_id = selector.preamble.id
    selector.table_ids.append(ecmp.preamble.id)


def _add_arrays(info: p4i.P4Info) -> None:
    for number, (name, size) in enumerate(COUNTERS.items(), 1):
        counter = info.counters.add(size=size)
        _preamble(counter.preamble, "counter", number, name)
        counter.spec.unit = p4i.CounterSpec.BOTH
    for number, (name, (size, bits)) in enumerate(REGISTERS.items(), 1):
        register = info.registers.add(size=size)
        _preamble(register.preamble, "register", number, name)
        register.type_spec.bitstring.bit.bitwidth = bits


def _id(kind: str, number: int) -> int:
    return _PREFIX[kind] << 24 | number


def _preamble(preamble: p4i.Preamble, kind: str, number: int, name: str) -> None:
    names = [*ACTIONS] if kind == "action" else []
    last = name.rsplit(".", 1)[-1]
    ambiguous = sum(other.rsplit(".", 1)[-1] == last for other in names) > 1
    preamble.id = _id(kind, number)
    preamble.name = name
    preamble.alias = ".".join(name.split(".")[-2:]) if ambiguous else last
