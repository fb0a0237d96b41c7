"""Runs a block of a page's commands as a reader would, at small size, and checks each command's outcome."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pages
from tests.page_commands.page_commands import CommandLine, all_commands, beginning_in
from tests.page_commands.tables import BLOCKS, LOSES, SMALL, STATUS, Block
from weft.paths import ROOT
from weft.results.results_file import read_results

_WRITTEN = re.compile(r"(?:^|\s)(?:-o|-w|--out|--plot|--packet-logs|--p4info|>)\s+(\S+)")
_WRITER = re.compile(r"weft (?:init|new|report|run|sweep|labs copy|labs notebooks)\b")
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


@functools.cache
def _first_commands() -> dict[tuple[str, int], str]:
    return {(command.page, command.block): command.text for command in reversed(all_commands())}


def block_of(command: CommandLine) -> Block:
    """Return the stand-ins for the reader's files in the block of a command."""
    key = beginning_in(BLOCKS, _first_commands()[command.page, command.block])
    return Block() if key is None else BLOCKS[key]


def as_run(command: CommandLine) -> str:
    """Return a command with a test's names in place of the reader's own, and at small size."""
    text = command.text
    for word, own in block_of(command).words.items():
        text = text.replace(word, own)
    key = beginning_in(SMALL, command.text)
    if key is not None:
        for part, other in SMALL[key].instead.items():
            assert part in text, f"{command.place}: SMALL[{key!r}]: no {part!r} in {text!r}"
            text = text.replace(part, other)
        text = f"{text} {SMALL[key].added}".rstrip()
    return text


def prepared(commands: Sequence[CommandLine], directory: Path) -> Path:
    """Make the directory in which a block's commands run, with files in place of the reader's own."""
    pages.workplace(directory, ROOT)
    block = block_of(commands[0])
    if block.yaml:
        shown = _YAML.search((ROOT / commands[0].page).read_text(encoding="utf-8"))
        assert shown, f"{commands[0].page} has no block of YAML for {block.yaml}"
        (directory / block.yaml).write_text(shown[1], encoding="utf-8")
    if block.before:
        done = in_shell(block.before, directory)
        assert done.returncode == 0, f"before {commands[0].place}: {done.stdout}{done.stderr}"
    return directory


def in_shell(text: str, directory: Path, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of a shell with this Weft on the PATH."""
    path = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", text],
        cwd=directory,
        env=pages.environment() | {"PATH": path},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


def run(command: CommandLine, directory: Path, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command; check its exit status, and that it wrote the files that it names, or else printed something.

    The results of runs must be verified and, under the virtual clock, without lost packets. Under the real clock a slow
    machine may lose some.
    """
    text = as_run(command)
    for name in _WRITTEN.findall(text):
        inside = (directory / name).resolve().is_relative_to(ROOT)
        assert not inside, f"{command.place}: a test would overwrite the project's {name}"
    before = set(directory.rglob("*"))
    done = in_shell(text, directory, typed)
    said = f"{command.place}: $ {text}\n{done.stdout}{done.stderr}"
    key = beginning_in(STATUS, command.text)
    assert done.returncode == (STATUS[key] if key else 0), f"exit code {done.returncode}: {said}"
    written = set(directory.rglob("*")) - before
    for name in _WRITTEN.findall(text):
        assert (directory / name).exists(), f"{name} is not there: {said}"
    if _WRITER.match(text):
        assert any(path.is_file() for path in written), f"nothing is written: {said}"
    elif not _WRITTEN.search(text):
        assert done.stdout.strip(), f"nothing is printed: {said}"
    for path in written:
        if path.name == "results.json":
            result = read_results(path)
            assert result.ok, said
            loses = beginning_in(LOSES, command.text)
            drops = set(result.drops) - set(LOSES[loses].split(", ") if loses else ())
            assert result.made_by.clock == "real" or not drops, f"{result.drops}: {said}"
    return done
