"""A socket in the file system by which a host process answers others than its runner."""

from __future__ import annotations

import contextlib
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

_WAITING = 4
"""Connections that may wait to be served; whoever comes after is refused."""
_PATIENCE_S = 1.0
"""For whoever asks to ask, and to take the answer."""


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """Give a name by which a socket of any path can be bound or connected to, which has room for 107 bytes."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


class AnsweringSocket(ABC):
    """Answers each connection and ends it. Only root can reach a lab's."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short_name(path) as name:
            self._socket.bind(name)
        self._socket.listen(_WAITING)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that is ready to be read when somebody has come."""
        return self._socket.fileno()

    def serve(self) -> None:
        """Answer whoever has come first, if anybody has."""
        with contextlib.suppress(OSError):  # gone, or too slow: asks again
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(_PATIENCE_S)
                connection.sendall(self._answer(connection))

    @abstractmethod
    def _answer(self, connection: socket.socket) -> bytes:
        """Return the answer to a connection."""

    def close(self) -> None:
        """Answer nobody any more."""
        self._socket.close()
