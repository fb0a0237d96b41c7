"""Runs a user's program in an endpoint process, in a separate thread and event loop while commands are served."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from weft.engine import Engine
from weft.quantities.units import PS_PER_S
from weft.rdma.device import Device
from weft.rdma.out_of_band import OutOfBandMessage
from weft.rdma.program import awaited
from weft.traffic.answers import Done, ProgramLeft, ProgramProgress
from weft.traffic.commands.programs import EndProgram, FollowProgram, StartProgram
from weft.traffic.extensions import ClassSpec, ExtensionError, load_program, run_program, user_report
from weft.traffic.host import Host
from weft.traffic.host_verbs import HostVerbs

_LONGEST_TURN_S = 1.0


class _EmulatedClock:
    """A `weft.rdma.device.DeviceClock` of the real clock."""

    def __init__(self, engine: Engine, dilation: float) -> None:
        self._engine, self._dilation = engine, dilation

    def now_ps(self) -> int:
        return self._engine.now_ps

    async def sleep_ps(self, duration_ps: int) -> None:
        await asyncio.sleep(duration_ps / PS_PER_S * self._dilation)


class _RunningProgram:
    def __init__(self, host: Host, command: StartProgram) -> None:
        self._host, self._command = host, command
        self._spec = ClassSpec(command.reference, command.parameters)
        load_program(self._spec)  # raises before anything is begun
        self._verbs = HostVerbs(host, command.ranks, command.telemetry, command.ip_version)
        self._completions_fd = self._verbs.completions.fileno()
        self._clock = _EmulatedClock(host.engine, host.config.dilation)
        self._sent: deque[OutOfBandMessage] = deque()
        self._device = Device(
            host.config.name,
            command.hosts,
            self._verbs,
            self._clock,
            self,
            first_queue_pair=command.first_queue_pair,
            seed=host.config.seed,
        )
        self._loop = asyncio.new_event_loop()
        self._started_ps = self._finished_ps = 0
        self._error: str | None = None
        self._task: asyncio.Task[None] | None = None
        # A program that never gives way must not keep the process from ending.
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def send(self, message: OutOfBandMessage) -> None:
        """See OutOfBand."""
        self._sent.append(message)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except ExtensionError as error:
            self._error = str(error)
        except BaseException as error:
            # Nobody sees what ends a thread. `end` cancels, too, but nobody asks for the error any more.
            self._error = user_report(error, f"{self._host.config.name} ({self._spec.reference})")

    async def _run(self) -> None:
        self._task = asyncio.current_task()
        self._loop.add_reader(self._completions_fd, self._device.drain)
        self._started_ps = self._clock.now_ps()
        try:
            await run_program(self._spec, self._host.config.name, self._device)
        finally:
            self._finished_ps = self._clock.now_ps()
            self._loop.remove_reader(self._completions_fd)
            self._device.close()

    def follow(self, delivered: tuple[OutOfBandMessage, ...]) -> ProgramProgress:
        """Hand messages over, and return what the program has sent since the last call."""
        # Asked before its messages are taken, so that none of an ended program is left behind.
        has_ended = not self._thread.is_alive()
        if not has_ended:
            for message in delivered:
                self._loop.call_soon_threadsafe(self._device.deliver, message)
        sent = []
        while self._sent:
            sent.append(self._sent.popleft())
        return ProgramProgress(self._command.run, tuple(sent), has_ended, self._error)

    def end(self) -> ProgramLeft:
        """End the program if it has not ended, and return what it has left."""
        waiting = self._awaited() if self._thread.is_alive() else ""
        if self._thread.is_alive():
            if self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(_LONGEST_TURN_S)
        report = self._device.report_so_far
        return ProgramLeft(
            self._command.run,
            self._started_ps,
            self._finished_ps,
            {name: value for name, value in report.values.items() if not isinstance(value, str)},
            {name: value for name, value in report.values.items() if isinstance(value, str)},
            {name: tuple(points) for name, points in report.series.items()},
            tuple(report.operations),
            waiting,
        )

    def _awaited(self) -> str:
        found: Future[str] = Future()
        self._loop.call_soon_threadsafe(lambda: found.set_result(awaited(self._device)))
        try:
            return found.result(_LONGEST_TURN_S)
        except FutureTimeoutError:
            return "does not give way to its event loop"


class HostPrograms:
    """Programs of a host, by the numbers of their runs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._programs: dict[int, _RunningProgram] = {}

    def start(self, command: StartProgram) -> Done:
        """Load a program and let it run. ExtensionError: it cannot be used. ValueError: there is such a run."""
        if command.run in self._programs:
            raise ValueError(f"run {command.run} has a program")
        self._programs[command.run] = _RunningProgram(self._host, command)
        return Done()

    def follow(self, command: FollowProgram) -> ProgramProgress:
        """See `_RunningProgram.follow`. ValueError: no such run."""
        return self._of(command.run).follow(command.delivered)

    def end(self, command: EndProgram) -> ProgramLeft:
        """See `_RunningProgram.end`. ValueError: no such run."""
        program = self._of(command.run)
        del self._programs[command.run]
        return program.end()

    def _of(self, run: int) -> _RunningProgram:
        if run not in self._programs:
            raise ValueError(f"run {run} has no program")
        return self._programs[run]
