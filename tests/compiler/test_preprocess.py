"""The preprocessor: macros, conditions, includes, and the places tokens keep."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft.compiler.diagnostics import CompileError, Diagnostics
from weft.compiler.lexer import tokenize
from weft.compiler.preprocess import Preprocessor
from weft.compiler.source import SourceFile


def words(text: str, defines: dict[str, str] | None = None, folder: Path | None = None) -> list[str]:
    diagnostics = Diagnostics()
    name = str((folder or Path()) / "main.p4")
    tokens = Preprocessor(diagnostics, [], defines).run(SourceFile(name, text))
    diagnostics.raise_if_errors()
    return [token.text for token in tokens[:-1]]


EXPANSIONS = (
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
        # The preprocessor takes P4 for assembler, where the text after "#" is a comment and "##" need not make a token.
        ("# the headers\na\n # it's \"so\n# 5 apples\n#\nb", "a b"),
        ("#define FIELD(h, f) h ## . ## f\nFIELD(hdr, x)", "hdr . x"),
        ("#define AT(n) @name( ## n)\nAT(\"x\")", '@ name ( "x" )'),
        ("#define CAT(a, b) a ## b\nCAT(+, +) CAT(+, x) CAT(, x) CAT(x, )", "++ + x x x"),
        ("#define W(n, v) n ## w ## v\nW(8, 0x10)", "8w0x10"),
        ("#define CAT(a, b) a ## b\nCAT(8w, 0x10) CAT(16, w1) CAT(0x, ff)", "8w0x10 16w1 0xff"),
        ("#define W 8w\n#define NOT_USED it's 0x\nx", "x"),
        ("#define KEPT(a) # b a\nc KEPT(3)", "c # b 3"),
        ("#define S(x) #x\nS(a+b.c) S( f(1,  2) )", '"a+b.c" "f(1, 2)"'),
        ("#define V(f, ...) f(0, ## __VA_ARGS__)\nV(a) V(a, 1) V(a, 1, 2)", "a ( 0 ) a ( 0 , 1 ) a ( 0 , 1 , 2 )"),
        ("#define V(f, more...) f(more)\nV(a, 1, 2)", "a ( 1 , 2 )"),
        # A backslash at the end of a line joins the lines, within words and comments, too.
        ("#define LONG_\\\nNAME 3\nLONG_NAME", "3"),
        ("#define F\\\n(x) x\nF(1) a\\\nb c // comment \\\n still comment\nd", "1 ab c d"),
        ('"a\\\nb"', '"ab"'),
        ("#define X 1 // not /* a comment\nX /* b */", "1"),
        ('#define X "/*"\nX /* b */', '"/*"'),
        # For the preprocessor a string ends with its line.
        ('#define T\n"a\n#ifdef T\nb\n#else\nc\n#endif\nd"', '"a\n\nb\n\n\n\nd"'),
        ('#if 0\na "b\n#else\nc\n#endif\nd"e"', 'c d "e"'),
    ]
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXPANSIONS)
def test_expansion(text: str, expected: str) -> None:
    assert " ".join(words(text)) == expected


@pytest.mark.skipif(shutil.which("cpp") is None, reason="cpp is not on PATH")
@pytest.mark.parametrize(("text", "expected"), EXPANSIONS)
def test_the_preprocessor_of_p4c_says_the_same(text: str, expected: str) -> None:
    """p4c runs it with these options, and skips lines that begin with "#"."""
    command = ["cpp", "-C", "-undef", "-nostdinc", "-x", "assembler-with-cpp"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    tokens = tokenize(SourceFile("expanded", done.stdout))
    assert " ".join(token.text for token in tokens if token.kind != "directive") == expected


def test_an_unknown_directive_is_ignored_with_a_warning() -> None:
    diagnostics = Diagnostics()
    text = "#inlcude <core.p4>\n#if 0\n#skipped\n#endif\n# inlcude\na"
    tokens = Preprocessor(diagnostics).run(SourceFile("main.p4", text))
    assert [token.text for token in tokens] == ["a", ""]
    assert [(each.severity, each.kind) for each in diagnostics.messages] == [("warning", "directive")]
    assert "#inlcude" in diagnostics.messages[0].message


@pytest.mark.parametrize(("file", "architecture"), [("psa.p4", "psa"), ("tna.p4", "tna"), ("bmv2/psa.p4", "psa")])
def test_an_include_of_another_architecture_says_that_only_v1model_is_there(file: str, architecture: str) -> None:
    diagnostics = Diagnostics()
    Preprocessor(diagnostics).run(SourceFile("main.p4", f"#include <{file}>"))
    (error,) = diagnostics.messages
    assert error.severity == "error"
    assert all(word in error.message for word in (file, architecture, "v1model"))


def test_an_unreadable_character_in_a_macro_counts_only_where_it_is_used() -> None:
    text = "#define A it's\n#define B(x) x\nb"
    assert words(text) == ["b"]
    with pytest.raises(CompileError) as caught:
        words(f"{text}\nA")
    (error,) = caught.value.diagnostics
    assert error.span is not None
    assert error.span.first.line_column() == (4, 1)


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
