"""Errors of commands: all are printed with one prefix, whichever of Weft's programs runs the command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

PREFIX = "weft: "
"""Begins the message of every error, so that people and scripts find it."""


def say_error(message: str) -> None:
    """Print an error on standard error."""
    click.echo(f"{PREFIX}{message}", err=True)


def show(error: click.ClickException) -> None:
    """Print an error of click's: for a wrong usage, the right one before it."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # the help itself
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        context = error.ctx
        click.echo(context.get_usage(), err=True)
        if context.command.get_help_option(context) is not None:
            option = max(context.command.get_help_option_names(context), key=len)
            click.echo(f"Try '{context.command_path} {option}' for help.\n", err=True)
    say_error(error.format_message())


class PrefixedCommand(click.Command):
    """A command that is also a program of its own, such as weft-switch."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """See click.Command; in standalone mode, which exits, errors are printed with the prefix."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            show(error)
            sys.exit(error.exit_code)
        except click.Abort:
            say_error("interrupted")
            sys.exit(130)
        sys.exit(result if isinstance(result, int) else 0)


class PrefixedGroup(PrefixedCommand, click.Group):
    """See PrefixedCommand."""
