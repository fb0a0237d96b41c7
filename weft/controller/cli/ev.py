"""Commands that list, deny, allow and probe entropy values (EVs) of hosts' queue pairs of MRC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import click

from weft.controller.cli.group import Find, controller, json_option, reports_errors
from weft.controller.features.kind import Row
from weft.controller.operations_protocol import request
from weft.controller.output import print_rows
from weft.quantities.units import PS_PER_US

_Parameters = ParamSpec("_Parameters")
_PATIENCE_S = 60.0


class _Value(click.ParamType[int]):
    """An EV: a whole number, maybe in hexadecimal."""

    name = "ev"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click.ParamType."""
        try:
            number = int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 32:
            self.fail(f"{value!r} is no EV (valid: 0 to 0xffffffff)", param, ctx)
        return number


def _choice(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Add the argument and options that choose EVs."""
    for add in (
        click.option("--plane", type=click.IntRange(min=0), help="Those of this plane."),
        click.option("--value", type=_Value(), help="The one of this value, such as 0xc0010000."),
        click.option("--peer", metavar="HOST", help="Those to this host."),
        click.argument("host", metavar="HOST"),
    ):
        command = add(command)
    return command


@controller.group()
def ev() -> None:
    """List, deny, allow or probe the entropy values (EVs) of a host's queue pairs of MRC."""


@ev.command("list")
@_choice
@json_option
@click.pass_obj
@reports_errors
def list_evs(find: Find, /, as_json: bool, **choice: Any) -> None:
    """Show EVs with their states and how many packets took each; denied ones without a queue pair, too."""
    rows = request(find(), _PATIENCE_S, do="evs", **choice)["evs"]
    print_rows(rows if as_json else [_shown(row) for row in rows], as_json, "Entropy values")


@ev.command()
@_choice
@click.pass_obj
@reports_errors
def deny(find: Find, /, **choice: Any) -> None:
    """Have queue pairs not use EVs; refused if a queue pair would have none left."""
    click.echo(request(find(), _PATIENCE_S, do="deny evs", **choice)["done"])


@ev.command()
@_choice
@click.pass_obj
@reports_errors
def allow(find: Find, /, **choice: Any) -> None:
    """Have queue pairs use denied EVs again, even if no queue pair has them now."""
    click.echo(request(find(), _PATIENCE_S, do="allow evs", **choice)["done"])


@ev.command()
@_choice
@json_option
@click.pass_obj
@reports_errors
def probe(find: Find, /, as_json: bool, **choice: Any) -> None:
    """Send an EV probe over each EV, denied ones included, and show the round trips of those that are answered."""
    rows = request(find(), _PATIENCE_S, do="probe evs", **choice)["evs"]
    print_rows(rows if as_json else [_probed(row) for row in rows], as_json, "EV probes")


def _common(row: Row) -> Row:
    return {"peer": row["peer_host"], "plane": row["plane"], "value": f"0x{row['value']:08x}", "state": row["state"]}


def _shown(row: Row) -> Row:
    return {
        "queue pair": row["queue_pair"],
        **_common(row),
        "active": row["active"],
        "packets": row["turns"],
    }


def _probed(row: Row) -> Row:
    round_trip_ps = row["round_trip_ps"]
    return {
        **_common(row),
        "answered": round_trip_ps is not None,
        "round trip, us": None if round_trip_ps is None else round(round_trip_ps / PS_PER_US, 3),
    }
