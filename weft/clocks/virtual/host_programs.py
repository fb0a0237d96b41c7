"""Programs of hosts in virtual time: all in the lab's event loop, which the fabric takes turns with."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.clocks.host_programs import HostProgram, ProgramOutcome, ProgramRun, unended_message
from weft.clocks.virtual import standstill
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.errors import CheckFailedError
from weft.rdma.device import Device
from weft.rdma.enums import WCStatus
from weft.rdma.errors import WorkError
from weft.rdma.out_of_band import OutOfBandMessage
from weft.rdma.program import awaited
from weft.traffic.extensions import run_program
from weft.traffic.host import Host
from weft.traffic.host_verbs import HostVerbs

OUT_OF_BAND_LATENCY_PS = 50_000_000
"""Latency of a message between programs outside the fabric, as over a management network."""
_CAUSE_COMES_WITHIN_S = 0.01
"""Virtual time after which no peer is going to say why a request was flushed."""
_OF_PROGRAM: contextvars.ContextVar[list[asyncio.Task[Any]] | None] = contextvars.ContextVar(
    "tasks of the program", default=None
)


class VirtualPrograms:
    """Runs programs of hosts, by name.

    A program goes on when the engine's window of the completion that it awaits is over, so at most a microsecond later.
    Programs are served in one thread, in an order that depends on virtual time alone.
    """

    def __init__(self, loop: VirtualTimeLoop, hosts: Mapping[str, Host], ip_version: int) -> None:
        self._loop, self._hosts, self._ip_version = loop, hosts, ip_version
        self._devices: dict[str, Device] = {}

    def run(self, asked: ProgramRun) -> list[ProgramOutcome]:
        """Run programs to their end.

        Raises CheckFailedError: they have not ended in time. ExtensionError: a program of a file has raised.
        """
        names = [each.host for each in asked.programs]
        with contextlib.ExitStack() as stack:
            for program in asked.programs:
                self._devices[program.host] = self._open(program, names, asked, stack)
            stack.callback(self._devices.clear)
            return self._loop.run_here(self._run_all(asked))

    def _open(self, program: HostProgram, names: list[str], asked: ProgramRun, stack: contextlib.ExitStack) -> Device:
        host, loop = self._hosts[program.host], self._loop
        verbs = HostVerbs(host, asked.ranks, asked.telemetry, self._ip_version)
        device = Device(
            program.host,
            names,
            verbs,
            loop,
            self,
            first_queue_pair=asked.first_queue_pair,
            seed=host.config.seed,
        )
        # Weakly, because the engine keeps its listeners, and the device's host keeps the engine.
        drain = weakref.WeakMethod(device.drain)

        def arrived() -> None:
            if (method := drain()) is not None:
                loop.wake(method)

        verbs.completions.set_listener(arrived)
        stack.callback(device.close)
        stack.callback(verbs.completions.set_listener, None)
        return device

    def send(self, message: OutOfBandMessage) -> None:
        """See OutOfBand."""
        device = self._devices[message.destination]
        self._loop.call_after_ps(OUT_OF_BAND_LATENCY_PS, lambda: device.deliver(message))

    async def _run_all(self, asked: ProgramRun) -> list[ProgramOutcome]:
        with (
            _tasks_counted(self._loop),
            standstill.standstill_ends(self._loop, self._loop.now_ps, _in_program, standstill.LIMIT_S),
        ):
            tasks = {self._loop.create_task(self._run_one(program)): program for program in asked.programs}
            try:
                done, left = await asyncio.wait(tasks, timeout=asked.timeout_s, return_when=asyncio.FIRST_EXCEPTION)
                await _raise_cause([task for task in tasks if task in done], left)
                if left:
                    waiting = {
                        f"{each.host} ({each.name})": awaited(self._devices[each.host])
                        for task, each in tasks.items()
                        if task in left
                    }
                    raise CheckFailedError(unended_message(waiting, asked.timeout_s))
                return [task.result() for task in tasks]
            finally:
                await _cancel(tasks)

    async def _run_one(self, program: HostProgram) -> ProgramOutcome:
        device = self._devices[program.host]
        own: list[asyncio.Task[Any]] = []
        _OF_PROGRAM.set(own)
        started_ps = self._loop.now_ps()
        try:
            if program.spec is not None:
                await run_program(program.spec, program.host, device)
            else:
                assert program.run is not None, "a program is a reference, or can be run"
                await program.run(device)
        finally:
            finished_ps = self._loop.now_ps()
            await _cancel(own)
        return ProgramOutcome(program.host, program.name, started_ps, finished_ps, device.report_so_far)


def _in_program() -> bool:
    return _OF_PROGRAM.get() is not None


async def _raise_cause(done: Sequence[asyncio.Task[Any]], left: set[asyncio.Task[Any]]) -> None:
    """Raise what a program has raised, if one has.

    A request that fails at a peer ends the queue pairs at both ends. The peer's program is first to see that, as a
    flush, and knows no reason; the program that asked learns it a round trip later, so it is waited for.
    """
    errors = [error for task in done if (error := task.exception()) is not None]
    if not errors:
        return
    if left and all(map(_is_flush, errors)):
        later, _ = await asyncio.wait(left, timeout=_CAUSE_COMES_WITHIN_S, return_when=asyncio.FIRST_EXCEPTION)
        errors += [error for task in later if (error := task.exception()) is not None]
    raise next((error for error in errors if not _is_flush(error)), errors[0])


def _is_flush(error: BaseException) -> bool:
    cause = error if isinstance(error, WorkError) else error.__cause__
    return isinstance(cause, WorkError) and cause.status is WCStatus.IBV_WC_WR_FLUSH_ERR


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks that have not ended, and wait until they have."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.gather(*left, return_exceptions=True)


@contextlib.contextmanager
def _tasks_counted(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have tasks that a program makes noted as its own, so that they end with it."""

    def make(
        in_loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=in_loop, **options)
        own = _OF_PROGRAM.get()
        if own is not None:
            own.append(task)
        return task

    before = loop.get_task_factory()
    loop.set_task_factory(make)  # type: ignore[arg-type]
    try:
        yield
    finally:
        loop.set_task_factory(before)
