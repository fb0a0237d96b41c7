"""Mutations of program text: of its tokens, and of its bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d\w*|\"[^\"\n]*\"|&&&|\+\+|<<|\|[+-]\||\s+|.", re.DOTALL)
_NUMBERS = [
    "0",
    "1",
    "255",
    "8w256",
    "0x",
    "4s7",
    "-1",
    "1w1",
    "0w0",
    "99999999999999999999",
    "2147483648",
    "8s-1",
]
_WORDS = """
    bit int bool varbit error string void header header_union struct enum type typedef parser
    control package extern action table state transition select default accept reject key actions
    entries const in out inout if else switch case return exit for break continue apply true false
    this match_kind value_set tuple list _ ... isValid setValid setInvalid push_front pop_front next
    last lastIndex size minSizeInBits extract emit lookahead advance length verify main hit miss
    action_run standard_metadata_t hdr meta packet exact lpm ternary range optional selector
    priority @name @hidden @optional #if #endif #define #include #undef #error __LINE__ abstract
    clone3 recirculate_preserving_field_list
""".split()  # noqa: SIM905 - a word a line would be longer than this file
_SIGNS = list("(){}[]<>;:,.=+-*/%&|^~!?@#$\\\"'`")
_SIGNS += ["++", "&&&", "..", "|+|", "|-|", "<<", ">>", "==", "!=", "//", "/*", "*/"]
_ODD_BYTES = ["\x00", "\xff", "é", "\u2028", "\r", "\t", "\x1a", "\ufeff", "\\\n"]
_LONGEST_CHARACTERS = 60_000


def mutate_text(rng: random.Random, text: str, other: str) -> str:
    """`text` with a few changes; `other` lends pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        text = rng.choice(_MUTATIONS)(rng, text, other)
    return text[:_LONGEST_CHARACTERS]


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _TOKEN.finditer(text) if not match.group().isspace()]


def _word(rng: random.Random, text: str, other: str) -> str:
    source = rng.choice((text, text, other))
    spans = _spans(source)
    if spans and rng.random() < 0.6:
        start, end = rng.choice(spans)
        return source[start:end]
    return rng.choice(rng.choice((_WORDS, _SIGNS, _NUMBERS)))


def _replace(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text)
    if not spans:
        return _word(rng, other, other)
    start, end = rng.choice(spans)
    return text[:start] + _word(rng, text, other) + text[end:]


def _insert(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text) or [(0, 0)]
    _, end = rng.choice(spans)
    return f"{text[:end]} {_word(rng, text, other)} {text[end:]}"


def _delete(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text)
    if not spans:
        return other
    first = rng.randrange(len(spans))
    last = min(len(spans) - 1, first + rng.choice((0, 0, 0, 1, 3, 20)))
    return text[: spans[first][0]] + text[spans[last][1] :]


def _repeat(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text)
    if not spans:
        return text
    first = rng.randrange(len(spans))
    last = min(len(spans) - 1, first + rng.choice((0, 1, 5, 30)))
    start, end = spans[first][0], spans[last][1]
    return text[:end] + f" {text[start:end]}" * rng.choice((1, 1, 2, 200)) + text[end:]


def _swap(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text)
    if len(spans) < 2:
        return text
    (a, b), (c, d) = sorted(rng.sample(spans, 2))
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _statement(rng: random.Random, text: str, other: str) -> str:
    """A piece of `other` from one ; { or } to another, put behind a ; { or } of `text`."""
    ends = [match.end() for match in re.finditer(r"[;{}]", other)]
    places = [match.end() for match in re.finditer(r"[;{}]", text)]
    if len(ends) < 2 or not places:
        return text
    first = rng.randrange(len(ends) - 1)
    last = min(len(ends) - 1, first + rng.choice((1, 1, 2, 5)))
    at = rng.choice(places)
    return text[:at] + other[ends[first] : ends[last]] + text[at:]


def _nest(rng: random.Random, text: str, other: str) -> str:
    spans = _spans(text)
    if not spans:
        return text
    start, end = rng.choice(spans)
    opening, closing = rng.choice(
        (("(", ")"), ("{", "}"), ("[", "]"), ("~(", ")"), ("-", ""), ("!", ""), ("if (true) ", ""))
    )
    depth = rng.choice((1, 2, 50, 3000))
    return text[:start] + opening * depth + text[start:end] + closing * depth + text[end:]


def _cut(rng: random.Random, text: str, other: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _character(rng: random.Random, text: str, other: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice((*_ODD_BYTES, chr(rng.randrange(1, 0x250)))) + text[at + rng.randrange(2) :]


def _directive(rng: random.Random, text: str, other: str) -> str:
    word = _word(rng, text, other)
    line = rng.choice(
        (
            f"#define {word} {_word(rng, text, other)}",
            f"#define {word}(x, y) x ## y {word}(y, x)",
            f"#define {word} {word} {word}",
            f"#if {word} > {_word(rng, text, other)} && defined({word})",
            f"#ifdef {word}",
            "#else",
            "#elif 1 / 0",
            "#endif",
            f'#include "{word}"',
            "#include <core.p4>",
            '#line 7 "x"',
            f"#undef {word}",
            "#",
            f"#{word} {word}",
            f"@pragma {word}",
        )
    )
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


_MUTATIONS: tuple[Callable[[random.Random, str, str], str], ...] = (
    _replace,
    _replace,
    _replace,
    _insert,
    _insert,
    _delete,
    _delete,
    _repeat,
    _swap,
    _statement,
    _statement,
    _nest,
    _cut,
    _character,
    _directive,
)
