"""Reads files that a user names; rejects files that are not regular, or too large, before they fill the memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class UnreadableFileError(OSError):
    """A file is not a regular file or is too large; the message has its name."""


def read_bytes(path: str | Path, limit_bytes: int) -> bytes:
    """Return the content of a regular file of at most `limit_bytes`. Raises UnreadableFileError and other OSErrors."""
    # Not blocking: opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise UnreadableFileError(f"{path}: this is {_KINDS.get(kind, 'no file')}, not a regular file")
    with open(descriptor, "rb") as file:
        # Some files, such as those of /proc, do not report their size.
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise UnreadableFileError(f"{path}: the file is larger than {limit_bytes} bytes")
    return data


def read_text(path: str | Path, limit_bytes: int) -> str:
    """Like `read_bytes`, decoded as UTF-8, with all line endings as newlines. Also raises UnicodeDecodeError."""
    return read_bytes(path, limit_bytes).decode().replace("\r\n", "\n").replace("\r", "\n")
