"""Commands of hosts in virtual time: which of them goes on, and when the fabric does."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from weft.clocks.exec_commands import CommandOutcome, ExecRun, HostCommand, StartedCommand, unended
from weft.clocks.virtual.exec.devices import VirtualDevices
from weft.clocks.virtual.exec.places import HostPlaces, require_places
from weft.clocks.virtual.exec.processes import ThreadWait, TimedProcess, TimedProcesses
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.engine import Partitions, _core
from weft.errors import CheckFailedError
from weft.quantities.units import PS_PER_NS, PS_PER_S
from weft.topologies import FabricSpec
from weft.traffic.host import Host
from weft.verbs.libraries import VIRTUAL_TIME, variables

K = TypeVar("K")


class VirtualCommands:
    """Runs commands of hosts, by name. All processes of a run are at the same moment of its time."""

    def __init__(
        self,
        loop: VirtualTimeLoop,
        partitions: Partitions,
        fabric: FabricSpec,
        hosts: Mapping[str, Host],
        directory: Path,
    ) -> None:
        self._loop, self._partitions, self._fabric, self._directory = loop, partitions, fabric, directory
        self._devices = VirtualDevices(loop, fabric, hosts, directory)
        self._runs = 0

    def close(self) -> None:
        """Take the hosts' devices away."""
        self._devices.close()

    def run(self, asked: ExecRun) -> list[CommandOutcome]:
        """Run commands to their end. Errors as `Lab.run_commands`."""
        require_places()
        self._runs += 1
        directory = self._directory / f"exec{self._runs}"
        directory.mkdir()
        with _Run(self._loop, self._partitions, self._fabric, self._devices, directory, asked) as run:
            return self._loop.run_here(run.to_the_end())


