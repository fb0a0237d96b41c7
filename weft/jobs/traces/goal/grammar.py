"""The statements of GOAL text, one per line (LogGOPSim's txt2bin)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.jobs.traces.errors import TraceError

_NUMBER = r"[0-9]{1,19}"
_TOO_LONG = re.compile(r"(?<![A-Za-z0-9_])[0-9]{20}", re.ASCII)
_LABEL = r"[A-Za-z][A-Za-z0-9_]*"
_STATEMENT = re.compile(
    rf"""
    num_ranks \s+ (?P<num_ranks>{_NUMBER})
    | rank \s+ (?P<rank>{_NUMBER}) \s* \{{
    | (?P<end>\}})
    | (?P<later>{_LABEL}) \s+ (?P<requires>i?requires) \s+ (?P<earlier>{_LABEL})
    | (?: (?P<label>{_LABEL}) \s* : \s* )?
      (?:
        calc \s+ (?P<calc>{_NUMBER})
        | (?: send \s+ (?P<sent>{_NUMBER}) \s* b \s+ to | recv \s+ (?P<received>{_NUMBER}) \s* b \s+ from )
          \s+ (?P<peer>-1|{_NUMBER}) (?: \s+ tag \s+ (?P<tag>-1|{_NUMBER}) )?
      )
      (?: \s+ cpu \s+ (?P<cpu>[0-9]{{1,9}}) )? (?: \s+ nic \s+ [0-9]{{1,9}} )?
    """,
    re.VERBOSE | re.ASCII,
)
VALID = (
    "num_ranks N; rank R {; [LABEL:] calc T [cpu C]; [LABEL:] send Nb to R [tag T] [cpu C] [nic K]; "
    "[LABEL:] recv Nb from R [tag T] [cpu C] [nic K]; LABEL requires LABEL; LABEL irequires LABEL; }"
)
_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its line, and its parts by the grammar's group names."""

    line: int
    said: dict[str, str]

    def number(self, name: str, default: int = 0) -> int:
        """Return a number in the statement, or the default."""
        text = self.said.get(name)
        return default if text is None else int(text)


def statements(lines: Iterable[str], source: str) -> Iterator[Statement]:
    """Yield the statements of a text. Raises TraceError, with line, for an invalid one or an unclosed comment."""
    opened = 0
    for line, text in enumerate(lines, 1):
        if opened or "/" in text:
            text, opened = _without_comments(text, opened, line)
        text = text.strip()
        if not text:
            continue
        match = _STATEMENT.fullmatch(text)
        if match is None and _TOO_LONG.search(text):
            raise TraceError("a number of too many digits", place=f"{source}, line {line}", valid="up to 19")
        if match is None:
            shown = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
            raise TraceError(f"{shown!r} is not a GOAL statement", place=f"{source}, line {line}", valid=VALID)
        yield Statement(line, {name: value for name, value in match.groupdict().items() if value is not None})
    if opened:
        raise TraceError("the comment does not end", place=f"{source}, line {opened}")


def _without_comments(text: str, opened: int, line: int) -> tuple[str, int]:
    """Return a line without comments, and the line where a comment still open began, else 0."""
    kept: list[str] = []
    at = 0
    while at < len(text):
        if opened:
            end = text.find("*/", at)
            if end < 0:
                return " ".join(kept), opened
            at, opened = end + 2, 0
            continue
        whole, begun = text.find("//", at), text.find("/*", at)
        if whole >= 0 and (begun < 0 or whole < begun):
            kept.append(text[at:whole])
            return " ".join(kept), 0
        if begun < 0:
            kept.append(text[at:])
            break
        kept.append(text[at:begun])
        at, opened = begun + 2, line
    return " ".join(kept), opened
