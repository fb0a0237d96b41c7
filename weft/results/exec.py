"""Ends of commands in hosts, and their output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind


@dataclass(frozen=True)
class CommandResult:
    """A command of a host, from its begin to its end."""

    host: str
    """Where it ran."""
    command: str
    """Its command line."""
    status: int
    """Its exit status; below 0 the signal that ended it."""
    time_ps: int
    """How long it ran."""
    output: str
    """Its output, both streams; of more than 64 KiB the end."""
    output_bytes: int
    """How much it wrote."""
    wall_clock_uses: list[str]
    """In virtual time: calls made whose times are the wall clock's, so that the run may not repeat itself."""


@dataclass(frozen=True)
class ExecResult(ItemResult):
    """Commands of hosts, until the last one ended."""

    time_ps: int
    """How long it took."""
    commands: list[CommandResult]
    """In the order in which they began."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Return whether all ended with status 0."""
        return all(each.status == 0 for each in self.commands)


_COMMANDS = ResultTable[CommandResult](
    "Commands",
    (
        Column("host", "host", is_name=True),
        Column("command", "command", is_name=True),
        Column("status", "status"),
        Column("time", "time_ps", form=format_time),
    ),
    "[bold]commands (time is emulated)[/bold]",
    layout=Layout(is_narrow=True),
)


def print_exec(console: Console, results: Sequence[ExecResult]) -> None:
    """Print how commands ended, and what they wrote."""
    for result in results:
        _COMMANDS.print(console, result.commands)
        for each in result.commands:
            console.print(f"[bold]{escape(each.host)}: {escape(each.command)}[/bold]")
            console.print(each.output.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


def exec_warnings(results: Sequence[ExecResult]) -> Iterator[str]:
    """Yield a sentence for each command that lived by the wall clock, too."""
    for result in results:
        uses = sorted({use for each in result.commands for use in each.wall_clock_uses})
        if uses:
            yield f"commands have used {', '.join(uses)}, which virtual time does not reach: the run may not repeat"


EXEC = ResultKind(
    key="exec",
    meaning="One for each item of exec.",
    model=ExecResult,
    is_checked=lambda each: each.ok,
    tables=(),
    show=print_exec,
    order=9,
    report=lambda results, _: [_COMMANDS.part([each for result in results for each in result.commands])],
)
