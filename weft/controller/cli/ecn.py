"""Commands that show and set ECN thresholds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import get_args

import click
import finsy
from finsy.proto import p4r

from weft.controller import views
from weft.controller.cli import group
from weft.controller.features import FEATURES
from weft.controller.features.ecn import DEFAULT_ECN_DEPTH, EcnDepth, EcnProfile, ecn_rows, threshold_entity
from weft.controller.features.kind import Row
from weft.controller.lab import Lab
from weft.controller.output import print_rows
from weft.controller.readers import for_each_switch
from weft.controller.session import SwitchSession
from weft.quantities.traffic_classes import DATA_CLASS


@group.controller.group()
def ecn() -> None:
    """Show or set ECN thresholds."""


@ecn.command("show")
@group.switches_argument
@group.json_option
@click.pass_obj
@group.reports_errors
def ecn_show(find: group.Find, switches: tuple[str, ...], as_json: bool) -> None:
    """Show thresholds by port and class."""
    group.show_feature(find, switches, as_json, "ECN thresholds", FEATURES.named("ecn"))


@ecn.command("set")
@group.switches_argument
@click.option("--kmin", "kmin_bytes", type=int, required=True, help="Bytes above which marking starts.")
@click.option("--kmax", "kmax_bytes", type=int, required=True, help="Bytes above which marking is certain.")
@click.option("--pmax", type=float, required=True, help="Probability at kmax, 0 to 1.")
@click.option(
    "--at",
    type=click.Choice(get_args(EcnDepth)),
    default=DEFAULT_ECN_DEPTH,
    show_default=True,
    help="Mark by the queue depth when the packet leaves (dequeue) or when it arrives (enqueue).",
)
@click.option("--class", "priority_class", type=int, default=DATA_CLASS, show_default=True, help="Class.")
@click.option("--port", "ports", type=int, multiple=True, help="Only these ports (default: all).")
@group.json_option
@click.pass_obj
@group.reports_errors
def ecn_set(
    find: group.Find,
    switches: tuple[str, ...],
    kmin_bytes: int,
    kmax_bytes: int,
    pmax: float,
    at: EcnDepth,
    priority_class: int,
    ports: tuple[int, ...],
    as_json: bool,
) -> None:
    """Set thresholds until the lab's controller sets its own again; that controller stays primary."""
    lab = find()
    profile = EcnProfile(kmin_bytes, kmax_bytes, pmax)
    threshold_entity(1, priority_class, profile, lab.facts)  # reject bad values before contacting a switch

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
