"""Parses a lab's page into sections, blocks and questions, and its solution into answers.

Every lab has the same form (docs/course.md, "What a lab consists of"): README.md has the sections *Goal* and
*Questions*, a numbered list; in solution.md each answer is folded away and begins with its question's number in bold
type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from weft.cache.files import read_text
from weft.errors import BadInputError

_PAGE_LIMIT_BYTES = 1 << 20
# Sites of Git repositories and the documentation's site fold an element `details`. CommonMark reads the lines after an
# empty one as Markdown.
_ANSWER = re.compile(r"^<details>\n<summary>Answer (\d+)</summary>\n\n\*\*\1\.\*\*\s", re.MULTILINE)
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A block of Markdown: its kind in CommonMark's terms, its source and, for a fence, its language.

    `first_line` is its first line's number in the page, from 0; `items` are the sources of a numbered list's items.
    """

    kind: str
    source: str
    first_line: int
    language: str = ""
    items: tuple[str, ...] = ()

    @property
    def lines_inside(self) -> list[str]:
        """Lines of a fenced block, without the fences."""
        return self.source.splitlines()[1:-1]


@dataclass(frozen=True)
class Section:
    """The blocks below a second-level heading; the part before the first such heading has the page's title."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class LabPage:
    """A lab's page: its title and its sections in order, starting with the part before the first heading."""

    path: Path
    title: str
    sections: tuple[Section, ...]

    def section(self, title: str) -> Section:
        """Return the section with a title; BadInputError lists the sections if there is none, or more than one."""
        found = [section for section in self.sections if section.title == title]
        if len(found) != 1:
            titles = ", ".join(f"'{each.title}'" for each in self.sections[1:])
            raise BadInputError(
                f"{len(found)} sections '{title}', where one is needed (there are: {titles})", place=self.path
            )
        return found[0]

    @property
    def questions(self) -> tuple[str, ...]:
        """Sources of the questions, without their numbers; BadInputError without a numbered list."""
        lists = [block for block in self.section("Questions").blocks if block.kind == "ordered_list"]
        if len(lists) != 1:
            raise BadInputError(f"the section 'Questions' has {len(lists)} numbered lists, not one", place=self.path)
        return lists[0].items


def read_lab_page(path: Path) -> LabPage:
    """Read a lab's page; BadInputError if it does not begin with a first-level heading."""
    blocks = list(_blocks(_text(path)))
    if not blocks or not blocks[0].source.startswith("# "):
        raise BadInputError(f"{path}:1: a lab's page begins with its title, '# Lab NUMBER: TITLE'")
    title = blocks[0].source[2:].strip()
    sections = [(title, list[Block]())]
    for block in blocks[1:]:
        if block.kind == "heading" and block.source.startswith("## "):
            sections.append((block.source[3:].strip(), []))
        else:
            sections[-1][1].append(block)
    return LabPage(path, title, tuple(Section(name, tuple(parts)) for name, parts in sections))


def numbers_of_answers(path: Path) -> list[int]:
    """Return the numbers of the questions that a solution answers, folded away, in the solution's order."""
    return [int(number) for number in _ANSWER.findall(_text(path))]


def _text(path: Path) -> str:
    try:
        return read_text(path, _PAGE_LIMIT_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"this page cannot be read: {error}", place=path) from error


def _blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of the outermost level."""
    lines = text.splitlines()
    tokens = _MARKDOWN.parse(text)
    for position, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, end = token.map
        kind = token.type.removesuffix("_open")
        yield Block(
            kind,
            "\n".join(lines[first:end]).rstrip(),
            first,
            token.info.strip() if kind == "fence" else "",
            tuple(_items(lines, tokens[position + 1 :])) if kind == "ordered_list" else (),
        )


def _items(lines: list[str], tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "ordered_list_close" and token.level == 0:
            return
        if token.type == "list_item_open" and token.level == 1 and token.map is not None:
            first, end = token.map
            width = len(token.info + token.markup) + 1
            own = [
                lines[first].lstrip()[width:],
                *(line.removeprefix(" " * width) for line in lines[first + 1 : end]),
            ]
            yield "\n".join(own).strip()
