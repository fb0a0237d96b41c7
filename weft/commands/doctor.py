"""`weft doctor`: what this machine can do, and what to install for the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from weft.doctor import Examined


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def doctor(as_json: bool) -> int:
    """Show what this machine can do with Weft, the cost of what is missing, and how to install it.

    Changes nothing, and ends within a minute. Only the engine and machine code are essential: exit code 4 if one of
    them does not work, else 0. Run it with sudo to see whether labs in Mininet work as root.
    """
    from weft.doctor import CAPABILITIES, examine
    from weft.errors import EnvironmentLacksError

    examined = examine(CAPABILITIES.values())
    essential_missing = [each.capability.name for each in examined if each.prevents_runs]
    if as_json:
        found = {"runs": not essential_missing, "capabilities": [_as_dict(each) for each in examined]}
        click.echo(json.dumps(found, indent=1))
    else:
        _print(examined)
    return EnvironmentLacksError.exit_code if essential_missing else 0


def _as_dict(each: Examined) -> dict[str, Any]:
    capability, finding = each.capability, each.finding
    return {
        "name": capability.name,
        "purpose": capability.purpose,
        "present": finding.present,
        "detail": finding.detail,
        "essential": capability.is_essential,
        "cost": capability.cost,
        "install": capability.remedy,
    }


def _print(examined: Sequence[Examined]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from weft.system.consoles import make_console

    console = make_console()
    table = Table(box=None, pad_edge=False)
    for heading in ("capability", "", "for", "found, or the cost of doing without"):
        table.add_column(heading, overflow="fold")  # a path that is cut is of no use
    for each in examined:
        present = each.finding.present
        table.add_row(
            escape(each.capability.name),
            "[green]OK[/green]" if present else "[yellow]missing[/yellow]",
            escape(each.capability.purpose),
            escape(each.finding.detail if present else each.capability.cost),
        )
    console.print(table)
    missing = [each for each in examined if not each.finding.present]
    if missing:
        console.print("\n[bold]what is missing, and how to get it[/bold]")
    for each in missing:
        console.print(escape(f"{each.capability.name}: {each.finding.detail}"), soft_wrap=True)
        console.print(escape(f"  {each.capability.remedy}"), soft_wrap=True)
