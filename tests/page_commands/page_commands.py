"""Finds the command lines in the fenced blocks of all pages, and which test runs each."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pages
from tests.benchmarks.test_smoke import ELSEWHERE as BENCHMARKS_ELSEWHERE
from tests.benchmarks.test_smoke import SMALL as SMALL_BENCHMARKS
from tests.page_commands.tables import ELSEWHERE, NO_TEST, WHOLE_PAGES
from tests.test_documents import FOLDERS
from weft.paths import ROOT

_FENCE = re.compile(r"^(\s*)```(\S*)\s*$")
_SHELL = ("bash", "sh", "shell")
_PROMPTED = ("", "console", "text", *_SHELL)
_PROMPT = re.compile(r"^\s*(?:\$ |(?=mininet> ))")
_PROMPT_OR_ROOTS = re.compile(rf"{_PROMPT.pattern}|^# ")
"""Root's prompt counts only in a block that has another prompt: elsewhere "# " begins a remark."""
_PROGRAM = re.compile(
    r"^(?:sudo )?(?:[A-Z_]+=\S+ )*(?:[\w./-]*/)?"
    r"(?:weft(?:-switch)?|python3?|pip|pytest|make|cmake|ninja|cd|cp|mv|mkdir|cat|grep|sed|git|tcpdump|tshark|curl|"
    r"wget|gnmic|prometheus|promtool|podman|docker|vagrant|ssh|scp|mpirun|srun|torchrun|jupyter|ip|tc|apt|apt-get|bash|sh|"
    r"p4c[\w-]*|simple_switch\w*|mn|ping|iperf3|for|eval|export|source|\w+\.sh)(?=\s|$)"
)
"""A block without a language lists commands if it begins with one of these programs."""
_REMARK = re.compile(r"\s+# ")
_WORDS_AFTER = re.compile(r"\s{2,}\S")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_BENCHMARK = re.compile(r"^python3? benchmarks/(bench_\w+\.py)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_OF_A_LAB = re.compile(
    r"weft (?:controller|shell|exec|switch-cli) |weft trace p\d+[ls]\d+|tcpdump -i p\d+[ls]\d+-eth\d+ "
)
_MAKES_A_LAB = re.compile(r"weft (?:lab|run|collective) ")
_ALONE = re.compile(r"(?:weft|grep) ")


@dataclass(frozen=True)
class CommandLine:
    """A command as a page has it, in one line, with the block's first line as `block`; lines count from 1.

    `text` is without prompt, `sudo` and remarks, and names programs as they are on the PATH.
    """

    page: str
    line: int
    block: int
    language: str
    text: str
    as_root: bool
    is_prompted: bool

    @property
    def place(self) -> str:
        """Page and line, as editors and compilers name places."""
        return f"{self.page}:{self.line}"


def all_pages() -> list[Path]:
    """Return the project's pages."""
    folders = [ROOT / folder for folder in FOLDERS.split("|")]
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


@functools.cache
def all_commands() -> tuple[CommandLine, ...]:
    """Return the command lines of all pages, in order."""
    return tuple(
        command
        for page in all_pages()
        for command in commands_of(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))
    )


def commands_of(source: str, page: str) -> list[CommandLine]:
    """Return the command lines of a page.

    Raise ValueError for a line of a list of commands that is none, and for a remark that a shell would take as words of
    the command: it follows two or more spaces, without a "#".
    """
    found: list[CommandLine] = []
    language: str | None = None
    lines: list[str] = []
    begin = indent = 0
    for number, line in enumerate(source.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line[indent:])
        elif language is None:
            language, lines, begin, indent = fence[2], [], number + 1, len(fence[1])
        else:
            found += _commands_of_block(lines, language, page, begin)
            language = None
    return found


def _commands_of_block(lines: Sequence[str], language: str, page: str, begin: int) -> Iterator[CommandLine]:
    is_prompted = language in _PROMPTED and any(_PROMPT.match(line) for line in lines)
    first = next((line for line in lines if line.strip()), "")
    is_list = language in _SHELL or (language == "" and _PROGRAM.match(first.strip()) is not None)
    if not (is_prompted or is_list):
        return
    number = 0
    while number < len(lines):
        at, line = number, lines[number]
        number += 1
        if is_prompted:
            if not _PROMPT_OR_ROOTS.match(line):
                continue
            line = _PROMPT_OR_ROOTS.sub("", line)
        elif not _PROGRAM.match(line.strip()):
            if line.strip() and not line.lstrip().startswith("#"):
                raise ValueError(f"{page}:{begin + at}: not a command of a known program: {line!r}")
            continue
        while line.endswith("\\") and number < len(lines):
            line = line[:-1].rstrip() + " " + lines[number].strip()
            number += 1
        text = without_remark(line.strip())
        if _WORDS_AFTER.search(_without_quoted(text)):
            raise ValueError(f"{page}:{begin + at}: a shell takes the remark as arguments without '# ': {text!r}")
        plain = re.sub(r"(?<![\w./$])\.venv/bin/", "", text.removeprefix("sudo "))
        yield CommandLine(page, begin + at, begin, language, plain, text.startswith("sudo "), is_prompted)


