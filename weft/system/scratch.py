"""Scratch directories of runs, and removal of directories left by killed runs.

The name identifies a directory's owner (process id and start time), and the owner holds a lock on it while it lives:
the lock also detects processes in other namespaces, such as a container's, where ids mean nothing here.
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
    """Create a directory in the system's temporary directory; leaving removes it and its content."""
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
    """Return whether a directory has the name of a scratch directory."""
    return _NAME.fullmatch(path.name) is not None


def owner_of(path: Path) -> ProcessId | None:
    """Return the process that made the scratch directory in which a path is; None if it is in none."""
    for each in (path, *path.parents):
        name = _NAME.fullmatch(each.name)
        if name is not None:
            return ProcessId(int(name[1]), int(name[2]))
    return None


def remove_abandoned() -> list[Path]:
    """Remove the scratch directories of this user's ended processes and return their paths."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob("weft-*")):
        if _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                removed.append(path)
    return removed


def _is_abandoned(path: Path) -> bool:
    owner = owner_of(path) if is_scratch(path) else None
    if owner is None or owner.alive:
        return False
    try:
        # Leave alone another user's directory, or anything else with such a name.
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
