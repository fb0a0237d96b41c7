"""The command group, its options, and helpers with which commands read switches and report errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click

from weft.command_errors import PrefixedGroup
from weft.controller import views
from weft.controller.errors import (
    ControllerError,
    PipelineError,
    SettingError,
    SwitchUnavailableError,
)
from weft.controller.features import Feature
from weft.controller.features.kind import Row
from weft.controller.lab import Lab, NoLabError, lab_at, lab_from_state, state_file
from weft.controller.links import LinkRefusedError
from weft.controller.output import print_rows
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.topologies import TopologyError

_Parameters = ParamSpec("_Parameters")
Find = Callable[[], Lab]
"""Returns the lab or the switch that a command applies to. Raises NoLabError."""


class RefusedError(click.ClickException):
    """A switch rejected a request, or a check failed."""

    exit_code = 1


class BadInputError(click.ClickException):
    """A value, name or file is unusable."""

    exit_code = 3


class EnvironmentLacksError(click.ClickException):
    """No lab runs, or a switch does not answer."""

    exit_code = 4


def _for_the_user(error: Exception) -> click.ClickException:
    if isinstance(error, NoLabError | SwitchUnavailableError | LinkRefusedError):
        return EnvironmentLacksError(str(error))
    if isinstance(error, SettingError | PipelineError | TopologyError):
        return BadInputError(str(error))
    return RefusedError(str(error))


def reports_errors(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Turn a command's controller and topology errors into a message and an exit code."""

    @wraps(command)
    def guarded(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> None:
        try:
            command(*arguments, **options)
        except (ControllerError, TopologyError) as error:
            raise _for_the_user(error) from None

    return guarded


@click.group(cls=PrefixedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--address", help="P4Runtime server of a switch, HOST:PORT or unix:PATH, instead of the running lab.")
@click.option("--device-id", type=click.IntRange(min=0), help="Device id at --address (default 0).")
@click.option("--p4info", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="P4Info file.")
@click.pass_context
@reports_errors
def controller(context: click.Context, address: str | None, device_id: int | None, p4info: Path | None) -> None:
    """Show routes, tables, counters, ECN, INT, aggregation jobs, tenants and health of a running lab's switches."""
    if device_id is not None and address is None:
        raise click.UsageError("--device-id needs --address")

    def find() -> Lab:
        return lab_at(address, device_id or 0, p4info) if address else lab_from_state(state_file(), p4info)

    context.obj = find


switches_argument = click.argument("switches", nargs=-1, metavar="[SWITCH]...")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show_rows(
    find: Find,
    switches: tuple[str, ...],
    as_json: bool,
    title: str,
    rows_of: Callable[[Lab, SwitchSession], Awaitable[list[Row]]],
) -> None:
    """Read rows from the switches and print them in one table."""
    lab = find()
    names = lab.select(switches)
    found = asyncio.run(for_each_switch(lab, names, lambda session: rows_of(lab, session)))
    print_rows([row for rows in found for row in rows], as_json, title)


def show_feature(find: Find, switches: tuple[str, ...], as_json: bool, title: str, feature: Feature) -> None:
    """Print a feature's rows from the switches."""
    show_rows(find, switches, as_json, title, lambda lab, session: _feature_rows(feature, session, lab))


async def _feature_rows(feature: Feature, session: SwitchSession, lab: Lab) -> list[Row]:
    """Return a feature's rows from a switch; if its program lacks the tables, print a note and return none."""
    assert feature.rows is not None
    missing = [table for table in feature.tables if not session.has_table(table)]
    if missing:
        click.echo(f"{session.name}: its program has no table {missing[0]}: {feature.name} is off", err=True)
        return []
    return await feature.rows(session, views.switch_spec(lab, session.name), lab)
