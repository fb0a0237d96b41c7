"""Source texts and places in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_WORD = re.compile(r"\S+")
LINE_SPLICE = re.compile(r"\\\r?\n")
"""A backslash at the end of a line, which joins the next line to it, even within a word (C11 5.1.1.2)."""


@dataclass(slots=True, eq=False)
class SourceFile:
    """One file's text; turns offsets into lines and columns on demand.

    `included_by` is the #include directive that led there.
    """

    name: str
    text: str
    included_by: Token | None = None
    _line_starts: list[int] = field(default_factory=list)

    def line_starts(self) -> list[int]:
        """Offsets at which the lines begin (computed once)."""
        if not self._line_starts:
            self._line_starts = [0]
            find = self.text.find
            position = find("\n")
            while position >= 0:
                self._line_starts.append(position + 1)
                position = find("\n", position + 1)
        return self._line_starts

    def line_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column of an offset."""
        starts = self.line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Text of a 1-based line without its newline."""
        starts = self.line_starts()
        end = starts[line] - 1 if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")


class Token:
    """A token and where it was spelled.

    `kind` is the spelling itself for punctuation and keywords, else "id", "integer", "text", "end" or
    "bad". A token that came out of a macro names the macro's use in `expansion`.
    """

    __slots__ = ("expansion", "hidden", "kind", "offset", "source", "text")

    def __init__(
        self,
        kind: str,
        text: str,
        source: SourceFile,
        offset: int,
        expansion: Token | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.kind = kind
        self.text = text
        self.source = source
        self.offset = offset
        self.expansion = expansion
        self.hidden = hidden

    @property
    def end(self) -> int:
        """Offset just past the token."""
        text, start = self.source.text, self.offset
        end = start + len(self.text)
        if text.find("\\", start, end) < 0 or text.startswith(self.text, start):
            return end
        # Lines joined within the token make it longer in the source than its text.
        spliced = 0
        for match in LINE_SPLICE.finditer(text, start):
            if match.start() >= end + spliced:
                break
            spliced += len(match[0])
        return end + spliced

    def place(self) -> Token:
        """The token a reader should be pointed to: the use of the outermost macro, or the token itself."""
        token = self
        while token.expansion is not None:
            token = token.expansion
        return token

    def line_column(self) -> tuple[int, int]:
        """1-based line and column of `place()`."""
        place = self.place()
        return place.source.line_column(place.offset)

    def __repr__(self) -> str:
        line, column = self.line_column()
        return f"{self.source.name}:{line}:{column}:{self.text!r}"


@dataclass(slots=True, eq=False)
class Span:
    """A stretch of source from the first token's start to the last token's end.

    It never changes. It is not declared frozen because every node has one: that would double the time to make it.
    """

    first: Token
    last: Token

    def fragment(self) -> str:
        """The source text of the span; the first token's when it crosses files or macros."""
        text, start, end = self._extent()
        return text[start:end]

    def words(self) -> Iterator[str]:
        """The words of the source text, which is not copied: spans within each other may all be long."""
        text, start, end = self._extent()
        return (match[0] for match in _WORD.finditer(text, start, end))

    def _extent(self) -> tuple[str, int, int]:
        first, last = self.first.place(), self.last.place()
        if first.source is not last.source or last.end < first.offset:
            return first.text, 0, len(first.text)
        return first.source.text, first.offset, last.end
