"""Commands that show switches' entries, counters and health."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import click

from weft.controller import views
from weft.controller.cli.group import (
    EnvironmentLacksError,
    Find,
    RefusedError,
    controller,
    json_option,
    reports_errors,
    show_feature,
    show_rows,
    switches_argument,
)
from weft.controller.errors import SwitchUnavailableError
from weft.controller.features import FEATURES, Feature
from weft.controller.features.kind import Row
from weft.controller.health import check_switch
from weft.controller.job_views import JOB_VIEWS, JobView, read_fabric_jobs
from weft.controller.lab import Lab
from weft.controller.links import ports_of, routes_only
from weft.controller.operations_protocol import avoided, faulty_links
from weft.controller.output import print_rows
from weft.controller.plan import FabricState, desired_entities
from weft.controller.port_states import failures_of, peers_of_ports_down
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.controller.switch_code import code_row


@controller.command()
@switches_argument
@json_option
@click.pass_obj
@reports_errors
def routes(find: Find, switches: tuple[str, ...], as_json: bool) -> None:
    """Show prefixes and their next hops; several mean ECMP."""

    async def rows(lab: Lab, session: SwitchSession) -> list[Row]:
        if lacking := views.lacks_routes(session):
            click.echo(f"{session.name}: its program has {lacking}: it has no routes of Weft's", err=True)
            return []
        return await views.route_rows(session, views.switch_spec(lab, session.name))

    show_rows(find, switches, as_json, "Routes", rows)


@controller.command()
@switches_argument
@click.option("--table", help="Only this table.")
@json_option
@click.pass_obj
@reports_errors
def tables(find: Find, switches: tuple[str, ...], table: str | None, as_json: bool) -> None:
    """Show the switches' table entries."""
    show_rows(find, switches, as_json, "Table entries", lambda lab, session: views.table_rows(session, table))


@controller.command()
@switches_argument
@json_option
@click.pass_obj
@reports_errors
def counters(find: Find, switches: tuple[str, ...], as_json: bool) -> None:
    """Show packets by port, drops by reason, aggregation by outcome and job; zeros are omitted."""
    show_rows(
        find, switches, as_json, "Counters",
        lambda lab, session: views.counter_rows(session, views.switch_spec(lab, session.name)),
    )  # fmt: skip


@controller.command()
@switches_argument
@click.option("--specialise", is_flag=True, help="First compile code for what their tables hold now.")
@json_option
@click.pass_obj
@reports_errors
def profile(find: Find, switches: tuple[str, ...], specialise: bool, as_json: bool) -> None:
    """Show which machine code switches run, and how often a write has ended the specialised one."""
    lab = find()

    async def rows() -> list[Row]:
        return [await code_row(lab.targets[name], name, specialise) for name in lab.select(switches)]

    print_rows(asyncio.run(rows()), as_json, "Code")


def _add_command(feature: Feature) -> None:
    """Add the command that shows a feature's rows."""

    @controller.command(feature.command, help=feature.summary)
    @switches_argument
    @json_option
    @click.pass_obj
    @reports_errors
    def show(find: Find, switches: tuple[str, ...], as_json: bool) -> None:
        show_feature(find, switches, as_json, feature.name[0].upper() + feature.name[1:], feature)


for _feature in FEATURES.values():
    if _feature.command:
        _add_command(_feature)


def _add_job_view(view: JobView) -> None:
    """Add the command that shows a view of the whole fabric."""

    @controller.command(view.command, help=view.summary)
    @json_option
    @click.pass_obj
    @reports_errors
    def show(find: Find, as_json: bool) -> None:
        lab = find()
        if lab.fabric is None:
            raise click.UsageError(f"{view.command} needs a running lab: --address names one switch of a fabric")
        print_rows(view.rows(read_fabric_jobs(lab, lab.fabric)), as_json, view.title)


for _view in JOB_VIEWS:
    _add_job_view(_view)


@controller.command()
@switches_argument
@json_option
@click.pass_context
@reports_errors
def health(context: click.Context, switches: tuple[str, ...], as_json: bool) -> None:
    """Check that every switch answers, runs the program, holds the plan, and has all links up and without losses.

    Exit code 1 if a check fails, 4 if no switch answers.
    """
    lab: Lab = context.obj()
    names = lab.select(switches)
    planned: dict[str, Any] = {}
    faulty = faulty_links(lab)
    ports: dict[tuple[int, int], bool] = {}
    with contextlib.suppress(SwitchUnavailableError):
        ports = asyncio.run(ports_of(lab))
    if lab.fabric is not None:
        around = failures_of(lab.fabric, ports) | avoided(lab)
        planned = desired_entities(lab.fabric, routes_only(lab), FabricState(around))
        for name in around.switches:
            del planned[name]  # a switch out of use keeps its old entries
    results = asyncio.run(
        for_each_switch(
            lab,
            names,
            lambda session: check_switch(
                session,
                lab.pipelines.get(session.name),
                planned.get(session.name),
                peers_of_ports_down(lab.fabric, session.device_id, ports),
                faulty.get(session.name, ()),
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
    """Return how many packets of a switch the lab's controller dropped; None without a lab."""
    return None if lab.dropped_packet_ins is None else lab.dropped_packet_ins.get(switch, 0)
