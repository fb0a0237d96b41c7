"""`weft trace`: what a packet meets in a switch, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.commands.quantity_options import QuantityOption
from weft.commands.running_switch import EMBEDDED, find_running_switch
from weft.commands.scenario_options import set_option
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.quantities.definitions import TIME
from weft.quantities.readable import counted
from weft.switch.daemon.trace_service import MAX_PACKETS, Unseen, WatchedPacket, WatchRequest
from weft.switch.native.trace import LAST_PS
from weft.switch.trace.show import print_tree
from weft.system.shipped_labs import LAB_PREFIX

if TYPE_CHECKING:
    from weft.report.stepping import SteppedPackets

PROGRAM_SUFFIXES = (".p4", ".json")
SCENARIO_SUFFIXES = (".yaml", ".yml")


def _is_scenario(target: str) -> bool:
    """Return whether a target is a scenario, a network file included: .json may also be a compiled program."""
    if target.endswith(SCENARIO_SUFFIXES) or target.startswith(LAB_PREFIX):
        return True
    from weft.topologies.networks import is_network_file

    return target.endswith(".json") and is_network_file(Path(target))


@click.command()
@click.argument("target", metavar="SWITCH|PROGRAM|SCENARIO")
@click.option("--port", type=click.IntRange(0, 511), help="Only packets received on this port.")
@click.option(
    "-n", "--packets", type=click.IntRange(1, MAX_PACKETS), default=1, show_default=True, help="How many."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True, max=3600),
    default=10.0,
    show_default=True,
    help="Seconds to wait for packets of a running switch.",
)
@click.option("--device-id", type=click.IntRange(0), default=0, help="Of a switch given by address.")
@click.option("--packet", "packets_given", multiple=True, metavar="HEX|PCAP", help="Packets for a PROGRAM.")
@click.option(
    "--stf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table entries of a PROGRAM (and packets, unless --packet is given), as STF.",
)
@click.option(
    "--when",
    metavar="CONDITION",
    help="Only packets that fulfil it, such as 'ipv4.dst_addr == 10.0.0.2 and drop' (docs/debugging.md).",
)
@click.option(
    "--switch", "switches", multiple=True, metavar="SWITCH", help="Of a SCENARIO; several may be given."
)
@click.option(
    "--from", "from_ps", type=QuantityOption(TIME), help="Only packets that come from then on: 10us."
)
@click.option("--until", "until_ps", type=QuantityOption(TIME), help="Only packets that come before.")
@set_option
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page there to step through the packets of a PROGRAM or a SCENARIO.",
)
@click.option("--json", "print_json", is_flag=True, help="Print events, a JSON object a line.")
def trace(
    target: str,
    port: int | None,
    packets: int,
    timeout_s: float,
    device_id: int,
    packets_given: tuple[str, ...],
    stf: Path | None,
    when: str | None,
    switches: tuple[str, ...],
    from_ps: int | None,
    until_ps: int | None,
    assignments: tuple[str, ...],
    page: Path | None,
    print_json: bool,
) -> None:
    """Show what a packet meets: parser states, tables and entries, actions, writes, and where it goes.

    SWITCH is a switch of the running lab, or HOST:PORT or unix:PATH of any `weft switch`: the next packet that it
    receives is shown.
    PROGRAM is P4 or BMv2 JSON: packets are given by --packet or --stf, and no switch need run.
    SCENARIO is a scenario in virtual time, or a network file (topology.json, p4app.json), which is run: packets of
    --switch are shown with their time.
    """
    is_scenario = _is_scenario(target)
    if not is_scenario and (switches or assignments or (from_ps, until_ps) != (None, None)):
        raise click.UsageError(
            "--switch, --from, --until and --set are for a SCENARIO (.yaml, a network file)"
        )
    unseen, stepped = Unseen(), _stepped(page)
    where = f" on port {port}" if port is not None else ""
    if is_scenario:
        if packets_given or stf:
            raise click.UsageError("--packet and --stf are for a PROGRAM; a SCENARIO's packets are its own")
        if not switches:
            raise click.UsageError("a SCENARIO needs --switch: whose packets are to be shown")
        from weft.commands.tracing_runs import RunToTrace, trace_run

        scenario = SCENARIO_FILE.convert(target, None, None)
        period = (from_ps or 0, LAST_PS if until_ps is None else until_ps)
        asked = RunToTrace(scenario, assignments, switches, packets, when, port, period)
        nothing = f"no packet came to {', '.join(switches)}{where} in that time"
        count = trace_run(asked, unseen, partial(_print_one, print_json), stepped)
        _report(count, unseen, nothing)
        _write_page(stepped, page)
        return
    if target.endswith(PROGRAM_SUFFIXES):
        from weft.commands.tracing import trace_program

        watched = trace_program(Path(target), packets_given, port, stf, when, unseen, stepped)
        nothing = f"no packet left {target} or was dropped"
    elif packets_given or stf:
        raise click.UsageError(
            "--packet and --stf are for a PROGRAM (.p4 or .json), not for a switch that runs"
        )
    elif page is not None:
        raise click.UsageError("--page is for a PROGRAM or a SCENARIO, not for a switch that runs")
    else:
        address, device, runs_on = find_running_switch(target, device_id)
        if runs_on != EMBEDDED:
            raise EnvironmentLacksError(
                f"the lab runs on {runs_on}, which cannot be traced: use --target embedded"
            )
        request = WatchRequest(device_id=device, packets=packets, port=port, timeout_s=timeout_s, when=when)
        watched = _from_switch(target, address, request, unseen)
        nothing = f"no packet came to {target}{where} within {timeout_s:g} s"
    count = 0
    for packet in watched:
        count += 1
        _print_one(print_json, packet)
    _report(count, unseen, nothing)
    _write_page(stepped, page)


def _stepped(page: Path | None) -> SteppedPackets | None:
    if page is None:
        return None
    from weft.report.stepping import SteppedPackets

    return SteppedPackets()


def _write_page(stepped: SteppedPackets | None, page: Path | None) -> None:
    if stepped is None or page is None:
        return
    from weft.report.html import write_page

    click.echo(f"wrote {write_page(stepped.page(), page)}", err=True)


def _report(count: int, unseen: Unseen, nothing: str) -> None:
    if unseen.missed:
        click.echo(f"{counted(unseen.missed, 'packet')} not looked at: too many came at once", err=True)
    if count == 0 and unseen.others:
        nothing = f"no packet fulfils --when; {counted(unseen.others, 'packet')} did not"
    if count == 0:
        raise CheckFailedError(nothing)


def _print_one(print_json: bool, packet: WatchedPacket) -> None:
    if print_json:
        for event in packet.events:
            click.echo(json.dumps(event))
    else:
        print_tree(packet.story, ended=packet.ended)


def _from_switch(target: str, address: str, request: WatchRequest, unseen: Unseen) -> Iterator[WatchedPacket]:
    import grpc

    from weft.switch.daemon.trace_service import watch

    try:
        yield from watch(address, request, unseen)
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            raise EnvironmentLacksError(f"{target} does not answer at {address}") from None
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise EnvironmentLacksError(
                f"{target} at {address} is no Weft switch, so it cannot be traced"
            ) from None
        raise BadInputError(
            details if request.when and "--when" in details else f"{target}: {details}"
        ) from None
