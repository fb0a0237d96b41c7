"""Programs: what users write, and where one of them waits."""

from __future__ import annotations

import abc
import asyncio
import inspect
import linecache
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.rdma.device import Device

_OWN_FOLDERS = (str(Path(__file__).parent), str(Path(asyncio.__file__).parent))


class Program(abc.ABC):
    """A program of a host. A scenario's parameters are the constructor's keyword arguments.

    An `async def` function is a program, too: its first argument is the device, its other arguments are parameters.
    """

    @abc.abstractmethod
    async def run(self, device: Device) -> None:
        """Do what the program does; the run ends when all hosts' programs have returned."""


Run = Callable[["Device"], Awaitable[None]]
"""A program, its parameters given."""


def as_run(program: object) -> Run | None:
    """Return how to run a program, or a function; None if it is neither."""
    if isinstance(program, Program):
        return program.run
    if inspect.iscoroutinefunction(program):
        return program
    return None


def places(task: asyncio.Task[Any]) -> str:
    """Return where a task waits, as `file.py:12: await …`: its innermost line outside this package and asyncio."""
    found = ""
    coroutine: Any = task.get_coro()
    while isinstance(coroutine, Coroutine) and getattr(coroutine, "cr_frame", None) is not None:
        frame = coroutine.cr_frame  # type: ignore[attr-defined]
        file = frame.f_code.co_filename
        if not file.startswith(_OWN_FOLDERS):
            source = linecache.getline(file, frame.f_lineno).strip()
            found = f"{file}:{frame.f_lineno}: {source}"
        coroutine = coroutine.cr_await  # type: ignore[attr-defined]
    return found


def awaited(device: Device) -> str:
    """Return, in words, what the tasks of a device's program wait for, and where."""
    waits = device.awaited()
    told = [f"waits for {what}{f' at {place}' if (place := places(task)) else ''}" for task, what in waits.items()]
    return "; ".join(dict.fromkeys(told)) or "waits for nothing of the device (an await of its own)"
