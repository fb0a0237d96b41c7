"""`weft controller …`: look into the switches of a running lab, and change their ECN thresholds.

Reading takes part in no election, so it never disturbs the lab's controller. Exit codes: 0 ok, 1 a check
failed, 2 usage, 3 bad input, 4 the environment lacks something (no lab, a switch that does not answer).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, get_args

import click
import finsy
from finsy.proto import p4r

from weft.controller import views
from weft.controller.circuit_views import circuit_rows, require_circuits
from weft.controller.errors import (
    ControllerError,
    PipelineError,
    RequestRefusedError,
    SettingError,
    SwitchUnavailableError,
)
from weft.controller.features import FEATURES, Feature
from weft.controller.features.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile, ecn_rows, threshold_entity
from weft.controller.features.kind import Row
from weft.controller.health import check_switch
from weft.controller.job_views import JOB_VIEWS, JobView, read_fabric_jobs
from weft.controller.lab import Lab, NoLabError, lab_at, lab_from_state, state_file
from weft.controller.links import (
    LinkRefusedError,
    named_link,
    ports_of,
    routes_only,
    set_link,
    wait_until_followed,
)
from weft.controller.operations_protocol import avoided, request
from weft.controller.output import print_rows
from weft.controller.plan import FabricState, desired_entities
from weft.controller.port_states import failures_of, peers_of_ports_down
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.quantities.traffic_classes import DATA_CLASS
from weft.topologies import TopologyError

_ANSWER_TIMEOUT_S = 30.0
_Parameters = ParamSpec("_Parameters")


class RefusedError(click.ClickException):
    """A switch refused, or a check failed."""

    exit_code = 1


class BadInputError(click.ClickException):
    """A value, name or file that cannot be used."""

    exit_code = 3


class EnvironmentLacksError(click.ClickException):
    """There is no lab, or a switch of it does not answer."""

    exit_code = 4


def _for_the_user(error: Exception) -> click.ClickException:
    if isinstance(error, NoLabError | SwitchUnavailableError | LinkRefusedError):
        return EnvironmentLacksError(str(error))
    if isinstance(error, SettingError | PipelineError | TopologyError):
        return BadInputError(str(error))
    return RefusedError(str(error))


def _reports_errors(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    @wraps(command)
    def guarded(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> None:
        try:
            command(*arguments, **options)
        except (ControllerError, TopologyError) as error:
            raise _for_the_user(error) from None

    return guarded


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--address", help="P4Runtime server of a switch, HOST:PORT or unix:PATH, instead of the running lab."
)
@click.option("--device-id", type=click.IntRange(min=0), help="Device id at --address (default 0).")
@click.option("--p4info", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="P4Info file.")
@click.pass_context
@_reports_errors
def controller(
    context: click.Context, address: str | None, device_id: int | None, p4info: Path | None
) -> None:
    """Show routes, tables, counters, ECN, INT, aggregation jobs, tenants and health of a running lab's switches."""
    if device_id is not None and address is None:
        raise click.UsageError("--device-id needs --address")

    def find() -> Lab:
        return lab_at(address, device_id or 0, p4info) if address else lab_from_state(state_file(), p4info)

    context.obj = find


_switches = click.argument("switches", nargs=-1, metavar="[SWITCH]...")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _show(
    find: Callable[[], Lab],
    switches: tuple[str, ...],
    as_json: bool,
    title: str,
    rows_of: Callable[[Lab, SwitchSession], Awaitable[list[Row]]],
) -> None:
    """Read from the switches and print all their rows together."""
    lab = find()
    names = lab.select(switches)
    found = asyncio.run(for_each_switch(lab, names, lambda session: rows_of(lab, session)))
    print_rows([row for rows in found for row in rows], as_json, title)


@controller.command()
@_switches
@_json
@click.pass_obj
@_reports_errors
def routes(find: Callable[[], Lab], switches: tuple[str, ...], as_json: bool) -> None:
    """Prefixes and their next hops; several mean ECMP."""

    async def rows(lab: Lab, session: SwitchSession) -> list[Row]:
        if lacking := views.lacks_routes(session):
            click.echo(f"{session.name}: its program has {lacking}: it has no routes of Weft's", err=True)
            return []
        return await views.route_rows(session, views.switch_spec(lab, session.name))

    _show(find, switches, as_json, "Routes", rows)


