"""Commands that the lab's controller carries out for links, switches, planes, hosts and circuits, and its event log."""

from __future__ import annotations

import asyncio

import click

from weft.controller import views
from weft.controller.cli.group import EnvironmentLacksError, Find, controller, json_option, reports_errors
from weft.controller.errors import RequestRefusedError, SettingError
from weft.controller.features.kind import Row
from weft.controller.lab import Lab
from weft.controller.links import named_link, set_link, wait_until_followed
from weft.controller.operations_protocol import request
from weft.controller.output import print_rows
from weft.topologies import FabricSpec
from weft.topologies.circuits import CircuitConfiguration, CircuitPlan


def require_circuits(fabric: FabricSpec | None) -> CircuitPlan:
    """Return a lab's circuits. Raises SettingError: its fabric has none, or only a switch's address was given."""
    if fabric is None:
        raise SettingError("circuits need a running lab: the switch at --address does not know them")
    if fabric.circuits is None:
        raise SettingError("the fabric has no circuits", valid="fabrics of kind cubes or optical_core")
    return fabric.circuits


def circuit_rows(fabric: FabricSpec | None) -> list[Row]:
    """Return a row for each configuration; raises as `require_circuits`."""
    plan = require_circuits(fabric)
    present = _joined(plan.configuration(plan.present))
    return [
        {
            "configuration": each.name,
            "in_force": each.name == plan.present,
            "circuits": len(each.circuits),
            "would_go": len(present - _joined(each)),
            "would_come": len(_joined(each) - present),
        }
        for each in plan.configurations
    ]


def _joined(configuration: CircuitConfiguration) -> set[frozenset[object]]:
    return {frozenset(circuit) for circuit in configuration.circuits}


_ANSWER_TIMEOUT_S = 30.0
_OPERATIONS = ("drain", "cordon", "restore")
_timeout = click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
    help="Seconds after which a drain ends even if packets still come.",
)  # fmt: skip


@controller.command()
@click.argument("operation", metavar="drain|cordon|restore|down|up")
@click.argument("name", metavar="NODE-NODE")
@_timeout
@click.pass_obj
@reports_errors
def link(find: Find, operation: str, name: str, timeout_s: float) -> None:
    """Cordon, drain or restore a link; or take it down or up, and wait until all tables are updated.

    `cordon`: new routes avoid it. `drain`: cordon it, then wait until no packet uses it.
    """
    if name in (*_OPERATIONS, "down", "up"):
        operation, name = name, operation
    lab = find()
    if operation in _OPERATIONS:
        _operate(lab, operation, "link", name, timeout_s)
        return
    if operation not in ("down", "up"):
        raise click.UsageError(f"unknown operation '{operation}' (valid: {', '.join(_OPERATIONS)}, down, up)")
    if lab.fabric is None:
        raise click.UsageError("link needs a running lab: the switch at --address does not know links")
    chosen, up = named_link(lab.fabric, name), operation == "up"
    set_link(lab, chosen, up)
    asyncio.run(wait_until_followed(lab, chosen, up))
    click.echo(f"{chosen.a.node}<->{chosen.b.node} is {operation}; the tables of all switches have followed")


def _add_command(kind: str, metavar: str, summary: str) -> None:
    @controller.command(kind, help=f"Cordon, drain or restore a {kind}{summary}")
    @click.argument("operation", type=click.Choice(_OPERATIONS))
    @click.argument("name", metavar=metavar)
    @_timeout
    @click.pass_obj
    @reports_errors
    def operate(find: Find, operation: str, name: str, timeout_s: float) -> None:
        _operate(find(), operation, kind, name, timeout_s)


_add_command("switch", "SWITCH", "; see `link`.")
_add_command("plane", "NUMBER", ": hosts use the other planes for new work.")
_add_command("host", "HOST", ": a spare takes its rank from the next collective on.")


def _operate(lab: Lab, operation: str, kind: str, name: str, timeout_s: float) -> None:
    """Send an operation to the lab's controller and print the outcome."""
    # The answer comes after the drain has ended and the tables are written.
    patience_s = timeout_s + _ANSWER_TIMEOUT_S
    answer = request(lab, patience_s, do=operation, kind=kind, name=name, timeout_s=timeout_s)
    click.echo(answer["done"])


@controller.group()
def circuits() -> None:
    """Show or change the configuration of a fabric's optical circuits."""


@circuits.command("show")
@json_option
@click.pass_obj
@reports_errors
def circuits_show(find: Find, as_json: bool) -> None:
    """Show all configurations: which one is in force, and by how many circuits the others differ from it."""
    print_rows(circuit_rows(find().fabric), as_json, "Circuits")


@circuits.command("change")
@click.argument("name", metavar="CONFIGURATION")
@click.pass_obj
@reports_errors
def circuits_change(find: Find, name: str) -> None:
    """Change the configuration; only a lab under the virtual clock can rejoin ports."""
    lab = find()
    require_circuits(lab.fabric).configuration(name)
    try:
        click.echo(request(lab, do="change circuits", name=name)["done"])
    except RequestRefusedError as error:
        raise EnvironmentLacksError(str(error)) from None


@controller.command()
@click.option("--last", type=click.IntRange(min=1), help="Show only this many latest events.")
@json_option
@click.pass_obj
@reports_errors
def events(find: Find, last: int | None, as_json: bool) -> None:
    """Show events of the lab's controller: links down and up, entries written, links damped or cordoned."""
    answer = request(find(), do="events")
    rows = answer["events"][-last:] if last else answer["events"]
    print_rows(rows if as_json else [views.event_row(row) for row in rows], as_json, "Events")
    if answer["dropped"] and not as_json:
        click.echo(f"{answer['dropped']} older ones are not kept")
