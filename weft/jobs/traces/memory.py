"""Rejects a trace before the machine runs out of memory."""

from __future__ import annotations

import os

from weft.jobs.traces.errors import TraceError
from weft.quantities.units import MIB

STATEMENTS_BETWEEN_CHECKS = 1 << 16
BYTES_PER_OPERATION = 400
"""Memory to build a rank's part and check the job, in addition to the data read: sorted dependencies, columns."""
_SPARE_BYTES = 1 << 28


def available_bytes() -> int:
    """Return the memory that processes can still allocate."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_parsing(size_bytes: int, ratio: int, what: str, place: object) -> None:
    """Check that the memory suffices to parse data, which takes `ratio` times its size. Raises TraceError."""
    available = available_bytes()
    if size_bytes * ratio > available:
        raise TraceError(
            f"{size_bytes} bytes of {what} need about {ratio} times as much memory, and {available} "
            "bytes are available",
            place=place,
            valid="a shorter trace, or more memory",
        )


def check_memory(operations: int, place: str) -> None:
    """Check that the memory suffices for the operations read so far. Raises TraceError, with `place`."""
    available, needed = available_bytes(), operations * BYTES_PER_OPERATION + _SPARE_BYTES
    if available < needed:
        raise TraceError(
            f"{operations} operations up to here need {needed // MIB} MiB of memory more, and "
            f"{available // MIB} MiB are available",
            place=place,
            valid="a smaller trace, or more memory",
        )