@controller.command()
@_switches
@click.option("--table", help="Only this table.")
@_json
@click.pass_obj
@_reports_errors
def tables(find: Callable[[], Lab], switches: tuple[str, ...], table: str | None, as_json: bool) -> None:
    """Table entries as the switches hold them."""
    _show(find, switches, as_json, "Table entries", lambda lab, session: views.table_rows(session, table))


@controller.command()
@_switches
@_json
@click.pass_obj
@_reports_errors
def counters(find: Callable[[], Lab], switches: tuple[str, ...], as_json: bool) -> None:
    """Packets by port, drops by reason, aggregation by outcome and job; zeros are left out."""
    _show(
        find, switches, as_json, "Counters",
        lambda lab, session: views.counter_rows(session, views.switch_spec(lab, session.name)),
    )  # fmt: skip


@controller.group()
def ecn() -> None:
    """Show or set ECN thresholds."""


@ecn.command("show")
@_switches
@_json
@click.pass_obj
@_reports_errors
def ecn_show(find: Callable[[], Lab], switches: tuple[str, ...], as_json: bool) -> None:
    """Thresholds by port and class."""
    _show(
        find, switches, as_json, "ECN thresholds",
        lambda lab, session: _rows_of(FEATURES.named("ecn"), session, lab),
    )  # fmt: skip


@ecn.command("set")
@_switches
@click.option("--kmin", "kmin_bytes", type=int, required=True, help="Bytes above which marking starts.")
@click.option("--kmax", "kmax_bytes", type=int, required=True, help="Bytes above which all is marked.")
@click.option("--pmax", type=float, required=True, help="Probability at kmax, 0 to 1.")
@click.option(
    "--at",
    type=click.Choice(get_args(EcnDepth)),
    default=DEFAULT_ECN_DEPTH,
    show_default=True,
    help="Which depth marks a packet: the one it leaves behind, or the one it met.",
)
@click.option("--class", "priority_class", type=int, default=DATA_CLASS, show_default=True, help="Class.")
@click.option("--port", "ports", type=int, multiple=True, help="Only these ports (default: all).")
@_json
@click.pass_obj
@_reports_errors
def ecn_set(
    find: Callable[[], Lab],
    switches: tuple[str, ...],
    kmin_bytes: int,
    kmax_bytes: int,
    pmax: float,
    at: EcnDepth,
    priority_class: int,
    ports: tuple[int, ...],
    as_json: bool,
) -> None:
    """Set thresholds until the lab's controller sets its own again; it stays primary afterwards."""
    lab = find()
    profile = EcnProfile(kmin_bytes, kmax_bytes, pmax)
    threshold_entity(1, priority_class, profile, lab.facts)  # refuse bad values before any switch is asked

    def entity(port: int) -> finsy.P4TableEntry:
        return threshold_entity(port, priority_class, profile, lab.facts, at)

    async def change(session: SwitchSession) -> list[Row]:
        await _set_thresholds(lab, session, entity, priority_class, ports)
        return await ecn_rows(session, views.switch_spec(lab, session.name), lab)

    names = lab.select(switches)
    found = asyncio.run(for_each_switch(lab, names, change, primary=True))
    print_rows([row for rows in found for row in rows], as_json, "ECN thresholds")


async def _set_thresholds(
    lab: Lab,
    session: SwitchSession,
    threshold: Callable[[int], finsy.P4TableEntry],
    priority_class: int,
    ports: tuple[int, ...],
) -> None:
    spec = views.switch_spec(lab, session.name)
    rows = await ecn_rows(session, None, lab)
    present = {(int(row["port"]), row["class"]) for row in rows}
    if spec is not None:
        wanted = [spec.port(port).number for port in ports] or [port.number for port in spec.ports]
    else:
        wanted = list(ports) or sorted({port for port, _ in present})
    updates = []
    for port in wanted:
        kind = p4r.Update.MODIFY if (port, priority_class) in present else p4r.Update.INSERT
        (entity,) = session.encode([threshold(port)]).values()
        updates.append(entity.update(kind))
    await session.write(updates)


