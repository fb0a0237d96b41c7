"""Files that a lab, which is root's, writes into a user's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from weft.clocks.real.access import hand_over
from weft.system.writing import write_errors_named

_SHOWN_OUTPUT_BYTES = 2000


def open_new(path: Path) -> IO[bytes]:
    """Open a new file; one of its name is replaced, and if it is a link, that is not followed."""
    path.unlink(missing_ok=True)
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w+b")


def write_whole(path: Path, content: bytes) -> None:
    """Write a new file, as `open_new`, which is then its user's. Raises EnvironmentLacksError: it cannot be written."""
    with write_errors_named(path), open_new(path) as file:
        file.write(content)
    hand_over([path])


def end_of(output: IO[bytes]) -> str:
    """Return the last lines of what a command has written."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN_OUTPUT_BYTES))
    return output.read(_SHOWN_OUTPUT_BYTES).decode(errors="replace").strip()