def without_remark(line: str) -> str:
    """Return a command without the page's remark, which a "#" begins as in a shell."""
    remark = _REMARK.search(_without_quoted(line))
    return line[: remark.start()] if remark else line


def _without_quoted(line: str) -> str:
    return _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)


def beginning_in(table: Iterable[str], command: str) -> str | None:
    """Return the longest key of a table with which a command begins, word by word; None if there is none."""
    keys = [key for key in table if command == key or command.startswith(f"{key} ")]
    return max(keys, key=len, default=None)


def benchmark_of(command: CommandLine) -> str | None:
    """Return the file name of the benchmark that a command runs."""
    found = _BENCHMARK.match(command.text)
    return found[1] if found else None


def unknown_options(command: CommandLine, benchmark: str) -> set[str]:
    """Return the options of a benchmark's command that neither it nor a neighbour that it imports has."""
    known: set[str] = set()
    folder = ROOT / "benchmarks"
    source = (folder / benchmark).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (folder / f"{node.module}.py").exists():
            known |= set(_OPTION.findall((folder / f"{node.module}.py").read_text(encoding="utf-8")))
    return set(_OPTION.findall(command.text)) - known - set(_OPTION.findall(source))


def runner_of(command: CommandLine) -> str | None:
    """Return which tests run a command, None if nothing says so.

    - "page": the tests of `console` blocks, which run it or an equal command
    - "benchmark": the small runs of benchmarks
    - "elsewhere", "nobody": the tables ELSEWHERE, WHOLE_PAGES and NO_TEST say which, or why none can
    - "lab", "root", "alone": the tests of this folder's tables, beside a running lab, as root in a lab of the command's
      own, or without a lab
    """
    is_shown = command.language == "console" and ROOT / command.page in pages.PAGES
    whole = WHOLE_PAGES.get(command.page)
    if is_shown or (command.text, command.as_root) in _shown_commands():
        return "page"
    if benchmark_of(command) in {*SMALL_BENCHMARKS, *BENCHMARKS_ELSEWHERE}:
        return "benchmark"
    if beginning_in(NO_TEST, command.text):
        return "nobody"
    if beginning_in(ELSEWHERE, command.text) or (whole and command.is_prompted):
        return "elsewhere"
    if _OF_A_LAB.match(command.text):
        return "lab"
    if command.as_root:
        return "root" if _MAKES_A_LAB.match(command.text) else None
    return "alone" if _ALONE.match(f"{command.text} ") else None


@functools.cache
def _shown_commands() -> set[tuple[str, bool]]:
    return {(_plain(example.command), False) for page in pages.PAGES for example in pages.examples(page)}


def _plain(command: str) -> str:
    return command.replace(".venv/bin/", "")


def blocks_for(runner: str) -> list[list[CommandLine]]:
    """Return the commands of one runner, by block, without repetitions.

    Commands in a lab do not depend on each other, so each runs once. Other commands use files of earlier ones in their
    block, so a block is left out only if another one has all its commands.
    """
    blocks: dict[tuple[str, int], list[CommandLine]] = {}
    seen: set[str] = set()
    for command in all_commands():
        if runner_of(command) == runner and not (runner != "alone" and command.text in seen):
            blocks.setdefault((command.page, command.block), []).append(command)
            seen.add(command.text)
    kept: list[list[CommandLine]] = []
    for block in sorted(blocks.values(), key=len, reverse=True):  # stable: of equal ones the first stays
        texts = {command.text for command in block}
        if not any(texts <= {command.text for command in other} for other in kept):
            kept.append(block)
    return sorted(kept, key=lambda block: (block[0].page, block[0].line))


def block_name(block: list[CommandLine]) -> str:
    """Return a block's place as the name of a test's case."""
    return f"{block[0].page}:{block[0].block}"
