"""The processes that serve a virtual run together.

Each builds the whole fabric and runs the same Python, but serves only some partitions. What Python reads of a node is
read by the process that serves it, and given to all: so all go on alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Processes(Protocol):
    """Processes of a run, which all make the same calls in the same order."""

    number: int
    """This process's."""
    count: int
    """How many there are."""

    def of(self, owner: int, what: str, read: Callable[[], T]) -> T:
        """Return what `read` returns in a process, in all; `what` it is must be the same everywhere."""

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """Give every process its message, by number, and return theirs. See `Partitions.distribute`."""

    def fail(self, error: BaseException) -> BaseException:
        """Let all others know that this process fails, once, and return the first failure: this one, or an earlier one.

        After that `of` and `exchange` raise it in place of waiting.
        """


class Alone:
    """A run of one process."""

    number = 0
    count = 1

    def of(self, owner: int, what: str, read: Callable[[], T]) -> T:
        """See Processes."""
        return read()

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """See Processes."""
        return messages

    def fail(self, error: BaseException) -> BaseException:
        """See Processes."""
        return error


ALONE = Alone()


def of_all(processes: Processes, what: str, own: T) -> list[T]:
    """Return what each process has, by number."""
    return [processes.of(number, what, lambda: own) for number in range(processes.count)]