class _Run:
    """Commands, and their places."""

    def __init__(
        self,
        loop: VirtualTimeLoop,
        partitions: Partitions,
        fabric: FabricSpec,
        devices: VirtualDevices,
        directory: Path,
        asked: ExecRun,
    ) -> None:
        self._loop, self._partitions, self._devices = loop, partitions, devices
        self._directory, self._asked = directory, asked
        self._limit_ps = loop.now_ps()
        self._ahead_ps = 0
        self._devices.clock.now_ps = loop.now_ps()
        self._turn = asyncio.Event()
        self._started: list[StartedCommand] = []
        self._news: set[int] = set()
        # What has changed so far, counted; and as of when each thread that looks at memory has seen it.
        self._changes = 0
        self._seen: dict[tuple[int, int], int] = {}
        names = list(dict.fromkeys([*(each.host for each in asked.commands), *asked.more_hosts]))
        for name in names:
            devices.open(name)
        self._places = HostPlaces(fabric, names, directory, self._variables)
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> _Run:
        with contextlib.ExitStack() as stack:
            self._devices.on_news = self._turn.set
            stack.callback(setattr, self._devices, "on_news", _nothing)
            stack.enter_context(self._places)
            self._processes = TimedProcesses(
                self._directory / "time",
                self._places,
                self._devices.clock,
                self._devices.serve,
                self._devices.descriptors(),
            )
            stack.callback(self._processes.close)
            stack.callback(self._end_commands)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()
        # Devices let go of programs that have ended.
        while self._devices.serve():
            pass

    def _variables(self, host: str) -> dict[str, str]:
        """Return the environment variables of a host's programs."""
        own = variables(str(self._devices.path(host)), more=[VIRTUAL_TIME])
        return own | {_core.TIME_SOCKET_VARIABLE: str(self._directory / "time")}

    # --- commands

    def _begin(self, command: HostCommand) -> None:
        output = (self._directory / f"output{len(self._started)}").open("w+b")
        process = subprocess.Popen(
            self._places.enter(command.host, command.command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._started.append(StartedCommand(command, process, output, self._loop.now_ps()))
        self._processes.add(command.host, process.pid)

    def _end_commands(self) -> None:
        for each in self._started:
            if each.process.poll() is None:
                each.process.kill()
                each.process.wait()
            each.output.close()

    def _running(self) -> list[StartedCommand]:
        """Return the commands that have not ended."""
        return [each for each in self._started if not each.has_ended(self._loop.now_ps())]

    async def to_the_end(self) -> list[CommandOutcome]:
        """Run the commands to their end."""
        self._limit_ps = limit_ps = self._loop.now_ps() + round(self._asked.timeout_s * PS_PER_S)
        for command in self._asked.commands:
            self._begin(command)
            self._settle([])
        while True:
            if self._ahead_ps > self._loop.now_ps():
                # Nothing happens in the fabric before.
                await self._loop.sleep_ps(self._ahead_ps - self._loop.now_ps())
                self._devices.clock.now_ps = self._loop.now_ps()
                self._devices.take_posted()
            if not self._running():
                break
            if self._let_one_go_on():
                continue
            if self._loop.now_ps() >= limit_ps - PS_PER_NS:  # the loop's own calls may come so early
                self._refuse_if_nothing_comes()  # timers of the fabric may have run out without news since
                raise CheckFailedError(
                    unended(self.waiting(), f"commands have not ended after {self._asked.timeout_s:g} s")
                )
            await self._pass_time(limit_ps)
        uses = tuple(sorted({name for names in self._processes.uses.values() for name in names}))
        return [each.outcome(uses) for each in self._started]

    def waiting(self) -> dict[HostCommand, str]:
        """Return what each command does or how it ended, and the last that it has written, in words."""
        found = {}
        for each in self._started:
            if each.has_ended(self._loop.now_ps()):
                found[each.command] = f"ended with status {each.process.returncode}{each.last_line}"
                continue
            waits = [wait for process in self._processes if process.host == each.command.host for wait in process.waits]
            does = dict.fromkeys(wait.in_words for wait in waits)
            found[each.command] = (", ".join(does) or "waits in system calls") + each.last_line
        return found

    # --- time

    def _settle(self, woken: list[tuple[TimedProcess, ThreadWait]]) -> None:
        """Let programs compute until all wait, then take what they have posted."""
        slept, acts = self._processes.sleepers, self._processes.acts()
        self._processes.settle()
        self._ahead_ps = self._processes.ahead_ps()
        if self._ahead_ps <= self._loop.now_ps():
            self._devices.take_posted()
        loops = {(each.pid, wait.place): wait.loop for each in self._processes for wait in each.waits}
        keys = {(each.pid, wait.place) for each, wait in woken}
        threads = {(each.pid, wait.thread) for each, wait in woken}
        own = {each.pid for each, _ in woken}
        # Whether others than those that were woken have run: what one of these looked at may have changed since.
        others = (
            len(woken) > 1
            or _without(threads, slept) != _without(threads, self._processes.sleepers)
            or _without(own, acts) != _without(own, self._processes.acts())
        )
        # A thread that looks at memory in the same loop as before has done nothing else.
        self._changes += (
            others
            or acts != self._processes.acts()
            or any(wait.kind != "memory" or loops.get((each.pid, wait.place)) != wait.loop for each, wait in woken)
        )
        self._seen = {
            key: self._changes - others if key in keys else self._seen.get(key, self._changes) for key in loops
        }

    def _let_one_go_on(self) -> bool:
        """Let the first process go on that may; returns whether there was one."""
        now_ps = self._loop.now_ps()
        self._devices.clock.now_ps = now_ps
        self._news |= self._devices.take_news()
        for process in list(self._processes):
            if process.native is None:
                continue
            has_alarm = 0 < process.native.alarm_ps <= now_ps
            due = [each for each in process.waits if has_alarm or self._is_due(process, each, now_ps)]
            if not due and not has_alarm:
                continue
            self._news.discard(process.pid)
            if has_alarm:
                self._processes.alarm(process)
            process.native.let_ahead(self._free_until_ps(process, due[0]) if len(due) == 1 else 0)
            self._processes.wake(process, [each.place for each in due])
            self._settle([(process, each) for each in due])
            return True
        # Of processes whose threads have been woken by the kernel, or will look themselves.
        self._news.clear()
        return False

    def _free_until_ps(self, woken: TimedProcess, wait: ThreadWait) -> int:
        """Return how far a process may go ahead with one thread that goes on: nothing happens before."""
        now_ps = self._loop.now_ps()
        times = [self._partitions.next_event_ps(), self._loop.next_call_ps(), self._devices.next_turn_ps()]
        for process in self._processes:
            alone = [each for each in process.waits if process is not woken or each.place != wait.place]
            if any(self._is_due(process, each, now_ps) for each in alone):
                return 0
            times += [each.until_ps for each in alone]
            if process.native is not None:
                times.append(process.native.alarm_ps or None)
        return min((each for each in times if each is not None), default=self._limit_ps)

    def _is_due(self, process: TimedProcess, wait: ThreadWait, now_ps: int) -> bool:
        if wait.until_ps is not None and wait.until_ps <= now_ps:
            return True
        if wait.kind == "news":
            return process.pid in self._news
        if wait.kind != "memory":
            return False
        return process.pid in self._news or self._seen.get((process.pid, wait.place), 0) < self._changes

    async def _pass_time(self, limit_ps: int) -> None:
        """Let the fabric go on until it has something for a process, or a process's time has come."""
        self._watch_memory()
        sent = self._devices.events_sent()
        self._refuse_if_nothing_comes()
        next_ps = self._next_ps()
        self._turn.clear()
        # The fabric keeps a call that it has been given, and would not be idle until then; the loop takes its own back.
        limit = self._loop.call_at(limit_ps / PS_PER_S, self._turn.set)
        forget = limit.cancel
        if next_ps is not None and next_ps < limit_ps:
            forget = self._loop.call_after_ps(max(0, next_ps - self._loop.now_ps()), self._turn.set)
        try:
            await self._turn.wait()
        finally:
            limit.cancel()
            forget()
        self._devices.clock.now_ps = self._loop.now_ps()
        is_due = self._devices.take_turns()
        # Otherwise nobody has been woken yet.
        if is_due or sent != self._devices.events_sent() or self._processes.has_requests:
            self._settle([])

    def _refuse_if_nothing_comes(self) -> None:
        is_idle = self._partitions.next_event_ps() is None and self._loop.next_call_ps() is None
        if is_idle and self._next_ps() is None:
            raise CheckFailedError(unended(self.waiting(), "commands wait for what cannot happen"))

    def _next_ps(self) -> int | None:
        """Return when a process or a connection goes on by itself; None: never."""
        times = [self._devices.next_turn_ps()]
        for process in self._processes:
            times += [each.until_ps for each in process.waits]
            if process.native is not None:
                times.append(process.native.alarm_ps or None)
        return min((each for each in times if each is not None), default=None)

    def _watch_memory(self) -> None:
        lookers = (each.pid for each in self._processes if any(wait.kind == "memory" for wait in each.waits))
        self._devices.watch_memory(set(lookers))


def _without(left_out: set[K], counts: Mapping[K, int]) -> dict[K, int]:
    return {key: count for key, count in counts.items() if key not in left_out}


def _nothing() -> None:
    """Do nothing."""
