"""The files, commands and options that pages name exist, and what their Python imports of Weft does, too."""

import ast
import importlib
import re
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from weft.cli import weft

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("labs/*/*.md"),
        *ROOT.glob("examples/*.md"),
    ]
)
FOLDERS = "benchmarks|controller|docs|engine|examples|fuzz|labs|p4|tests|topologies|traffic|vagrant|weft"
NAMED_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")
# A reader's own file, a file yet to be written, and a folder that only wheels have.
NOT_OURS = re.compile(r"mine\.|NAME|^weft/shipped/")
# Up to what stands beside a command in a list, or explains it.
COMMAND = re.compile(r"(?:`|^\s*|\$ |sudo |\.venv/bin/)weft ([a-z-]+(?: [^ `|#\n]+)*)", re.MULTILINE)
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
TAKES_OPTIONS_OF_OTHERS = ("exec", "switch")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_files_exist(page: Path) -> None:
    named = set(NAMED_PATH.findall(page.read_text(encoding="utf-8")))
    assert sorted(name for name in named if not NOT_OURS.search(name) and not list(ROOT.glob(name.rstrip("/")))) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_imports_of_examples_resolve(page: Path) -> None:
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "weft":
                        importlib.import_module(alias.name)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
                module = importlib.import_module(str(node.module))
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")


def unknown_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line that are no command or option of Weft's."""
    command: click.Command = weft
    options: set[str] = {"--help", "-h", "--"}
    unknown = []
    for number, word in enumerate(words):
        if word.startswith("-"):
            option = OPTION.match(word)
            if option and option[0] not in options and words[0] not in TAKES_OPTIONS_OF_OTHERS:
                unknown.append(option[0])
        elif isinstance(command, click.Group) and re.fullmatch("[a-z][a-z-]+", word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return [*unknown, f"{' '.join(words[:number])} {word}"]
            command = found
            options |= {each for taken in command.params for each in (*taken.opts, *taken.secondary_opts)}
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_and_options_exist(page: Path) -> None:
    lines = COMMAND.findall(page.read_text(encoding="utf-8"))
    assert {line: unknown for line in lines if (unknown := unknown_words(line.split()))} == {}


def test_a_command_or_option_that_does_not_exist_is_found() -> None:
    assert COMMAND.findall("`weft run s.yaml --clok real`, or\n  weft labz        all labs") == [
        "run s.yaml --clok real",
        "labz",
    ]
    assert unknown_words(["run", "s.yaml", "--clok", "real"]) == ["--clok"]
    assert unknown_words(["labz"]) == [" labz"]
    assert unknown_words(["job", "shows", "s.yaml"]) == ["job shows"]
