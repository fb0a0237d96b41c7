"""A program that sends packets down every path of v1model, as the packet's first byte asks, and reports in egress."""

from __future__ import annotations

from json_builder import (
    Json,
    action,
    call,
    conditional,
    const,
    extract,
    field,
    named,
    op,
    program,
    state,
    std,
    table,
    transition,
    wrapped,
)

ORDER = [("ingress", 8), ("egress", 8), ("argument", 16)]
REPORT = [
    ("instance_type", 8),
    ("kept", 8),
    ("lost", 8),
    ("egress_port", 16),
    ("egress_rid", 16),
    ("length", 16),
    ("enq_qdepth", 24),
    ("deq_qdepth", 24),
    ("enq_timestamp", 32),
    ("deq_timedelta", 32),
    ("passes", 8),
]
FIELDS = [name for name, _ in REPORT]
REPORT_BYTES = sum(width for _, width in REPORT) // 8
UNICAST, DROP, MULTICAST, CLONE, RESUBMIT, DIGEST, TRUNCATE, RECIRCULATE, ENDLESS, EXIT = range(10)
PRIORITY, ASSERT = 10, 11


def _keyless(name: str, number: int, run: Json, next_node: str | None) -> Json:
    entry = {"action_id": run["id"], "action_const": True, "action_data": [], "action_entry_const": True}
    return table(name, number, [], [run], next_node, default_entry=entry)


def _orders(name: str, number: int, kind: str, actions: dict[int, Json], none: Json, then: str | None) -> Json:
    entries = [
        {
            "match_key": [{"match_type": "exact", "key": f"0x{value:02x}"}],
            "action_entry": {"action_id": each["id"], "action_data": []},
            "priority": 1,
        }
        for value, each in actions.items()
    ]
    listed = [*actions.values(), none]
    return table(name, number, [key_of(kind)], listed, then, entries=entries)


def key_of(kind: str) -> Json:
    return {"match_type": "exact", "target": ["order", kind], "mask": None, "name": kind}


def paths_json() -> Json:
    argument, kept, lost = field("order", "argument"), field("scalars", "kept"), field("scalars", "lost")
    prepare = action(
        "prepare",
        1,
        [],
        call("assign", std("egress_spec"), argument),
        call("assign", lost, const(9)),
        call("assign", kept, wrapped(op("&", op("+", kept, const(1)), const(0xFF)))),
    )
    ingress = {
        DROP: action("drop", 2, [], call("mark_to_drop", named("header", "standard_metadata"))),
        MULTICAST: action("multicast", 3, [], call("assign", std("mcast_grp"), argument)),
        CLONE: action("clone", 4, [], call("clone_ingress_pkt_to_egress", argument, const(1))),
        RESUBMIT: action("again", 5, [], call("resubmit", const(1))),
        DIGEST: action("learn", 6, [], call("generate_digest", const(1), const(1))),
        TRUNCATE: action("cut", 7, [], call("truncate", const(40))),
        EXIT: action("leave", 8, [], call("assign", lost, const(1)), call("exit"), call("assign", lost, const(2))),
        PRIORITY: action("rank", 9, [], call("assign", std("priority"), const(5))),
        ASSERT: action("check", 10, [], call("assert", wrapped(op("==", argument, const(1))))),
    }
    egress = {
        DROP: action("drop_late", 12, [], call("mark_to_drop", named("header", "standard_metadata"))),
        CLONE: action("clone_late", 13, [], call("clone_egress_pkt_to_egress", argument, const(1))),
        RECIRCULATE: action("round", 14, [], call("recirculate", const(1))),
    }
    none = action("none", 15, [])
    bump = action("bump", 16, [], call("assign", lost, wrapped(op("+", lost, const(100)))))
    sources = {
        **{name: std(name) for name in ("instance_type", "egress_port", "egress_rid", "enq_qdepth", "deq_qdepth")},
        "enq_timestamp": std("enq_timestamp"),
        "deq_timedelta": std("deq_timedelta"),
        "length": std("packet_length"),
        "kept": kept,
        "lost": lost,
        "passes": op("&", op("+", field("report", "passes"), const(1)), const(0xFF)),
    }
    report = action(
        "report", 17, [], *(call("assign", field("report", name), wrapped(sources[name])) for name in FIELDS)
    )  # fmt: skip
    fresh = op("==", std("instance_type"), const(0))
    first = op("and", fresh, op("==", field("report", "passes"), const(1)))
    endless = op("==", field("order", "egress"), const(ENDLESS))
    return program(
        {"order": ORDER, "report": REPORT},
        [("kept", 8), ("lost", 8)],
        [state("start", 0, [extract("order"), extract("report")], [], [transition(None, None)])],
        [prepare, *ingress.values(), *egress.values(), none, bump, report],
        {
            "init_table": "prepare_tbl",
            "conditionals": [
                conditional("is_fresh", 0, fresh, "ingress_orders", "is_endless"),
                conditional("is_endless", 1, endless, "ingress_orders", None),
            ],
            "tables": [
                _keyless("prepare_tbl", 1, prepare, "is_fresh"),
                _orders("ingress_orders", 2, "ingress", ingress, none, "bump_tbl"),
                _keyless("bump_tbl", 3, bump, None),
            ],
        },
        {
            "init_table": "report_tbl",
            "conditionals": [
                conditional("is_original", 2, first, "egress_orders", "is_copy"),
                conditional("is_copy", 3, op("==", std("instance_type"), const(5)), "egress_orders", None),
            ],
            "tables": [
                _keyless("report_tbl", 4, report, "is_original"),
                _orders("egress_orders", 5, "egress", egress, none, None),
            ],
        },
        field_lists=[{"id": 1, "name": "kept", "elements": [kept]}],
        learn_lists=[{"id": 1, "name": "digest", "elements": [argument, std("ingress_port"), kept]}],
    )  # fmt: skip


def paths_packet(ingress: int = 0, egress: int = 0, argument: int = 1, payload: int = 30) -> bytes:
    """A packet that asks for these paths."""
    return bytes([ingress, egress]) + argument.to_bytes(2, "big") + bytes(REPORT_BYTES) + bytes(range(payload))


def report_of(data: bytes) -> dict[str, int]:
    """The report header of a packet that left."""
    bits = int.from_bytes(data[4 : 4 + REPORT_BYTES], "big")
    left = REPORT_BYTES * 8
    values = {}
    for name, width in REPORT:
        left -= width
        values[name] = bits >> left & ((1 << width) - 1)
    return values
