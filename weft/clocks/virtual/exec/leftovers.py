"""Programs of virtual runs that were killed: who waited in a system call does not learn of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from weft.clocks.virtual.exec.places import PLACES_VARIABLE
from weft.system.processes import ProcessId, end
from weft.system.scratch import owner_of

_MARK = f"{PLACES_VARIABLE}=".encode("ascii")


def end_left_programs() -> list[int]:
    """End the programs of runs whose processes are gone, as far as this user may, and return their identifiers."""
    return [process.pid for process in _left_programs() if end(process)]


def _left_programs() -> Iterator[ProcessId]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            variables = Path("/proc", name, "environ").read_bytes().split(b"\0")
            for each in variables:
                owner = owner_of(Path(os.fsdecode(each.removeprefix(_MARK)))) if each.startswith(_MARK) else None
                process = ProcessId.of(int(name))
                if owner is not None and not owner.alive and process is not None:
                    yield process
