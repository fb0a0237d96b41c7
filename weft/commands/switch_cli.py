"""`weft switch-cli`: simple_switch_CLI's commands on a switch that runs, over P4Runtime."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import EXISTING_FILE
from weft.command_errors import say_error
from weft.commands.running_switch import find_running_switch

if TYPE_CHECKING:
    from weft.controller.switch_cli import CommandSession

_PROMPT = "RuntimeCmd: "


@click.command("switch-cli")
@click.argument("switch")
@click.argument("command", nargs=-1)
@click.option("--file", "file", type=EXISTING_FILE, help="Run a file's commands; the first that fails ends it.")
@click.option("--device-id", type=click.IntRange(0), default=0, help="Of a switch given by address.")
def switch_cli(switch: str, command: tuple[str, ...], file: Path | None, device_id: int) -> int:
    """Run simple_switch_CLI's commands on SWITCH over P4Runtime: COMMAND, a file's, standard input's, or a prompt's.

    SWITCH is a switch of the running lab, or HOST:PORT or unix:PATH of any that serves P4Runtime (without TLS). Reading
    disturbs no controller; with the first command that writes, this takes the switch over until it ends.
    """
    address, device_id, _ = find_running_switch(switch, device_id)
    from weft.error_translation import controller_errors_of_commands

    with controller_errors_of_commands():
        return asyncio.run(_run(switch, address, device_id, " ".join(command), file))


async def _run(switch: str, address: str, device_id: int, command: str, file: Path | None) -> int:
    from weft.controller.grpc_targets import GrpcTarget
    from weft.controller.switch_cli.opening import opened

    # P4Info is asked of the switch itself, whose program may not be the lab's first.
    async with opened(switch, GrpcTarget(address, device_id), _ports_of(switch)) as running:
        if command:
            _say(await running.run(command))
        elif file is not None:
            for said in await running.run_file(file):
                _say(said)
        else:
            return await _read_lines(running)
        return 0


async def _read_lines(running: CommandSession) -> int:
    """Run the lines of standard input; at a prompt an error is shown and the next line is read."""
    from weft.controller.errors import ControllerError

    is_terminal = sys.stdin.isatty()
    number = 0
    while True:
        try:
            line = await (_line_at_prompt() if is_terminal else asyncio.to_thread(input))
        except EOFError:
            return 0
        number += 1
        if line.strip() in ("EOF", "exit", "quit"):
            return 0
        try:
            _say(await running.run(line))
        except ControllerError as error:
            if not is_terminal:
                raise type(error)(f"standard input, line {number}: {error}") from None
            say_error(str(error))


async def _line_at_prompt() -> str:
    """Return a line of the terminal. Raises EOFError.

    A separate thread reads it, which an interrupted session leaves behind; asyncio would wait for its own threads.
    """
    loop = asyncio.get_running_loop()
    read: asyncio.Future[str] = loop.create_future()

    def tell(line: str | None) -> None:
        if read.done():
            return
        if line is None:
            read.set_exception(EOFError())
        else:
            read.set_result(line)

    def work() -> None:
        line = None
        with contextlib.suppress(EOFError):
            line = input(_PROMPT)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the session was interrupted
            loop.call_soon_threadsafe(tell, line)

    threading.Thread(target=work, name="prompt", daemon=True).start()
    return await read


def _say(text: str) -> None:
    if text:
        click.echo(text)


def _ports_of(switch: str) -> list[str]:
    """Return the ports of a switch of the running lab in words; none of others."""
    from weft.clocks.real import lab_state
    from weft.topologies import TopologyError, from_parameters

    state = lab_state.load()
    if state is None or not state.fabric:
        return []
    try:
        ports = from_parameters(state.fabric).switch(switch).ports
    except TopologyError:
        return []
    return [f"{port.number:>4}  {port.interface}" for port in ports if port.is_cabled]
