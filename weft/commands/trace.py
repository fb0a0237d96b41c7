"""`weft trace`: what a packet meets in a switch, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.option_groups import QuantityOption
from weft.commands.running_switch import EMBEDDED, find_running_switch
from weft.commands.scenario_options import p4_option, set_option
from weft.commands.tracing_output import TraceOutput
from weft.errors import BadInputError, EnvironmentLacksError
from weft.quantities.definitions import TIME
from weft.switch.daemon.trace_service import MAX_PACKETS, Unseen, WatchedPacket, WatchRequest
from weft.switch.native.trace import LAST_PS
from weft.system.shipped_labs import LAB_PREFIX

PROGRAM_SUFFIXES = (".p4", ".json")
SCENARIO_SUFFIXES = (".yaml", ".yml")


@click.command()
@click.argument("target", metavar="SWITCH|PROGRAM|SCENARIO")
@click.option("--port", type=click.IntRange(0, 511), help="Only packets received on this port.")
@click.option(
    "-n",
    "--first",
    "--packets",
    "packets",
    type=click.IntRange(1, MAX_PACKETS),
    help="Only the first N packets that match; by default one, and of a PROGRAM all that are given.",
    metavar="N",
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
    help="Only packets that match, such as 'ipv4.dst_addr == 10.0.0.2 and drop' (docs/debugging.md).",
)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="SWITCH",
    help="Of a SCENARIO: a name, a pattern such as 'p0l*', or all; several may be given.",
)
@click.option("--from", "from_ps", type=QuantityOption(TIME), help="Only packets that come from then on: 10us.")
@click.option("--until", "until_ps", type=QuantityOption(TIME), help="Only packets that come before.")
@p4_option
@set_option
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page there to step through the packets of a PROGRAM or a SCENARIO.",
)
@click.option("--state", "with_registers", is_flag=True, help="Show the cells of registers that packets used.")
@click.option("--json", "print_json", is_flag=True, help="Print events, a JSON object a line.")
def trace(**options: Any) -> None:
    """Show what a packet meets: parser states, tables and entries, actions, writes, and where it goes.

    SWITCH is a switch of the running lab, or HOST:PORT or unix:PATH of any `weft switch`: the next packet that it
    receives is shown.
    PROGRAM is P4 or BMv2 JSON: packets are given by --packet or --stf, and no switch need run.
    SCENARIO is a scenario in virtual time, or a network file (topology.json, p4app.json), which is run until the
    packets of --switch are found: they are shown with their time.
    """
    asked = _Asked(**options)
    output = TraceOutput(asked.page, print_json=asked.print_json, with_registers=asked.with_registers)
    if asked.is_scenario:
        nothing = _trace_scenario(asked, output)
    elif asked.is_program:
        nothing = _trace_program(asked, output)
    else:
        nothing = _trace_switch(asked, output)
    output.finish(nothing)


@dataclass(frozen=True)
class _Asked:
    """The command's options."""

    target: str
    port: int | None
    packets: int | None
    timeout_s: float
    device_id: int
    packets_given: tuple[str, ...]
    stf: Path | None
    when: str | None
    switches: tuple[str, ...]
    from_ps: int | None
    until_ps: int | None
    p4: str | None
    assignments: tuple[str, ...]
    page: Path | None
    with_registers: bool
    print_json: bool

    @cached_property
    def is_scenario(self) -> bool:
        """A network file is one, too: .json may also be a compiled program."""
        if self.target.endswith(SCENARIO_SUFFIXES) or self.target.startswith(LAB_PREFIX):
            return True
        from weft.topologies.networks import is_network_file

        return self.target.endswith(".json") and is_network_file(Path(self.target))

    @property
    def is_program(self) -> bool:
        return self.target.endswith(PROGRAM_SUFFIXES)

    @property
    def of_scenarios(self) -> bool:
        """Whether options were given that only scenarios have."""
        return bool(self.switches or self.p4 or self.assignments or (self.from_ps, self.until_ps) != (None, None))

    @property
    def on_port(self) -> str:
        return f" on port {self.port}" if self.port is not None else ""


def _trace_scenario(asked: _Asked, output: TraceOutput) -> str:
    """Show packets of a run; returns what to say if there were none, as do the others."""
    if asked.packets_given or asked.stf:
        raise click.UsageError("--packet and --stf are for a PROGRAM; a SCENARIO's packets are its own")
    from weft.commands.tracing_runs import RunToTrace, trace_run

    scenario = SCENARIO_FILE.convert(asked.target, None, None)
    period = (asked.from_ps or 0, LAST_PS if asked.until_ps is None else asked.until_ps)
    run = RunToTrace(
        scenario, asked.assignments, asked.p4, asked.switches, asked.packets or 1, asked.when, asked.port, period
    )
    trace_run(run, output)
    return f"no packet came to {', '.join(asked.switches)}{asked.on_port} in that time"


def _trace_program(asked: _Asked, output: TraceOutput) -> str:
    _refuse_options_of_scenarios(asked)
    from weft.commands.tracing import ProgramToTrace, trace_program

    program = ProgramToTrace(Path(asked.target), asked.packets_given, asked.port, asked.packets, asked.stf, asked.when)
    trace_program(program, output)
    return f"no packet left {asked.target} or was dropped"


def _refuse_options_of_scenarios(asked: _Asked) -> None:
    if asked.of_scenarios:
        raise click.UsageError("--switch, --from, --until, --p4 and --set are for a SCENARIO (.yaml, a network file)")


def _trace_switch(asked: _Asked, output: TraceOutput) -> str:
    _refuse_options_of_scenarios(asked)
    if asked.packets_given or asked.stf:
        raise click.UsageError("--packet and --stf are for a PROGRAM (.p4 or .json), not for a switch that runs")
    if asked.page is not None:
        raise click.UsageError("--page is for a PROGRAM or a SCENARIO, not for a switch that runs")
    address, device, runs_on = find_running_switch(asked.target, asked.device_id)
    if runs_on != EMBEDDED:
        raise EnvironmentLacksError(f"the lab runs on {runs_on}, which cannot be traced: use --target embedded")
    request = WatchRequest(
        device_id=device,
        packets=asked.packets or 1,
        port=asked.port,
        timeout_s=asked.timeout_s,
        when=asked.when,
        with_registers=asked.with_registers,
    )
    for packet in _watched(asked.target, address, request, output.unseen):
        output.show(packet)
    return f"no packet came to {asked.target}{asked.on_port} within {asked.timeout_s:g} s"


def _watched(target: str, address: str, request: WatchRequest, unseen: Unseen) -> Iterator[WatchedPacket]:
    import grpc

    from weft.switch.daemon.trace_service import watch

    try:
        yield from watch(address, request, unseen)
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            raise EnvironmentLacksError(f"{target} does not answer at {address}") from None
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise EnvironmentLacksError(f"{target} at {address} is no Weft switch, so it cannot be traced") from None
        raise BadInputError(details if request.when and "--when" in details else f"{target}: {details}") from None
