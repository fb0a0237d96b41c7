"""`weft trace`: what a packet meets in a switch, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from weft.commands.running_switch import EMBEDDED, find_running_switch
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.quantities.readable import counted
from weft.switch.daemon.trace_service import MAX_PACKETS, Unseen, WatchedPacket, WatchRequest
from weft.switch.trace.show import print_tree

PROGRAM_SUFFIXES = (".p4", ".json")


@click.command()
@click.argument("target", metavar="SWITCH|PROGRAM")
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
    print_json: bool,
) -> None:
    """Show what a packet meets: parser states, tables and entries, actions, writes, and where it goes.

    SWITCH is a switch of the running lab, or HOST:PORT or unix:PATH of any `weft switch`: the next packet that it
    receives is shown.
    PROGRAM is P4 or BMv2 JSON: packets are given by --packet or --stf, and no switch need run.
    """
    unseen = Unseen()
    where = f" on port {port}" if port is not None else ""
    if target.endswith(PROGRAM_SUFFIXES):
        from weft.commands.tracing import trace_program

        watched = trace_program(Path(target), packets_given, port, stf, when, unseen)
        nothing = f"no packet left {target} or was dropped"
    elif packets_given or stf:
        raise click.UsageError(
            "--packet and --stf are for a PROGRAM (.p4 or .json), not for a switch that runs"
        )
    else:
        address, device, runs_on = find_running_switch(target, device_id)
        if runs_on != EMBEDDED:
            raise EnvironmentLacksError(
                f"the lab runs on {runs_on}, which cannot be traced: use --target embedded"
            )
        request = WatchRequest(device_id=device, packets=packets, port=port, timeout_s=timeout_s, when=when)
        watched = _from_switch(target, address, request, unseen)
        nothing = f"no packet came to {target}{where} within {timeout_s:g} s"
    count = _print(watched, print_json)
    if unseen.missed:
        click.echo(f"{unseen.missed} packets were not looked at: too many came at once", err=True)
    if count == 0 and unseen.others:
        nothing = f"no packet fulfils --when; {counted(unseen.others, 'packet')} did not"
    if count == 0:
        raise CheckFailedError(nothing)


def _print(watched: Iterator[WatchedPacket], print_json: bool) -> int:
    count = 0
    for packet in watched:
        count += 1
        if print_json:
            for event in packet.events:
                click.echo(json.dumps(event))
        else:
            print_tree(packet.story, ended=packet.ended)
    return count


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