async def _rows_of(feature: Feature, session: SwitchSession, lab: Lab) -> list[Row]:
    """Return a feature's rows of a switch; none, and a word about it, where its program has not got the tables."""
    assert feature.rows is not None
    missing = [table for table in feature.tables if not session.has_table(table)]
    if missing:
        click.echo(f"{session.name}: its program has no table {missing[0]}: {feature.name} is off", err=True)
        return []
    return await feature.rows(session, views.switch_spec(lab, session.name), lab)


def _add_command(feature: Feature) -> None:
    """Give a feature its command, which shows its rows."""

    @controller.command(feature.command, help=feature.summary)
    @_switches
    @_json
    @click.pass_obj
    @_reports_errors
    def show(find: Callable[[], Lab], switches: tuple[str, ...], as_json: bool) -> None:
        _show(
            find, switches, as_json, feature.name[0].upper() + feature.name[1:],
            lambda lab, session: _rows_of(feature, session, lab),
        )  # fmt: skip


for _feature in FEATURES.values():
    if _feature.command:
        _add_command(_feature)


def _add_job_view(view: JobView) -> None:
    """Give a view of the whole fabric its command."""

    @controller.command(view.command, help=view.summary)
    @_json
    @click.pass_obj
    @_reports_errors
    def show(find: Callable[[], Lab], as_json: bool) -> None:
        lab = find()
        if lab.fabric is None:
            raise click.UsageError(
                f"{view.command} needs a running lab: --address names one switch of a fabric"
            )
        print_rows(view.rows(read_fabric_jobs(lab, lab.fabric)), as_json, view.title)


for _view in JOB_VIEWS:
    _add_job_view(_view)


@controller.command()
@_switches
@_json
@click.pass_context
@_reports_errors
def health(context: click.Context, switches: tuple[str, ...], as_json: bool) -> None:
    """Does every switch answer, run the program, hold the plan and have its links.

    Exit code 1 if one does not, 4 if none answers.
    """
    lab: Lab = context.obj()
    names = lab.select(switches)
    planned: dict[str, Any] = {}
    ports: dict[tuple[int, int], bool] = {}
    with contextlib.suppress(SwitchUnavailableError):
        ports = asyncio.run(ports_of(lab))
    if lab.fabric is not None:
        around = failures_of(lab.fabric, ports) | avoided(lab)
        planned = desired_entities(lab.fabric, routes_only(lab.routing), FabricState(around))
        for name in around.switches:
            del planned[name]  # out of use, it keeps what it held
    results = asyncio.run(
        for_each_switch(
            lab,
            names,
            lambda session: check_switch(
                session,
                lab.pipelines.get(session.name),
                planned.get(session.name),
                peers_of_ports_down(lab.fabric, session.device_id, ports),
            ),
            need_program=False,
        )
    )
    if not any(result.answers for result in results):
        raise EnvironmentLacksError(
            f"none of the lab's switches answers ({len(results)} asked): {results[0].problems[0]}"
        )
    rows = [
        {"switch": result.switch, "state": "well" if result.is_well else "; ".join(result.problems)}
        | {name: value for name, value in result.to_dict().items() if name not in ("switch", "problems")}
        | {"dropped_packet_ins": _dropped_packet_ins(lab, result.switch)}
        for result in results
    ]
    print_rows(rows, as_json, "Health")
    if not all(result.is_well for result in results):
        context.exit(RefusedError.exit_code)


def _dropped_packet_ins(lab: Lab, switch: str) -> int | None:
    """Return how many packets of a switch the lab's controller did not take; None where there is no lab."""
    return None if lab.dropped_packet_ins is None else lab.dropped_packet_ins.get(switch, 0)


_OPERATIONS = ("drain", "cordon", "restore")
_timeout = click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
    help="Seconds after which a drain ends though packets still come.",
)  # fmt: skip


