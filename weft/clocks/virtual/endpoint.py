"""A host of the virtual clock: the same commands as an endpoint process takes, carried out here and now."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from weft.clocks.virtual.deadlocks import DeadlockWatch
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.clocks.virtual.processes import ALONE, Processes
from weft.engine import Engine
from weft.system.child_processes import ChildError
from weft.traffic.answers import RunState
from weft.traffic.attachment import Attach
from weft.traffic.commands.base import Command
from weft.traffic.commands.runs import Wait
from weft.traffic.host import Host
from weft.traffic.host_commands import HostCommands
from weft.traffic.host_config import HostConfig
from weft.traffic.host_inside import HostInside
from weft.traffic.scale_up import ScaleUpLinks

A = TypeVar("A")


@dataclass(frozen=True)
class _Waiting:
    """An answer that is not there yet: the state of a run when it has ended, or at the deadline."""

    run: int
    deadline_s: float


class VirtualEndpoint:
    """A `weft.traffic.endpoint_calls.HostEndpoint` of this process.

    A `Wait` runs the fabric until the run has ended, or for its `timeout_s` of virtual time, or until a deadlock of
    flow control is noticed, or until it is interrupted. Of several `processes` the `owner` carries commands out, and
    all have its answers.
    """

    def __init__(
        self,
        config: HostConfig,
        engine: Engine,
        loop: VirtualTimeLoop,
        attach: Attach,
        scale_up: ScaleUpLinks | None = None,
        inside: HostInside | None = None,
        deadlocks: DeadlockWatch | None = None,
        processes: Processes = ALONE,
        owner: int = 0,
    ) -> None:
        self.name = config.name
        self._deadlocks = deadlocks
        self._processes, self._owner = processes, owner
        self._loop = loop
        self._host: Host | None = Host(config, engine, attach, scale_up, inside)
        self._commands: HostCommands | None = HostCommands(self._host)
        self._answers: deque[tuple[int, object]] = deque()
        self._run_ended = asyncio.Event()
        self._is_interrupted = False

    @property
    def host(self) -> Host:
        """The host, until it is closed."""
        assert self._host is not None
        return self._host

    def send(self, command: Command[Any], number: int) -> None:
        """Carry out a command; a `Wait` is carried out when its answer is read."""
        try:
            answer: object = (
                # The time begins now, for all hosts alike, however late this one's answer is read.
                _Waiting(command.run, self._loop.time() + command.timeout_s)
                if isinstance(command, Wait)
                else self._carry_out(command)
                if self._owner == self._processes.number
                else None
            )
        except Exception as error:
            # As in an endpoint process, any error that a command raises becomes its answer.
            answer = ChildError(f"the endpoint of {self.name}: {command.name}: {error}")
        self._answers.append((number, answer))

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        """Return the answer to a command that was sent.

        Raises:
            ChildError: it was refused.
            DeadlockError: packets wait for each other for ever.
        """
        answered, answer = self._answers.popleft()
        while answered != number:
            answered, answer = self._answers.popleft()
        if isinstance(answer, _Waiting):
            answer = self._loop.run_here(self._wait(answer))
        else:
            own = answer
            answer = self._processes.of(self._owner, f"{self.name}: {command.name}", lambda: own)
        if isinstance(answer, ChildError):
            raise answer
        return cast(A, answer)

    def run_state(self, run: int) -> RunState | None:
        """Return how far a run is; from any thread."""
        return self._commands.state(run) if self._commands is not None else None

    def interrupt(self) -> None:
        """Have the present or else the next `Wait` answered at once."""
        self._is_interrupted = True
        self._run_ended.set()

    def close(self) -> None:
        """Close captures, and release the host."""
        if self._host is not None:
            self._host.executor.set_end_listener(None)
            self._host.close()
        if self._commands is not None:
            self._commands.close()
        self._host = self._commands = self._deadlocks = None
        del self._loop

    def _carry_out(self, command: Command[A]) -> A:
        assert self._commands is not None, "a closed endpoint carries out nothing"
        return self._commands.carry_out(command)

    def _state(self, run: int) -> RunState:
        commands = self._commands
        assert commands is not None
        return self._processes.of(self._owner, f"{self.name}: run {run}", lambda: commands.state(run))

    async def _wait(self, waiting: _Waiting) -> RunState:
        loop, run_ended = self._loop, self._run_ended
        # Only while somebody waits for this host: each end that Python learns of stops the fabric and cuts one of its
        # windows short, and a thousand hosts would do so a thousand times.
        self.host.executor.set_end_listener(lambda: loop.wake(run_ended.set))
        try:
            async with asyncio.timeout_at(waiting.deadline_s):
                while not (state := self._state(waiting.run)).has_ended:
                    if self._is_interrupted:
                        break
                    self._run_ended.clear()
                    await self._wait_for_an_end()
                return state
        except TimeoutError:
            return self._state(waiting.run)
        finally:
            self._is_interrupted = False
            if self._host is not None:
                self._host.executor.set_end_listener(None)

    async def _wait_for_an_end(self) -> None:
        """Wait for the end of a run. DeadlockError: there will be none."""
        if self._deadlocks is None:
            await self._run_ended.wait()
            return
        self._deadlocks.check()
        try:
            async with asyncio.timeout(self._deadlocks.interval_s):
                await self._run_ended.wait()
        except TimeoutError:
            self._deadlocks.look()
