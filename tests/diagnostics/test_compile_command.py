"""`weft compile`: outputs, warnings, messages for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import weft_compile
from finsy.proto import p4i
from google.protobuf import json_format, text_format


def test_p4info_in_every_format(program: Path, cache: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"info.{suffix}" for suffix in ("txtpb", "txt", "json", "bin")]
    done = weft_compile(program, "-o", tmp_path / "out.json", "--p4runtime-files", ",".join(map(str, files)))
    assert done.exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text())["program"] == str(program)
    read = [
        text_format.Parse(files[0].read_text(), p4i.P4Info()),
        text_format.Parse(files[1].read_text(), p4i.P4Info()),
        json_format.Parse(files[2].read_text(), p4i.P4Info()),
        p4i.P4Info.FromString(files[3].read_bytes()),
    ]
    assert read[0].pkg_info.arch == "v1model"
    assert all(each == read[0] for each in read)


def test_unknown_suffix_names_the_valid_ones(program: Path, tmp_path: Path) -> None:
    done = weft_compile(program, "--p4runtime-files", tmp_path / "info.yaml")
    assert done.exit_code == 2
    assert "valid: .txtpb, .txt, .json, .bin" in done.stderr


def test_macros_from_the_command_line(program: Path, cache: Path) -> None:
    program.write_text("#ifdef NEEDED\n" + program.read_text() + "#endif\n#ifndef __TARGET_BMV2__\nx\n#endif\n")
    assert weft_compile(program, "-DNEEDED").exit_code == 0
    assert weft_compile(program, "-D", "NEEDED=1").exit_code == 0
    assert weft_compile(program, "-DNEEDED", "-U__TARGET_BMV2__").exit_code == 3
    assert weft_compile(program).exit_code == 3


@pytest.mark.parametrize("again", [False, True], ids=["compiled", "from the cache"])
def test_warnings_can_be_left_out_or_be_errors(program: Path, cache: Path, again: bool) -> None:
    if again:
        weft_compile(program)
    compiled = weft_compile(program)
    assert compiled.exit_code == 0
    assert "program.p4:10:" in compiled.stderr
    assert "warning: the value 300 does not fit 'bit<8>' and is truncated to 44 [--Wmismatch]" in compiled.stderr
    assert weft_compile(program, "--Wdisable").stderr == ""
    assert weft_compile("--Wdisable=unused,mismatch", program).stderr == ""
    assert weft_compile("--Wdisable=unused", program).stderr == compiled.stderr
    for options in (["--Werror"], ["--Werror=mismatch"], ["--Wdisable", "--Werror=mismatch"]):
        refused = weft_compile(*options, program, "-o", program.with_suffix(".json"))
        assert refused.exit_code == 3
        assert "error: the value 300" in refused.stderr
        assert not program.with_suffix(".json").exists()
    assert weft_compile("--Werror=unused", program).exit_code == 0


def test_unknown_warning_is_refused(program: Path) -> None:
    done = weft_compile(program, "--Werror=mismatched")
    assert done.exit_code == 2
    assert "unknown warning 'mismatched' (valid: " in done.stderr


def test_messages_as_json(program: Path, cache: Path) -> None:
    program.write_text(program.read_text().replace("meta.value", "meta.valeu").replace("PORT;", "PORTS;"))
    done = weft_compile("--json-diagnostics", program)
    assert done.exit_code == 3
    messages = [json.loads(line) for line in done.stderr.splitlines()]
    error = next(message for message in messages if message["severity"] == "error")
    assert "PORTS" in error["message"]
    place = error["place"]
    assert (place["file"], place["line"]) == (str(program), 10)
    assert place["source_line"][place["column"] - 1 : place["end_column"] - 1] == "PORTS"


def test_colour_only_when_asked_or_on_a_terminal(program: Path, cache: Path) -> None:
    assert "\x1b[" not in weft_compile(program).stderr
    assert "\x1b[" in weft_compile("--color", "always", program).stderr


def test_preprocessed_program_compiles_to_the_same(program: Path, cache: Path, tmp_path: Path) -> None:
    done = weft_compile("-E", program)
    assert done.exit_code == 0
    assert "standard . egress_spec = 3 ;" in done.stdout
    assert "#define" not in done.stdout
    flat = tmp_path / "flat.p4"
    flat.write_text(done.stdout)
    outputs = []
    for source in (program, flat):
        assert weft_compile("--p4info", tmp_path / "info.txtpb", source).exit_code == 0
        outputs.append((tmp_path / "info.txtpb").read_text())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("tokens", "V1Switch"),
        ("ast", "ControlDeclaration"),
        ("ir", "LoweredProgram"),
        ("json", '"pipelines"'),
    ],
)
def test_stages_can_be_dumped(program: Path, cache: Path, stage: str, text: str) -> None:
    done = weft_compile("--dump", stage, program)
    assert done.exit_code == 0
    assert text in done.stdout


def test_errors_in_included_files_show_the_chain_of_includes(program: Path, cache: Path) -> None:
    types = program.with_name("types.p4")
    types.write_text(types.read_text().replace("bit<8> a", "bit<8> a b"))
    done = weft_compile(program)
    assert f"in a file included from {program}:3:\n{types}:2:" in done.stderr


def test_options_that_only_have_one_meaning_here(program: Path, cache: Path, tmp_path: Path) -> None:
    files = ["--p4runtime-files", tmp_path / "info.txt", "-o", tmp_path / "out.json"]
    accepted = ["--p4v", "16", "--target", "bmv2", "--arch", "v1model", "--emit-externs"]
    assert weft_compile(*accepted, *files, program).exit_code == 0
    for refused in (["--std", "p4-14"], ["--arch", "psa"], ["--target", "dpdk"], ["--pp", "out.p4"]):
        done = weft_compile(*refused, program)
        assert done.exit_code == 2
        assert refused[0] in done.stderr


def test_a_source_without_end_is_refused() -> None:
    done = weft_compile("/dev/zero")
    assert done.exit_code == 3
    assert "error: cannot read /dev/zero: this is a device, not a regular file" in done.stderr
