"""Programs in the on-disk cache: used only while nothing that they depend on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.compiler import Artifacts, CompileError, compile_artifacts, compile_file


@pytest.fixture
def compilations(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by one whenever the compiler runs."""
    made: list[object] = []

    def counted(*arguments: object, **options: object) -> object:
        made.append(arguments)
        return compile_file(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("weft.compiler.driver.compile_file", counted)
    return made


def test_second_compilation_comes_from_the_cache(program: Path, compilations: list[object]) -> None:
    first = compile_artifacts(program)
    assert compile_artifacts(program) == first == Artifacts.of(compile_file(program))
    assert len(compilations) == 1
    (warning,) = first.warnings
    assert warning.kind == "mismatch"
    assert warning.place is not None
    assert (warning.place.line, warning.place.source_line.strip()[:8]) == (10, "apply { ")


def test_without_the_cache_nothing_is_read_or_written(program: Path, cache: Path, compilations: list[object]) -> None:
    compile_artifacts(program, use_cache=False)
    assert not cache.exists()
    compile_artifacts(program)
    compile_artifacts(program, use_cache=False)
    assert len(compilations) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "program.p4").write_text((folder / "program.p4").read_text() + "\n"),
        lambda folder: (folder / "types.p4").write_text((folder / "types.p4").read_text() + "\n"),
    ],
    ids=["the program", "an included file"],
)
def test_changed_text_is_compiled_anew(program: Path, compilations: list[object], change: object) -> None:
    compile_artifacts(program)
    change(program.parent)  # type: ignore[operator]
    compile_artifacts(program)
    compile_artifacts(program)
    assert len(compilations) == 2


def test_file_that_now_comes_first_is_noticed(program: Path, compilations: list[object], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (program.parent / "types.p4").rename(elsewhere / "types.p4")
    earlier = tmp_path / "earlier"
    folders = [earlier, elsewhere]
    before = compile_artifacts(program, include_paths=folders)
    assert compile_artifacts(program, include_paths=folders) == before
    earlier.mkdir()
    (earlier / "types.p4").write_text((elsewhere / "types.p4").read_text().replace("bit<8> a", "bit<16> a"))
    assert compile_artifacts(program, include_paths=folders) != before
    assert len(compilations) == 2


def test_options_and_names_are_distinguished(program: Path, compilations: list[object]) -> None:
    other = program.with_name("other.p4")
    other.write_text(program.read_text())
    texts = {
        compile_artifacts(program).json_text,
        compile_artifacts(other).json_text,
        compile_artifacts(program, defines={"standard": "standard_metadata"}).json_text,
    }
    assert len(compilations) == 3
    assert len(texts) >= 2


def test_broken_program_is_reported_each_time(program: Path, compilations: list[object]) -> None:
    program.write_text(program.read_text().replace("PORT;", "PORT"))
    for _ in range(2):
        with pytest.raises(CompileError, match="expected ';'"):
            compile_artifacts(program)
    assert len(compilations) == 2


def test_missing_program_is_an_error(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot read"):
        compile_artifacts(tmp_path / "nothing.p4")
