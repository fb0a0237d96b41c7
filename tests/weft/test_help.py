"""`weft --help`: every command in a section, shown without importing any of them."""

import importlib
import pkgutil
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from weft import commands
from weft.cli import COMMANDS, SECTIONS, weft
from weft.paths import DOCS_DIRECTORY

NARROW_TERMINAL_COLUMNS = 80


def test_all_commands_are_listed_each_on_one_line():
    lines = CliRunner().invoke(weft, ["--help"], terminal_width=NARROW_TERMINAL_COLUMNS).output.splitlines()
    shown = {
        line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  ") and len(line.split()) > 1
    }
    assert {name: shown.get(name) for name in COMMANDS} == {name: entry.summary for name, entry in COMMANDS.items()}
    assert sum(len(section) for section in SECTIONS.values()) == len(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_where_the_table_says(name):
    entry = COMMANDS[name]
    assert isinstance(getattr(importlib.import_module(entry.module), entry.attribute), click.Command)


def test_the_list_of_commands_imports_none_of_them():
    program = (
        "import sys; from weft.cli import COMMANDS, weft; weft.main(['--help'], standalone_mode=False);"
        "print([each.module for each in COMMANDS.values() if each.module in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_sections_follow_the_work():
    assert list(SECTIONS) == ["Run", "Look", "Design", "Program", "Learn"]
    help_text = CliRunner().invoke(weft, ["--help"]).output
    assert re.findall(r"^(\w+):$", help_text, re.MULTILINE) == ["Options", *SECTIONS]


def test_every_command_of_the_package_is_in_a_section():
    """A command that is written and not registered would be shown nowhere."""
    registered = {(entry.module, entry.attribute) for entry in COMMANDS.values()}
    unregistered = []
    for found in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        members = vars(importlib.import_module(found.name))
        own = {
            name: value
            for name, value in members.items()
            if isinstance(value, click.Command) and value.callback and value.callback.__module__ == found.name
        }
        of_groups = {
            id(each) for group in own.values() if isinstance(group, click.Group) for each in group.commands.values()
        }
        unregistered += [
            f"{found.name}.{name}"
            for name, value in own.items()
            if id(value) not in of_groups and (found.name, name) not in registered
        ]
    assert unregistered == []


def test_three_examples_that_exist_follow():
    output = CliRunner().invoke(weft, ["--help"]).output
    examples = re.findall(r"^ +weft ([a-z-]+) .*\S {2,}\S", output.partition("Examples:")[2], re.MULTILINE)
    assert len(examples) == 3
    assert set(examples) <= set(COMMANDS)


def test_the_page_lists_all_commands_by_section():
    page = (DOCS_DIRECTORY / "command-line.md").read_text(encoding="utf-8").partition("\n## ")[0]
    listed = {
        name: re.findall("`([a-z-]+)`", row) for name, row in re.findall(r"^\| (\w+) \| (`.*) \|$", page, re.MULTILINE)
    }
    assert listed == {name: list(section) for name, section in SECTIONS.items()}
