"""Whether processes' threads sleep, as the kernel says in /proc (proc(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass

_SLEEPING = frozenset(b"SZXTt")
"""Neither running nor about to. D is not among them: a thread there goes on by itself."""
_ENDED = frozenset(b"ZX")
_MOST_BYTES = 1024


@dataclass(frozen=True)
class ThreadState:
    """A thread's state, how often a processor has taken it up, and whether it has ended (its parent may not know)."""

    sleeps: bool
    turns: int
    has_ended: bool


class ThreadFiles:
    """The kernel's files on a thread, which stay open. Use as a context manager, or `close`."""

    def __init__(self, pid: int, thread: int) -> None:
        """Open them. Raises FileNotFoundError, ProcessLookupError: there is no such thread."""
        folder = f"/proc/{pid}/task/{thread}"
        self._stat = os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._turns = os.open(f"{folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            os.close(self._stat)
            raise

    def state(self) -> ThreadState | None:
        """Return the thread's state; None if it has ended."""
        try:
            stat = os.pread(self._stat, _MOST_BYTES, 0)
            turns = os.pread(self._turns, _MOST_BYTES, 0)
        except ProcessLookupError:
            return None
        # The name, in brackets, may have any character in it.
        state = stat[stat.rindex(b")") + 2]
        return ThreadState(state in _SLEEPING, int(turns.split()[2]), state in _ENDED)

    def close(self) -> None:
        """Close them."""
        os.close(self._stat)
        os.close(self._turns)

    def __enter__(self) -> ThreadFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def threads_of(pid: int) -> list[int]:
    """Return the identifiers of a process's threads; none if it has ended."""
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return []


def state_of(pid: int, thread: int) -> ThreadState | None:
    """Return a thread's state; None if it has ended."""
    try:
        with ThreadFiles(pid, thread) as files:
            return files.state()
    except (FileNotFoundError, ProcessLookupError):
        return None
