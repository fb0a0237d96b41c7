"""A socket in the file system by which a host process answers others than its runner."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

_WAITING = 4
"""Connections that may wait to be served; whoever comes after is refused."""
_PATIENCE_S = 1.0
"""For whoever asks to send the whole request, and again to take the whole answer."""
_CHUNK_BYTES = 1 << 16


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """Give a name by which a socket of any path can be bound or connected to, which has room for 107 bytes."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def read_line(connection: socket.socket, most_bytes: int, patience_s: float) -> bytes:
    """Return the first line, without its end; what comes after it is lost.

    Raises ValueError for a longer line, and OSError if the whole line does not come within `patience_s`.
    """
    deadline_s = time.monotonic() + patience_s
    line = bytearray()
    while True:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no whole line within {patience_s:g} s")
        connection.settimeout(left_s)
        chunk = connection.recv(_CHUNK_BYTES)
        if not chunk:
            raise ConnectionError("the connection ended within a line" if line else "the connection ended")
        end = chunk.find(b"\n")
        line += chunk if end < 0 else chunk[:end]
        if len(line) > most_bytes:
            raise ValueError(f"a line is longer than {most_bytes} B")
        if end >= 0:
            return bytes(line)


class HostSocket(ABC):
    """Serves others than the runner, a request at a time."""

    @abstractmethod
    def fileno(self) -> int:
        """Return the descriptor that is readable when somebody has something to say."""

    @abstractmethod
    def serve(self) -> None:
        """Serve whoever has, without waiting for more."""

    @abstractmethod
    def close(self) -> None:
        """Serve nobody any more."""

    def seconds_to_next_turn(self) -> float | None:
        """Return when `take_turn` has something to do, though nobody comes; None: never."""
        return None

    def take_turn(self) -> None:  # noqa: B027
        """Do what is due without being asked."""


class AnsweringSocket(HostSocket):
    """Answers each connection and ends it. Only root can reach a lab's."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short_name(path) as name:
            self._socket.bind(name)
        self._socket.listen(_WAITING)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """See HostSocket."""
        return self._socket.fileno()

    def serve(self) -> None:
        """Answer whoever has come first, if anybody has."""
        with contextlib.suppress(OSError):  # gone, or too slow: asks again
            connection, _ = self._socket.accept()
            with connection:
                answer = self._answer(connection)
                connection.settimeout(_PATIENCE_S)  # for all of it
                connection.sendall(answer)

    @staticmethod
    def _line_from(connection: socket.socket, most_bytes: int) -> bytes:
        """Return a request of one line. Errors as `read_line`."""
        return read_line(connection, most_bytes, _PATIENCE_S)

    @abstractmethod
    def _answer(self, connection: socket.socket) -> bytes:
        """Return the answer to a connection."""

    def close(self) -> None:
        """See HostSocket."""
        self._socket.close()
