"""P4_16 tokens (specification, section 6.4): one compiled regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft.compiler.source import LINE_SPLICE, SourceFile, Token

# "actions", "apply", "entries", "key", "priority", "state", "type" and "value_set" may name things: identifiers.
KEYWORDS = frozenset(
    [
        "abstract",
        "action",
        "bit",
        "bool",
        "break",
        "const",
        "continue",
        "control",
        "default",
        "else",
        "enum",
        "error",
        "exit",
        "extern",
        "false",
        "for",
        "header",
        "header_union",
        "if",
        "in",
        "inout",
        "int",
        "match_kind",
        "out",
        "package",
        "parser",
        "return",
        "select",
        "string",
        "struct",
        "switch",
        "table",
        "this",
        "transition",
        "true",
        "tuple",
        "typedef",
        "varbit",
        "void",
        "_",
    ]
)

_TOKEN = re.compile(
    r"""
    (?P<directive>(?m:^)[ \t]*\#(?:\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*[\s\S]*?\*/|"(?:\\[\s\S]|[^"\\\n])*"|[^\n])*)
  | (?P<space>[ \t\r\f\v]+|\\\r?\n|\n)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*[\s\S]*?\*/)
  | (?P<id>[A-Za-z_]\w*(?:(?:\\\r?\n)+\w+)*)
  | (?P<integer>(?:\d+[ws](?:0[xXbBoOdD])?[0-9a-fA-F_]+|0[xXbBoOdD][0-9a-fA-F_]+|\d[\d_]*)(?!\w))
  | (?P<text>"(?:\\[\s\S]|[^"\\])*")
  | (?P<punct>&&&|\+:|\.\.\.|\|\+\|=|\|-\|=|<<=|\|\+\||\|-\||\.\.|\#\#|\+\+|&&|\|\||==|!=|<=|>=|<<
      |\+=|-=|\*=|/=|%=|&=|\|=|\^=|/(?!\*)|[-+*%&|^~!<>=(){}\[\];:,.?@\#])
  | (?P<bad>/\*|"|\d\w*|.)
    """,
    re.VERBOSE,
)


def tokenize(source: SourceFile, start: int = 0, end: int | None = None) -> list[Token]:
    """Tokens of source.text[start:end], directives as single tokens, an unreadable character as a "bad" token."""
    return list(scan(source, start, end))


def scan(source: SourceFile, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The same one by one."""
    keywords = KEYWORDS
    for match in _TOKEN.finditer(source.text, start, len(source.text) if end is None else end):
        group = match.lastgroup
        if group == "space" or group == "comment":
            continue
        word = match.group()
        offset = match.start()
        if group == "punct":
            kind = word
        elif group == "id":
            if "\\" in word:
                word = LINE_SPLICE.sub("", word)
            kind = word if word in keywords else "id"
        elif group == "directive":
            kind = "directive"
            hash_offset = word.index("#")
            word = word[hash_offset:]
            offset += hash_offset
        else:
            kind = group or "bad"
            if kind == "text" and "\n" in word:
                word = LINE_SPLICE.sub("", word)
        yield Token(kind, word, source, offset)
