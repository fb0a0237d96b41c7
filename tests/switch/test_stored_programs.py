"""Checked programs in the on-disk cache."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from router_program import router_document

from weft.compiler.artifacts import compile_artifacts
from weft.paths import FABRIC_P4
from weft.switch.bmv2json import Bmv2JsonError, load_program, stored
from weft.switch.bmv2json.stored import load_stored_program


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "document", [router_document, lambda: compile_artifacts(FABRIC_P4).json_text.encode()], ids=["router", "fabric"]
)
def test_a_program_reads_back_as_it_was_checked(
    cache: Path, monkeypatch: pytest.MonkeyPatch, document: Callable[[], bytes]
) -> None:
    data = document()
    checked = load_stored_program(data)
    monkeypatch.setattr(stored, "load_program", lambda _: pytest.fail("checked although it was cached"))
    read = load_stored_program(data)
    assert read == checked
    assert read is not checked
    assert [*read.actions] == [*checked.actions]
    with pytest.raises(TypeError):
        read.headers["another"] = next(iter(read.headers.values()))  # type: ignore[index]


def test_a_damaged_file_is_replaced(cache: Path) -> None:
    data = router_document()
    load_stored_program(data)
    (file,) = cache.iterdir()
    good = file.read_bytes()
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert load_stored_program(data) == load_program(data)
    assert file.read_bytes() == good


def test_another_version_of_the_reader_checks_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_stored_program(router_document())
    monkeypatch.setattr(stored, "_environment", lambda: ("another version",))
    load_stored_program(router_document())
    assert len(list(cache.iterdir())) == 2


def test_a_wrong_document_is_not_stored(cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(Bmv2JsonError):
            load_stored_program(b"{}")
    assert not list(cache.iterdir())


class Runs:
    """An object that a plain pickle would run code for."""

    def __reduce__(self) -> object:
        return print, ("it ran",)


@pytest.mark.parametrize("other", [Runs(), "a text"])
def test_reading_creates_programs_only(
    other: object, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored._STORE, "read", lambda _: {"program": pickle.dumps(other)})
    assert load_stored_program(router_document()) == load_program(router_document())
    assert not capsys.readouterr().out