@controller.command()
@click.argument("operation", metavar="drain|cordon|restore|down|up")
@click.argument("name", metavar="NODE-NODE")
@_timeout
@click.pass_obj
@_reports_errors
def link(find: Callable[[], Lab], operation: str, name: str, timeout_s: float) -> None:
    """Take a link out of use, or back; or take it down or up, and wait until all tables have followed.

    `cordon`: new routes avoid it. `drain`: then wait until no packet uses it.
    """
    if name in (*_OPERATIONS, "down", "up"):
        operation, name = name, operation
    lab = find()
    if operation in _OPERATIONS:
        _operate(lab, operation, "link", name, timeout_s)
        return
    if operation not in ("down", "up"):
        raise click.UsageError(f"'{operation}' is nothing to do (valid: {', '.join(_OPERATIONS)}, down, up)")
    if lab.fabric is None:
        raise click.UsageError("link needs a running lab: --address says nothing of links")
    chosen, up = named_link(lab.fabric, name), operation == "up"
    set_link(lab, chosen, up)
    asyncio.run(wait_until_followed(lab, chosen, up))
    click.echo(f"{chosen.a.node}<->{chosen.b.node} is {operation}; the tables of all switches have followed")


@controller.command()
@click.argument("operation", type=click.Choice(_OPERATIONS))
@click.argument("name", metavar="SWITCH")
@_timeout
@click.pass_obj
@_reports_errors
def switch(find: Callable[[], Lab], operation: str, name: str, timeout_s: float) -> None:
    """Take a switch out of use, or back; see `link`."""
    _operate(find(), operation, "switch", name, timeout_s)


@controller.command()
@click.argument("operation", type=click.Choice(_OPERATIONS))
@click.argument("number", metavar="NUMBER")
@_timeout
@click.pass_obj
@_reports_errors
def plane(find: Callable[[], Lab], operation: str, number: str, timeout_s: float) -> None:
    """Take a plane out of use, or back: hosts use the others for what begins from then on."""
    _operate(find(), operation, "plane", number, timeout_s)


@controller.command()
@click.argument("operation", type=click.Choice(_OPERATIONS))
@click.argument("name", metavar="HOST")
@_timeout
@click.pass_obj
@_reports_errors
def host(find: Callable[[], Lab], operation: str, name: str, timeout_s: float) -> None:
    """Take a host out of use, or back: a spare has its rank from the next collective on."""
    _operate(find(), operation, "host", name, timeout_s)


def _operate(lab: Lab, operation: str, kind: str, name: str, timeout_s: float) -> None:
    """Have the lab's controller do something, and print what it came to."""
    # The answer comes when the drain has ended, and then the tables are written.
    patience_s = timeout_s + _ANSWER_TIMEOUT_S
    answer = request(lab, patience_s, do=operation, kind=kind, name=name, timeout_s=timeout_s)
    click.echo(answer["done"])


@controller.group()
def circuits() -> None:
    """Show or change the configuration of a fabric's optical circuits."""


@circuits.command("show")
@_json
@click.pass_obj
@_reports_errors
def circuits_show(find: Callable[[], Lab], as_json: bool) -> None:
    """All configurations: which one is in force, and by how many circuits the others differ from it."""
    print_rows(circuit_rows(find().fabric), as_json, "Circuits")


@circuits.command("change")
@click.argument("name", metavar="CONFIGURATION")
@click.pass_obj
@_reports_errors
def circuits_change(find: Callable[[], Lab], name: str) -> None:
    """Have another configuration, where the running lab's clock can join ports anew: the real one cannot."""
    lab = find()
    require_circuits(lab.fabric).configuration(name)
    try:
        click.echo(request(lab, do="change circuits", name=name)["done"])
    except RequestRefusedError as error:
        raise EnvironmentLacksError(str(error)) from None


@controller.command()
@click.option("--last", type=click.IntRange(min=1), help="Only so many, the latest.")
@_json
@click.pass_obj
@_reports_errors
def events(find: Callable[[], Lab], last: int | None, as_json: bool) -> None:
    """What the lab's controller saw and did: links down and up, entries written, links damped or cordoned."""
    answer = request(find(), do="events")
    rows = answer["events"][-last:] if last else answer["events"]
    print_rows(rows if as_json else [views.event_row(row) for row in rows], as_json, "Events")
    if answer["dropped"] and not as_json:
        click.echo(f"{answer['dropped']} older ones are not kept")


def main() -> None:
    """Entry point of `weft-controller`."""
    controller(prog_name="weft-controller")


if __name__ == "__main__":
    main()
