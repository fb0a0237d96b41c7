"""The preprocessor: macros, conditions, includes, and the places tokens keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.compiler.diagnostics import Diagnostics
from weft.compiler.preprocess import Preprocessor
from weft.compiler.source import SourceFile


def words(text: str, defines: dict[str, str] | None = None, folder: Path | None = None) -> list[str]:
    diagnostics = Diagnostics()
    name = str((folder or Path()) / "main.p4")
    tokens = Preprocessor(diagnostics, [], defines).run(SourceFile(name, text))
    diagnostics.raise_if_errors()
    return [token.text for token in tokens[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 4\nN + N", "4 + 4"),
        ("#define TWICE(x) x x\nTWICE(a b)", "a b a b"),
        ("#define LANE(i) lane_ ## i\nLANE(7)", "lane_7"),
        ("#define CAT(a, b) a ## b\n#define NAME CAT(field, 3)\nNAME", "field3"),
        ("#define S(x) #x\nS(a + b)", '"a + b"'),
        ("#define F(x) G(x)\n#define G(x) x + 1\nF(F(2))", "2 + 1 + 1"),
        ("#define A A + 1\nA", "A + 1"),
        ("#define V(...) f(__VA_ARGS__)\nV(1, 2)", "f ( 1 , 2 )"),
        ("#define EMPTY\na EMPTY b", "a b"),
        ("#define F() x\nF() F", "x F"),
        ("#define LONG a \\\n  b\nLONG c", "a b c"),
        ("#if defined(X) && X > 2\nyes\n#elif 1\nelse_if\n#else\nno\n#endif", "else_if"),
        ("#ifdef X\na\n#else\nb\n#endif", "b"),
        ("#ifndef X\n#define X 3\n#endif\n#if X * 2 == 6 && !(X < 1)\nok\n#endif", "ok"),
        ("#if 0\n' unreadable \" text\n#endif\nfine", "fine"),
        ("a // comment\n/* b\n# define */ c", "a c"),
        ("  #  define X 1\nX", "1"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert " ".join(words(text)) == expected


def test_sixty_four_lanes() -> None:
    text = "#define L4(m, a) m(a##0) m(a##1) m(a##2) m(a##3)\n"
    text += "#define L16(m, a) L4(m, a##0) L4(m, a##1) L4(m, a##2) L4(m, a##3)\n"
    text += "#define FIELD(n) bit<32> lane_##n;\nL16(FIELD, 1) L16(FIELD, 2) L16(FIELD, 3) L16(FIELD, 4)"
    tokens = words(text)
    assert tokens.count("bit") == 64
    assert len({token for token in tokens if token.startswith("lane_")}) == 64


def test_command_line_definitions() -> None:
    assert words("#if LEVEL == 3\nNAME\n#endif", {"LEVEL": "3", "NAME": "x y"}) == ["x", "y"]


def test_a_command_line_definition_needs_an_identifier() -> None:
    diagnostics = Diagnostics()
    Preprocessor(diagnostics, [], {"3D": "1"})
    assert [each.message for each in diagnostics.messages] == ["cannot define '3D': not an identifier"]


def test_includes_are_relative_to_the_including_file(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.p4").write_text('#include "b.p4"\nfrom_a')
    (inner / "b.p4").write_text("from_b")
    assert words('#include "inner/a.p4"\nmain', folder=tmp_path) == ["from_b", "from_a", "main"]


def test_core_and_v1model_are_built_in() -> None:
    assert "standard_metadata_t" in words("#include <v1model.p4>")
    assert "I" not in words("#include <v1model.p4>")
    assert "I" in words("#define V1MODEL_VERSION 20200408\n#include <v1model.p4>")


def test_tokens_of_a_macro_point_to_its_use() -> None:
    tokens = Preprocessor(Diagnostics()).run(SourceFile("m.p4", "#define BAD oops\n\n   BAD"))
    assert tokens[0].text == "oops"
    assert tokens[0].line_column() == (3, 4)
    assert tokens[0].source.line_column(tokens[0].offset) == (1, 13)
