"""The reference compiler, where it is installed, says the same about the same programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i
from google.protobuf import text_format
from p4_programs import program_text
from p4c import P4c

from weft.compiler import compile_file

FABRIC = Path(__file__).parents[2] / "p4" / "fabric.p4"
REPEATED = (
    "tables",
    "actions",
    "action_profiles",
    "counters",
    "direct_counters",
    "meters",
    "direct_meters",
    "registers",
    "digests",
    "controller_packet_metadata",
    "value_sets",
)

pytestmark = pytest.mark.reference


def sorted_info(info: p4i.P4Info) -> p4i.P4Info:
    """P4Info with its objects in the order of their ids."""
    for name in REPEATED:
        entries = [type(entry).FromString(entry.SerializeToString()) for entry in getattr(info, name)]
        info.ClearField(name)
        getattr(info, name).extend(sorted(entries, key=lambda entry: entry.preamble.id))
    for table in info.tables:
        references = sorted(table.action_refs, key=lambda entry: entry.id)
        copies = [type(entry).FromString(entry.SerializeToString()) for entry in references]
        table.ClearField("action_refs")
        table.action_refs.extend(copies)
        resources = sorted(table.direct_resource_ids)
        table.ClearField("direct_resource_ids")
        table.direct_resource_ids.extend(resources)
    return info


def reference_text(program: Path, p4c: P4c) -> tuple[str, p4i.P4Info]:
    """p4c's output for a program: BMv2 JSON and P4Info."""
    done = p4c.compiled(program)
    return done.json.read_text(), text_format.Parse(done.p4info.read_text(), p4i.P4Info())


PROGRAMS = {
    "indexed": {
        "locals": """
            counter(8, CounterType.packets) sent; meter(4, MeterType.packets) rate; register<bit<17>>(3) memory;
            action set(bit<9> port) { standard_metadata.egress_spec = port; sent.count(1); }
            table t { key = { hdr.data.a: exact; hdr.data.c: lpm; } actions = { set; NoAction; } size = 77; }""",
        "apply": "t.apply(); rate.execute_meter(1, meta.x); memory.read(hdr.data.d[16:0], 2);",
    },
    "nested": {
        "declarations": """
            header inner_t { bit<8> v; }
            struct empty_t { }
            control Inner(inout bit<8> value) {
                direct_counter(CounterType.bytes) hits;
                action add(bit<8> amount) { value = value + amount; }
                table t { key = { value: ternary @name("v"); } actions = { add; @tableonly NoAction; }
                          default_action = add(3); counters = hits; }
                apply { t.apply(); }
            }""",
        "locals": "Inner() first; Inner() second;",
        "apply": "first.apply(hdr.data.a); second.apply(hdr.data.b);",
    },
    "notes": {
        "metadata": "error problem;",
        "locals": """
            action inner(inout bit<8> x) { x = x + 1; }
            action outer() { inner(hdr.data.a); }
            @note[1 + 2, "a" ++ "b", 3 == 3] @pairs[key=2 * 3, other=true]
            table t { key = { meta.problem: exact; } actions = { outer; NoAction; } }""",
        "apply": """
            t.apply(); outer();
            digest(1, { hdr.data.a, hdr.data.b }); digest<tuple<bit<16>>>(2, { hdr.data.c });""",
    },
}


@pytest.mark.parametrize("name", ["fabric", *PROGRAMS])
def test_p4info_is_the_same(name: str, p4c: P4c, tmp_path: Path) -> None:
    program = FABRIC
    if name != "fabric":
        program = tmp_path / "program.p4"
        program.write_text(program_text(**PROGRAMS[name]))
    ours = compile_file(program)
    text, info = reference_text(program, p4c)
    document = json.loads(text)
    assert sorted_info(ours.p4info) == sorted_info(info)
    for section in ("register_arrays", "counter_arrays", "meter_arrays", "errors"):
        assert described(ours.json[section]) == described(document[section]), section
    # p4c repeats them for every copy of the metadata that it makes for a control's `in` parameter.
    assert described(ours.json["field_aliases"]) == sorted(set(described(document["field_aliases"])))
    assert tables(ours.json) == tables(document)
    assert header_types(ours.json) == header_types(document)
    assert ours.json["deparsers"][0]["order"] == document["deparsers"][0]["order"]


def described(section: list[Any]) -> list[str]:
    """Objects without numbers and source positions, in a canonical order."""
    plain = [
        {key: value for key, value in entry.items() if key not in ("id", "source_info", "result_target")}
        if isinstance(entry, dict)
        else entry
        for entry in section
    ]
    return sorted(json.dumps(entry, sort_keys=True) for entry in plain)


def tables(document: dict[str, Any]) -> dict[str, Any]:
    """Per table with a key: what a controller and the matching depend on."""
    result = {}
    for pipeline in document["pipelines"]:
        for table in pipeline["tables"]:
            if table["key"]:
                keys = [(key["match_type"], key["name"], key["mask"]) for key in table["key"]]
                plain = [table[each] for each in ("match_type", "type", "max_size", "with_counters", "support_timeout")]
                result[table["name"]] = (
                    keys,
                    plain,
                    sorted(set(table["actions"])),
                    len(table.get("entries", [])),
                )
    return result


def header_types(document: dict[str, Any]) -> dict[str, Any]:
    """Fields of the headers (metadata is laid out by each compiler as it likes)."""
    used = {entry["header_type"] for entry in document["headers"] if not entry["metadata"]}
    return {entry["name"]: entry["fields"] for entry in document["header_types"] if entry["name"] in used}
