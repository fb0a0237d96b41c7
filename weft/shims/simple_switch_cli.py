"""simple_switch_CLI: its commands on the switch with a Thrift port, over P4Runtime.

As in the original, each line of standard input follows the prompt, and a command that fails is reported on standard
output, after which the next one runs.
"""

from __future__ import annotations

import asyncio
import sys

import click

from weft.cli import run_guarded
from weft.command_errors import PrefixedCommand
from weft.controller.errors import ControllerError
from weft.controller.grpc_targets import GrpcTarget
from weft.controller.switch_cli.opening import SIMPLE_SWITCH_ROLE, opened
from weft.error_translation import controller_errors_of_commands
from weft.errors import BadInputError
from weft.system.thrift_ports import Served, find

DEFAULT_THRIFT_PORT = 9090
_PROMPT = "RuntimeCmd: "
_LOCAL = ("localhost", "127.0.0.1", "::1")
_ENDS = ("EOF", "exit", "quit")


@click.command(cls=PrefixedCommand)
@click.option("--thrift-port", type=int, default=DEFAULT_THRIFT_PORT, show_default=True, help="The switch's number.")
@click.option("--thrift-ip", default=_LOCAL[0], show_default=True, help="This machine.")
@click.option("--json", help="For simple_switch_CLI's sake: the switch knows its program.")
@click.option("--pre", type=click.Choice(["None", "SimplePre", "SimplePreLAG"]), help="For simple_switch_CLI's sake.")
def simple_switch_cli(thrift_port: int, thrift_ip: str, json: str | None, pre: str | None) -> None:
    """Run simple_switch_CLI's commands from standard input on the switch with a Thrift port."""
    if thrift_ip not in _LOCAL:
        raise BadInputError(f"{thrift_ip[:80]!r}: switches are found on this machine only", valid=_LOCAL)
    served = find(thrift_port)
    with controller_errors_of_commands():
        asyncio.run(_run(f"the switch at Thrift port {thrift_port}", served))


async def _run(name: str, served: Served) -> None:
    async with opened(name, GrpcTarget(served.address, served.device_id), role=SIMPLE_SWITCH_ROLE) as session:
        while True:
            try:
                line = await asyncio.to_thread(input, _PROMPT)
            except EOFError:
                click.echo()
                return
            if line.strip() in _ENDS:
                return
            try:
                said = await session.run(line)
            except ControllerError as error:
                said = f"Error: {error}"
            if said:
                click.echo(said)


def main() -> None:
    """Run the command with the process's arguments."""
    sys.exit(run_guarded(lambda: simple_switch_cli.main(prog_name="simple_switch_CLI", standalone_mode=False)))


if __name__ == "__main__":
    main()
