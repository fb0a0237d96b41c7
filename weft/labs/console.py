"""Fenced blocks of the language `console`: commands, each followed by its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_PROMPT = "$ "


@dataclass(frozen=True)
class Example:
    """A command of a page and the output lines shown below it; `first_line` is the number of the first shown line.

    `source` is the command as in the page, on one line or several.
    """

    command: str
    shown: list[str]
    first_line: int
    source: str


def examples_of(block: Sequence[str], start: int = 0) -> Iterator[Example]:
    r"""Yield the examples of one block; `start` is the number of its first line in the page, from 0.

    A command continues over lines that end with a backslash, and is returned as one line. Raises ValueError with the
    line's number, from 1, if a block does not begin with a command.
    """
    number = 0
    while number < len(block):
        line = block[number]
        if not line.startswith(_PROMPT):
            raise ValueError(f"line {start + number + 1}: a console block begins with '$ COMMAND', not {line!r}")
        begin = number
        command = line[len(_PROMPT) :]
        while command.endswith("\\") and number + 1 < len(block):
            number += 1
            command = command[:-1].rstrip() + " " + block[number].strip()
        number += 1
        first = number
        while number < len(block) and not block[number].startswith(_PROMPT):
            number += 1
        source = "\n".join(block[begin:first]).removeprefix(_PROMPT)
        yield Example(command, list(block[first:number]), start + first, source)
