"""P4_16 tokens (specification, section 6.4): one compiled regular expression."""

from __future__ import annotations

import re

from weft.compiler.source import SourceFile, Token

# "apply", "key", "actions", "state", "entries", "type" and "priority" may name things, so they stay identifiers.
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
        "valueset",
        "void",
        "_",
    ]
)

_TOKEN = re.compile(
    r"""
    (?P<directive>(?m:^)[ \t]*\#(?:\\\r?\n|/\*[\s\S]*?\*/|[^\n])*)
  | (?P<space>[ \t\r\f\v]+|\\\r?\n|\n)
  | (?P<comment>//[^\n]*|/\*[\s\S]*?\*/)
  | (?P<id>[A-Za-z_]\w*)
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
    tokens: list[Token] = []
    append = tokens.append
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
            kind = word if word in keywords else "id"
        elif group == "directive":
            kind = "directive"
            hash_offset = word.index("#")
            word = word[hash_offset:]
            offset += hash_offset
        else:
            kind = group or "bad"
        append(Token(kind, word, source, offset))
    return tokens
