"""The JSON document: structure that simple_switch and the P4Runtime server rely on; the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from p4_programs import compile_text, program_text

from weft.compiler import compile_file
from weft.compiler.cli import EXIT_BAD_INPUT, compile_command
from weft.compiler.lower.masks import combine, range_to_masks
from weft.switch.bmv2json import load_program

FABRIC = Path(__file__).parents[2] / "p4" / "fabric.p4"


def table(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for pipeline in document["pipelines"] for entry in pipeline["tables"] if entry["name"] == name)


def test_fabric_compiles_and_loads() -> None:
    result = compile_file(FABRIC)
    load_program(result.json_text())
    names = {entry["name"] for pipeline in result.json["pipelines"] for entry in pipeline["tables"]}
    for entry in result.p4info.tables:
        assert entry.preamble.name in names


def test_two_compilations_give_the_same_bytes(tmp_path: Path) -> None:
    text = program_text(locals="register<bit<8>>(2) r;", apply="r.write(0, hdr.data.a);")
    first, second = compile_text(tmp_path, text), compile_text(tmp_path, text)
    assert first.json_text() == second.json_text()
    assert first.p4info_bytes() == second.p4info_bytes()


def test_key_forms(tmp_path: Path) -> None:
    locals_ = """
        table t {
            key = {
                hdr.data.c & 0x0ff0: exact @name("masked");
                hdr.extra.isValid(): exact;
                hdr.data.d[15:8]: ternary;
                hdr.data.a + 1: optional @name("sum");
                meta.flag: exact;
            }
            actions = { NoAction; }
        }"""
    keys = table(compile_text(tmp_path, program_text(locals=locals_, apply="t.apply();")).json, "I.t")["key"]
    assert keys[0] == {"match_type": "exact", "name": "masked", "target": ["data", "c"], "mask": "0x0ff0"}
    assert keys[1]["target"] == ["extra", "$valid$"]
    assert [key["match_type"] for key in keys] == ["exact", "exact", "ternary", "ternary", "exact"]
    assert keys[3]["target"][0] == "scalars"
    assert keys[4]["target"] == ["scalars", "userMetadata.flag"]


def test_entries_and_priorities(tmp_path: Path) -> None:
    locals_ = """
        action set(bit<8> v) { meta.x = v; }
        table t {
            key = { hdr.data.a: ternary; hdr.data.b: range; }
            actions = { set; }
            entries = {
                const priority = 10: (1 &&& 0xf, 2 .. 5): set(1);
                priority = 30: (_, _): set(2);
                (7, 9): set(3);
            }
        }"""
    entries = table(compile_text(tmp_path, program_text(locals=locals_, apply="t.apply();")).json, "I.t")["entries"]
    assert [entry["priority"] for entry in entries] == [21, 1, 2]
    assert entries[0]["match_key"] == [
        {"match_type": "ternary", "key": "0x01", "mask": "0x0f"},
        {"match_type": "range", "start": "0x02", "end": "0x05"},
    ]
    assert entries[1]["match_key"][1] == {"match_type": "range", "start": "0x00", "end": "0xff"}


def test_field_lists_clone_and_digest(tmp_path: Path) -> None:
    result = compile_text(
        tmp_path,
        program_text(
            metadata="@field_list(1, 2) bit<8> kept; @field_list(2) bit<9> port;",
            apply="clone_preserving_field_list(CloneType.I2E, 5, 2); digest(1, { hdr.data.a, meta.kept });",
        ),
    )
    lists = {entry["name"]: entry for entry in result.json["field_lists"]}
    assert [len(lists[name]["elements"]) for name in ("field_list1", "field_list2")] == [1, 2]
    primitives = {primitive["op"]: primitive for action in result.json["actions"] for primitive in action["primitives"]}
    clone = primitives["clone_ingress_pkt_to_egress"]["parameters"]
    assert int(clone[1]["value"], 16) == lists["field_list2"]["id"]
    assert len(result.json["learn_lists"][0]["elements"]) == 2
    assert all(entry["id"] > 0 for entry in result.json["field_lists"] + result.json["learn_lists"])


def test_aliases_name_the_intrinsic_metadata(tmp_path: Path) -> None:
    aliases = {alias: tuple(field) for alias, field in compile_text(tmp_path, program_text()).json["field_aliases"]}
    assert aliases["intrinsic_metadata.priority"] == ("standard_metadata", "priority")
    assert aliases["queueing_metadata.enq_qdepth"] == ("standard_metadata", "enq_qdepth")


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 255), (3, 17), (128, 255), (1, 254), (7, 8)])
def test_ranges_cover_exactly(low: int, high: int) -> None:
    masks = range_to_masks(low, high, 8)
    matched = [key for key in range(256) if any(key & mask == value for value, mask in masks)]
    assert matched == list(range(low, high + 1))


def test_select_keys_are_padded_to_bytes() -> None:
    assert combine([0xABA, 3], [12, 2]) == [(0x0ABA03, 0x0FFF03)]


def test_command_line(tmp_path: Path) -> None:
    source = tmp_path / "p.p4"
    source.write_text(program_text(apply="hdr.data.a = LEVEL;"))
    output, p4info = tmp_path / "out" / "p.json", tmp_path / "out" / "p.txtpb"
    done = CliRunner().invoke(
        compile_command, [str(source), "-D", "LEVEL=4", "-o", str(output), "--p4info", str(p4info)]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(output.read_text())["program"] == str(source)
    assert "p4.config.v1.P4Info" in p4info.read_text()
    for stage in ("tokens", "ast", "ir", "json"):
        dumped = CliRunner().invoke(compile_command, [str(source), "-D", "LEVEL=4", "--dump", stage])
        assert dumped.exit_code == 0
        assert "egress_spec" in dumped.output
    failed = CliRunner().invoke(compile_command, [str(source)])
    assert failed.exit_code == EXIT_BAD_INPUT
    assert "'LEVEL' is not declared" in failed.output
