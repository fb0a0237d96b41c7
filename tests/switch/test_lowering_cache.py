"""Compiled programs in the on-disk cache."""

from __future__ import annotations

import gc
import json
from collections import deque
from pathlib import Path

import pytest
from router_program import router_document

from weft.switch.bmv2json import load_program
from weft.switch.lowering import jit, program
from weft.switch.lowering.shape import ProgramShape
from weft.switch.native import NativeSwitch

FRAME = b"\x03\x80" + b"frame of some length"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    return tmp_path


def compile_afresh(monkeypatch: pytest.MonkeyPatch) -> NativeSwitch:
    monkeypatch.setattr(jit, "_compiled", {})
    switch = NativeSwitch()
    switch.load(load_program(router_document()))
    assert switch.process(510, FRAME) == [(7, FRAME[2:])]
    return switch


def test_second_compilation_neither_lowers_nor_compiles(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_afresh(monkeypatch)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(program, "lower_program", lambda *_: pytest.fail("lowered although it was cached"))
    compile_afresh(monkeypatch)


def test_damaged_cache_file_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_afresh(monkeypatch)
    (file,) = cache.iterdir()
    good = file.read_bytes()
    for damaged in (b"", good[:100], good[:-1] + bytes([good[-1] ^ 1])):
        file.write_bytes(damaged)
        compile_afresh(monkeypatch)
        assert file.read_bytes() == good


def test_other_versions_of_the_lowering_are_compiled_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_afresh(monkeypatch)
    monkeypatch.setattr(jit, "_environment", lambda: ("another version",))
    compile_afresh(monkeypatch)
    assert len(list(cache.iterdir())) == 2


def test_shape_survives_the_cache() -> None:
    shape = program.lower_program(load_program(router_document())).shape
    restored = ProgramShape.from_json(json.loads(json.dumps(shape.to_json())))
    assert restored.registers == shape.registers
    assert (restored.counter_offsets, restored.meter_offsets) == (shape.counter_offsets, shape.meter_offsets)
    assert restored.runtime.keys() == shape.runtime.keys()


def test_same_program_is_compiled_once_per_process() -> None:
    document = load_program(router_document())
    first, second = NativeSwitch(), NativeSwitch()
    first.load(document)
    second.load(document)
    assert first._running.compiled is second._running.compiled


def test_programs_that_no_switch_runs_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller may push one pipeline after the other forever."""
    monkeypatch.setattr(jit, "_recent", deque(maxlen=1))
    document = json.loads(router_document())
    switch = NativeSwitch()
    hashes = []
    for name in ("first", "second", "third"):
        loaded = load_program(json.dumps(document | {"program": name}))
        hashes.append(loaded.content_hash)
        switch.load(loaded)
    gc.collect()
    kept = {key[0] for key in jit._compiled}
    assert [content_hash in kept for content_hash in hashes] == [False, False, True]
