"""`weft --help`: every command in a section, shown without importing any of them."""

import importlib
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from weft.cli import COMMANDS, SECTIONS, weft

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
