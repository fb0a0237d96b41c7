"""A switch's log of packets in a file of bounded size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from weft.switch.bmv2json import Program
from weft.switch.trace.bmv2_log import Bmv2Log
from weft.switch.trace.events import PacketTrace

MAX_FILE_BYTES = 16 * 1024 * 1024


class PacketLogFile:
    """Appends packets to a file; a full file replaces FILE.1. Raises OSError if it cannot be created.

    `error` is the errno of the first failed write, after which nothing is written; else 0.
    """

    def __init__(self, path: Path, origin_us: int = 0, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.path = path
        self.error = 0
        self._origin_us = origin_us
        self._max_bytes = max_bytes
        self._missed = 0
        self._log: Bmv2Log | None = None
        self._before = path.with_name(f"{path.name}.1")
        for each in (path, self._before):
            each.unlink(missing_ok=True)  # a link of somebody's is not followed, and no log is of an earlier run
        self._descriptor = _made(path)
        self._size_bytes = 0

    def write(self, program: Program, packets: Sequence[PacketTrace], missed: int = 0) -> None:
        """Append packets; `missed` counts all packets so far that arrived too fast to be traced."""
        if self._log is None or self._log.program is not program:
            self._log = Bmv2Log(program, self._origin_us)
        for packet in packets:
            self._append("".join(f"{line}\n" for line in self._log.lines(packet)))
        if missed > self._missed:
            self._append(f"[weft] {missed - self._missed} packets came too fast to be logged\n")
            self._missed = missed

    def _append(self, text: str) -> None:
        data = text.encode()
        if self.error:
            return
        try:
            if self._size_bytes and self._size_bytes + len(data) > self._max_bytes:
                self._begin_anew()
            self._size_bytes += len(data)
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self.error = error.errno or 0

    def _begin_anew(self) -> None:
        owner = os.fstat(self._descriptor)
        os.replace(self.path, self._before)
        os.close(self._descriptor)
        self._descriptor = -1
        self._descriptor = _made(self.path)
        os.fchown(self._descriptor, owner.st_uid, owner.st_gid)
        self._size_bytes = 0

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _made(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
