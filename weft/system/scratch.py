"""Scratch directories of runs, and how to find those of runs that were killed.

The name identifies a directory's owner (process id and start time), and the owner holds a lock on it for as long as it
lives: a process of another namespace, such as a container's, whose id means nothing here, is detected by its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from weft.system.processes import ProcessId

_NAME = re.compile(r"weft-(\d+)-(\d+)-\w+")


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make a directory below the system's for temporary files; leaving removes it and all that is in it."""
    owner = ProcessId.of(os.getpid())
    assert owner is not None
    with tempfile.TemporaryDirectory(prefix=f"weft-{owner.pid}-{owner.start_ticks}-") as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def is_scratch(path: Path) -> bool:
    """Return whether a directory's name is that of a scratch directory."""
    return _NAME.fullmatch(path.name) is not None


def remove_abandoned() -> list[Path]:
    """Remove the scratch directories of this user's processes that live no more; returns them."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob("weft-*")):
        if _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                removed.append(path)
    return removed


def _is_abandoned(path: Path) -> bool:
    name = _NAME.fullmatch(path.name)
    if name is None or ProcessId(int(name[1]), int(name[2])).alive:
        return False
    try:
        # Another user's directory, or something else with such a name, is not ours.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.geteuid() not in (0, os.fstat(descriptor).st_uid):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
