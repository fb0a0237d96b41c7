"""An operator's commands to a host process, over a socket apart from the runner's.

A connection carries one command as a line of JSON, and one answer (docs/spec/endpoint-protocol.md).
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, cast

from weft.traffic.answering_socket import AnsweringSocket
from weft.traffic.answers import Refused
from weft.traffic.commands.base import Command, read_command
from weft.traffic.commands.evs import OPERATORS_COMMANDS
from weft.traffic.host_commands import HostCommands
from weft.traffic.messages import MessageError, as_message

MOST_COMMAND_BYTES = 1 << 22


class ControlSocket(AnsweringSocket):
    """Carries out what an operator asks: commands of `weft.traffic.commands.evs`, no others."""

    def __init__(self, path: Path, commands: HostCommands) -> None:
        self._commands = commands
        super().__init__(path)

    def _answer(self, connection: socket.socket) -> bytes:
        try:
            line = self._line_from(connection, MOST_COMMAND_BYTES)
        except ValueError as error:
            return _line_of(Refused(f"command: {error}").as_message())
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise MessageError("a command is an object")
            command = read_command(message)
            if not isinstance(command, OPERATORS_COMMANDS):
                raise MessageError(f"{command.name} is the runner's", valid=[each.name for each in OPERATORS_COMMANDS])
            return _line_of(as_message(self._commands.carry_out(cast("Command[Any]", command))))
        except Exception as error:
            # Any error that a command raises becomes its answer; the host continues.
            return _line_of(Refused(str(error)).as_message())


def _line_of(answer: object) -> bytes:
    return json.dumps(answer).encode() + b"\n"
