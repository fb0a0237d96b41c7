"""The command line for tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from weft.compiler.cli import compile_command


def weft_compile(*arguments: object) -> Result:
    """`weft compile` with these arguments."""
    return CliRunner().invoke(compile_command, [str(each) for each in arguments])
