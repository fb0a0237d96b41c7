"""What BMv2 JSON quotes of the source: the beginning, whitespace as single spaces."""

from __future__ import annotations

import random

from weft.compiler.emit_json.places import FRAGMENT_LIMIT, source_info
from weft.compiler.lexer import tokenize
from weft.compiler.source import SourceFile, Span


def test_fragments_are_cut_after_their_words_are_joined() -> None:
    draw = random.Random(1)
    for _ in range(300):
        words = ["x" * draw.randrange(1, 30) for _ in range(draw.randrange(1, 30))]
        text = "".join(word + draw.choice([" ", "\n", "  \t"]) for word in words)
        tokens = tokenize(SourceFile("a.p4", text))
        whole = " ".join(words)
        quoted = whole if len(whole) <= FRAGMENT_LIMIT else whole[: FRAGMENT_LIMIT - 3] + "..."
        info = source_info(Span(tokens[0], tokens[-1]))
        assert info["source_info"]["source_fragment"] == quoted


def test_a_long_span_is_not_read_to_its_end() -> None:
    tokens = tokenize(SourceFile("a.p4", "a " * 100_000))
    read = [word for word, _ in zip(Span(tokens[0], tokens[-1]).words(), range(3), strict=False)]
    assert read == ["a", "a", "a"]
