"""A host of the virtual clock: the same commands as an endpoint process takes, carried out here and now."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.engine import Engine
from weft.system.child_processes import ChildError
from weft.traffic.attachment import Attach
from weft.traffic.host import Host
from weft.traffic.host_commands import ENDED, WAIT, HostCommands
from weft.traffic.host_config import HostConfig
from weft.traffic.messages import take
from weft.traffic.scale_up import ScaleUpLinks


class VirtualEndpoint:
    """A `weft.traffic.control.JsonLines` without lines.

    A `wait` runs the fabric until the run has ended, or for the message's `timeout_s` of virtual time.
    """

    def __init__(
        self,
        config: HostConfig,
        engine: Engine,
        loop: VirtualTimeLoop,
        attach: Attach,
        scale_up: ScaleUpLinks | None = None,
    ) -> None:
        self.name = config.name
        self._loop = loop
        self._host: Host | None = Host(config, engine, attach, scale_up)
        self._commands: HostCommands | None = HostCommands(self._host)
        self._answers: deque[tuple[Any, dict[str, Any]]] = deque()
        self._run_ended = asyncio.Event()

    @property
    def host(self) -> Host:
        """The host, until it is closed."""
        assert self._host is not None
        return self._host

    def send(self, command: dict[str, Any]) -> None:
        """Carry out a command; a `wait` is carried out when its answer is read."""
        try:
            answer = self._begin_wait(command) if command.get("command") == WAIT else self._carry_out(command)
        except Exception as error:
            # As in an endpoint process, any error that a command raises becomes its answer.
            answer = {"error": f"{command.get('command', 'command')}: {error}"}
        self._answers.append((command.get("id"), answer))

    def read_answer(self, timeout_s: float, number: int | None = None) -> dict[str, Any]:
        """Return the next answer, or that to the command of a number. ChildError if the command was refused."""
        answered, answer = self._answers.popleft()
        while number is not None and answered != number:
            answered, answer = self._answers.popleft()
        if WAIT in answer:
            answer = self._loop.run_here(self._wait(*answer[WAIT]))
        if "error" in answer:
            raise ChildError(f"the endpoint of {self.name}: {answer['error']}")
        return answer

    def run_status(self, run: int) -> dict[str, Any]:
        """Return how far a run is; from any thread."""
        return self._commands.status({"run": run}) if self._commands is not None else {}

    def close(self) -> None:
        """Close captures, and release the host."""
        if self._host is not None:
            self._host.executor.set_end_listener(None)
            self._host.close()
        if self._commands is not None:
            self._commands.close()
        self._host = self._commands = None
        del self._loop

    def _carry_out(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._commands is not None, "a closed endpoint carries out nothing"
        return self._commands.carry_out(message)

    def _begin_wait(self, message: dict[str, Any]) -> dict[str, Any]:
        # The time begins now, for all hosts alike, however late this one's answer is read.
        return {WAIT: (message, self._loop.time() + take(message, "timeout_s", float, 60.0))}

    async def _wait(self, message: dict[str, Any], deadline_s: float) -> dict[str, Any]:
        assert self._commands is not None
        loop, run_ended = self._loop, self._run_ended
        # Only while somebody waits for this host: each end that Python learns of stops the fabric and cuts one of its
        # windows short, and a thousand hosts would do so a thousand times.
        self.host.executor.set_end_listener(lambda: loop.wake(run_ended.set))
        try:
            async with asyncio.timeout_at(deadline_s):
                while (status := self._commands.status(message))["state"] not in ENDED:
                    self._run_ended.clear()
                    await self._run_ended.wait()
                return status
        except TimeoutError:
            return self._commands.status(message)
        finally:
            if self._host is not None:
                self._host.executor.set_end_listener(None)
