"""An operator's commands to running host processes (`weft.traffic.host_control`)."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.controller.errors import RequestRefusedError
from weft.traffic.answering_socket import read_line, short_name
from weft.traffic.commands.base import Command, command_message, read_answer

_MOST_ANSWER_BYTES = 1 << 28
_PATIENCE_S = 10.0
"""A host that makes a large run ready answers nobody meanwhile."""


def ask_hosts(sockets: Sequence[Path], commands: Mapping[int, Command[Any]]) -> dict[int, Any]:
    """Have hosts carry out a command each, by their indices, and return the answers.

    Raises RequestRefusedError if a host refuses it or does not answer.
    """
    return {index: _answer(sockets[index], command) for index, command in commands.items()}


def _answer(path: Path, command: Command[Any]) -> Any:
    line = json.dumps(command_message(command, 0)).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, short_name(path) as short:
            connection.settimeout(_PATIENCE_S)
            connection.connect(short)
            with contextlib.suppress(ConnectionError):  # a line that is too long is answered before its end
                connection.sendall(line)
            message = json.loads(read_line(connection, _MOST_ANSWER_BYTES, _PATIENCE_S))
    except (OSError, ValueError) as error:
        raise RequestRefusedError(f"{path.stem} does not answer now: {error}") from None
    if "error" in message:
        raise RequestRefusedError(str(message["error"]))
    return read_answer(command, message)
