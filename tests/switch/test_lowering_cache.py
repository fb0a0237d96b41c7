"""The on-disk cache of object code."""

from __future__ import annotations

from pathlib import Path

import pytest
from router_program import router_document

from switch.bmv2json import load_program
from switch.lowering import jit
from switch.native import NativeSwitch

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


def test_second_compilation_takes_the_code_from_the_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_afresh(monkeypatch)
    assert len(list(cache.glob("*.o"))) == 1
    monkeypatch.setattr(jit, "_optimise", lambda *_: pytest.fail("compiled although it was cached"))
    compile_afresh(monkeypatch)


def test_damaged_cache_file_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_afresh(monkeypatch)
    (file,) = cache.glob("*.o")
    good = file.read_bytes()
    for damaged in (b"", good[:100], good[:-1] + bytes([good[-1] ^ 1])):
        file.write_bytes(damaged)
        compile_afresh(monkeypatch)
        assert file.read_bytes() == good


def test_cache_does_not_grow_without_end(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "CACHED_PROGRAMS", 2)
    for name in ("a.o", "b.o", "c.o"):
        (cache / name).write_bytes(b"old")
    compile_afresh(monkeypatch)
    assert len(list(cache.glob("*.o"))) == 2


def test_same_program_is_compiled_once_per_process() -> None:
    program = load_program(router_document())
    first, second = NativeSwitch(), NativeSwitch()
    first.load(program)
    second.load(program)
    assert first._loaded() is second._loaded()
