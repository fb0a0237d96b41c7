"""Checked programs behave as plain ones, and end the process where generated code would leave an object."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import ir
from native_twin import Twin

from weft.compiler import compile_file
from weft.switch.bmv2json import load_program
from weft.switch.lowering import bounds
from weft.switch.lowering import program as lowering
from weft.switch.lowering.emitter import I8, I32, I64, Emitter

PROGRAM = Path(__file__).parent / "programs" / "packet_paths.p4"
REGISTER_PROGRAM = """
import os
os.environ["WEFT_CHECKED_PIPELINES"] = "1"
os.environ["WEFT_CACHE_DIR"] = ""
import sys
from weft.switch.bmv2json import load_program
from weft.switch.lowering import registers
from weft.switch.native import NativeSwitch
if sys.argv[1] == "broken":
    registers.bounded_index = lambda emit, size, index: emit.resize(index, 64)
switch = NativeSwitch(name="checked")
switch.load(load_program(sys.stdin.read()))
switch.process(0, bytes([200]) * 8)
print("survived")
"""
REGISTER_SOURCE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> index; bit<32> value; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    register<bit<32>>(16) cells;
    apply { cells.write(hdr.h.index, hdr.h.value); }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def _run(mode: str, json_text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", REGISTER_PROGRAM, mode]
    return subprocess.run(command, input=json_text, capture_output=True, text=True, timeout=120, check=False)


def test_an_index_that_nobody_bounds_ends_the_process(tmp_path: Path) -> None:
    source = tmp_path / "registers.p4"
    source.write_text(REGISTER_SOURCE)
    json_text = compile_file(source).json_text()
    sound = _run("sound", json_text)
    assert sound.stdout == "survived\n", sound.stderr
    broken = _run("broken", json_text)
    assert broken.returncode == -signal.SIGABRT
    assert "the registers: 4 bytes at" in broken.stderr


def test_a_checked_program_treats_packets_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bounds.VARIABLE, "1")
    twin = Twin(compile_file(PROGRAM).json_text().encode())
    for size in range(0, 80, 3):
        twin.process(1, bytes(range(2, 2 + size)))


def _emitter(monkeypatch: pytest.MonkeyPatch) -> Emitter:
    """Of an empty function of a checked program."""
    kept: list[Emitter] = []

    def keep(emit: Emitter) -> None:
        kept.append(emit)
        emit.builder.ret_void()

    monkeypatch.setenv(bounds.VARIABLE, "1")
    monkeypatch.setattr(lowering, "_set_metadata_again", keep)
    lowering.lower_program(load_program(compile_file(PROGRAM).json_text()))
    (emit,) = kept
    emit.continue_in(emit.block("more"))
    return emit


def test_a_constant_offset_is_checked_while_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = _emitter(monkeypatch)
    buffer = emit.local(8)
    emit.store(I64(0), buffer)
    emit.store(I8(0), emit.address(buffer, 7))
    with pytest.raises(bounds.BoundsError, match="4 bytes at 5 of 8"):
        emit.store(I32(0), emit.address(buffer, 5))
    with pytest.raises(bounds.BoundsError, match="4 bytes at -1 of 8"):
        emit.load(emit.address(buffer, -1), I32)


def test_a_part_cannot_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = _emitter(monkeypatch)
    part = emit.part(emit.address(emit.local(16), 4), 4, "part")
    emit.store(I32(0), part)
    with pytest.raises(bounds.BoundsError, match="part: 1 bytes at 4 of 4"):
        emit.store(I8(0), emit.address(part, 4))


def test_an_address_of_unknown_extent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    emit = _emitter(monkeypatch)
    stranger = emit.builder.inttoptr(I64(4096), ir.PointerType())
    with pytest.raises(bounds.BoundsError, match="unknown extent"):
        emit.load(stranger, I8)
