"""Processes of a run's programs: those that have joined its time, and when all of them wait."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.clocks.thread_states import ThreadFiles, ThreadState, state_of, threads_of
from weft.clocks.virtual.exec.places import HostPlaces
from weft.engine import _core
from weft.errors import CheckFailedError
from weft.system.signals import raise_held
from weft.traffic.verbs.socket import listening, peer_of

_SOON_S = 30e-6
_PASSES_SOON = 50
_LATER_S = 0.001
_PATIENCE_S = 500e-6
"""How long a thread computes before it is asked whether it only looks at memory."""
_LOOKERS_PATIENCE_S = 60e-6
_MOST_PATIENCE_S = 0.1
STANDSTILL_S = 120.0
"""How long, by the wall clock, programs may compute at one moment of virtual time."""


@dataclass(frozen=True)
class ThreadWait:
    """A thread that waits as the run knows it.

    Attributes:
        kind: what for: time, news, memory, or kernel (something of the kernel's).
        until_ps: when it goes on at the latest; None: never by itself.
        loop: of memory, stands for the loop in which it looks at it.
    """

    place: int
    thread: int
    kind: str
    until_ps: int | None
    loop: int

    @property
    def in_words(self) -> str:
        """The wait, for messages."""
        return {
            "time": "sleeps",
            "news": "waits for completions",
            "memory": "looks at memory that nobody changes",
            "kernel": "waits in a system call",
        }[self.kind]


@dataclass
class _Busy:
    """A thread that computes: since when, and how long before it is asked why."""

    since_s: float
    patience_s: float
    answers: int = 0
    """How often it had answered that it computes."""


@dataclass
class TimedProcess:
    """A process in a host."""

    host: str
    pid: int
    native: _core.TimedProcess | None = None
    """Its page; None until it has joined the run's time, which programs without shared libraries never do."""
    begun: int = -1
    threads: list[int] = field(default_factory=list)
    waits: list[ThreadWait] = field(default_factory=list)
    """As of the last time at which all waited."""
    busy: dict[int, _Busy] = field(default_factory=dict)
    lookers: set[int] = field(default_factory=set)
    """Threads that have looked at memory before."""
    _files: dict[int, ThreadFiles] = field(default_factory=dict)

    def state(self, thread: int) -> ThreadState | None:
        """Return the state of one of its threads; None if it has ended."""
        try:
            files = self._files.get(thread) or ThreadFiles(self.pid, thread)
        except (FileNotFoundError, ProcessLookupError):
            return None
        self._files[thread] = files
        state = files.state()
        if state is None:
            self._files.pop(thread).close()
        return state

    def keep_files(self, threads: Collection[int]) -> None:
        """Close the kernel's files on all other threads."""
        for thread in [each for each in self._files if each not in threads]:
            self._files.pop(thread).close()


class TimedProcesses:
    """Lets processes join a run's time, and knows when all of them wait.

    Args:
        path: of the socket by which they join.
        places: where they are.
        clock: the run's time.
        serve: serves requests that processes wait for; returns whether there were any.
        descriptors: that are readable when there may be some.
    """

    def __init__(
        self,
        path: Path,
        places: HostPlaces,
        clock: _core.VirtualClockPage,
        serve: Callable[[], bool],
        descriptors: list[int],
    ) -> None:
        self._places, self._clock, self._serve = places, clock, serve
        self._listener = listening(path)
        self._listener.setblocking(False)
        self._poller = select.epoll()
        for descriptor in (self._listener.fileno(), *descriptors):
            self._poller.register(descriptor, select.EPOLLIN)
        self._connections: dict[int, tuple[socket.socket, int]] = {}
        self._doorbells: dict[int, _core.TimedProcess] = {}
        self._natives: dict[int, _core.TimedProcess] = {}
        self._of_pid: dict[int, TimedProcess] = {}
        self._has_changed = True
        self._may_have_more = True
        self._slept: dict[tuple[int, int], int] = {}
        self._left_ps = 0
        """How far the furthest was of those that have left."""
        self._reached: object = None
        """Who slept in the kernel, and what had been sent through it, when all waited last."""
        self.uses: dict[int, set[str]] = {}
        """Calls of processes whose times are the wall clock's, by process."""

    def close(self) -> None:
        """Let no more processes join."""
        for connection, _ in self._connections.values():
            connection.close()
        for process in self:
            process.keep_files(())
        self._poller.close()
        self._listener.close()

    def __iter__(self) -> Iterator[TimedProcess]:
        return iter(self._of_pid.values())

    def add(self, host: str, pid: int) -> None:
        """Wait for a process that is about to enter a host, too."""
        self._of_pid[pid] = TimedProcess(host, pid)
        self._has_changed = True

    def settle(self) -> None:
        """Let programs compute until all of them wait, and serve them meanwhile.

        Raises CheckFailedError: one has computed for too long.
        """
        began_s = time.monotonic()
        passes = 0
        asleep_before: dict[tuple[int, int], int] | None = None
        while True:
            raise_held()
            served = self._serve_all()
            asleep = self._look()
            if asleep is not None and not served and not self._serve_all():
                # What is on its way through the kernel may be about to wake one: twice the same, and it was not.
                reached = asleep, [0 if each.native is None else each.native.sent for each in self]
                if asleep == asleep_before or reached == self._reached:
                    self._reached, self._slept = reached, asleep
                    return
                asleep_before = asleep
                self._wait(_SOON_S)
                continue
            asleep_before = None
            passes += 1
            if time.monotonic() - began_s > STANDSTILL_S:
                busy = [f"{each.host}: process {each.pid}" for each in self if each.busy]
                still = f"virtual time has stood still for {STANDSTILL_S:g} s"
                raise CheckFailedError(f"exec: {still}: {', '.join(busy)} computes and never waits")
            # A thread that has begun to wait rings; others have to be looked at.
            self._wait(_SOON_S if passes < _PASSES_SOON else _LATER_S)

    def _wait(self, longest_s: float) -> None:
        """Wait until there is something to serve, or a thread rings."""
        self._poller.poll(longest_s)

    @property
    def has_requests(self) -> bool:
        """Whether there is something to serve."""
        return bool(self._poller.poll(0))

    @property
    def sleepers(self) -> dict[tuple[int, int], int]:
        """Threads that sleep in the kernel, by process and thread, and how often they have run."""
        return self._slept

    def _serve_all(self) -> bool:
        """Let processes join, serve requests; returns whether there was anything."""
        found = False
        for descriptor, _ in self._poller.poll(0):
            if descriptor == self._listener.fileno():
                found |= self._let_in()
            elif descriptor in self._connections:
                found |= self._hear(descriptor)
            elif descriptor in self._doorbells:
                self._doorbells[descriptor].take_rings()
        return self._serve() or found

    def _let_in(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # gone already
            return False
        connection.setblocking(False)
        pid, _ = peer_of(connection)
        self._connections[connection.fileno()] = connection, pid
        self._poller.register(connection, select.EPOLLIN)
        return True

    def _hear(self, descriptor: int) -> bool:
        """Take a process's first word, or its end."""
        connection, pid = self._connections[descriptor]
        try:
            message = connection.recv(_core.TIME_HELLO_BYTES + 1)
        except BlockingIOError:
            return False
        except OSError:
            message = b""
        if message and _core.is_time_hello(message) and self._join(connection, pid):
            return True
        self._poller.unregister(descriptor)
        connection.close()
        del self._connections[descriptor]
        self._leave(descriptor, pid)
        return True

    def _join(self, connection: socket.socket, pid: int) -> bool:
        native = _core.TimedProcess(pid)
        descriptors = [self._clock.descriptor, native.page_descriptor, native.doorbell_descriptor]
        try:
            socket.send_fds(connection, [b"\0"], descriptors)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise
            return False
        self._doorbells[native.doorbell_descriptor] = native
        self._poller.register(native.doorbell_descriptor, select.EPOLLIN)
        self._natives[connection.fileno()] = native
        self._has_changed = True
        return True

    def _leave(self, descriptor: int, pid: int) -> None:
        native = self._natives.pop(descriptor, None)
        self._has_changed = True
        if native is None:
            return
        self.uses.setdefault(pid, set()).update(native.wall_clock_uses)
        self._left_ps = max(self._left_ps, native.ahead_ps)
        self._poller.unregister(native.doorbell_descriptor)
        del self._doorbells[native.doorbell_descriptor]

    def _list(self) -> None:
        """Find all processes and threads again."""
        # A process that has become another program has joined again, and its first connection may not have ended yet.
        natives = {
            pid: self._natives[descriptor]
            for descriptor, (_, pid) in self._connections.items()
            if descriptor in self._natives
        }
        found = {}
        for host, pid in self._places.processes():
            known = self._of_pid.get(pid) or TimedProcess(host, pid)
            known.native = natives.get(pid)
            known.begun = -1 if known.native is None else known.native.begun
            known.threads = threads_of(pid)
            known.keep_files(known.threads)
            found[pid] = known
        for pid, known in self._of_pid.items():
            if pid in found:
                continue
            # One that has not entered yet, or ends: it leaves its namespaces before it tells its parent, which it does
            # when its last thread has ended.
            known.threads = threads_of(pid)
            states = [state_of(pid, thread) for thread in known.threads]
            if any(state is not None and not state.has_ended for state in states):
                found[pid] = known
            else:
                known.keep_files(())
        self._of_pid = found
        self._has_changed = False

    def _look(self) -> dict[tuple[int, int], int] | None:
        """Return the threads that sleep in the kernel, and how often each has run; None if a thread computes."""
        if self._has_changed or any(each.native is not None and each.native.begun != each.begun for each in self):
            self._list()
            self._may_have_more = True
        asleep: dict[tuple[int, int], int] = {}
        quiet = True
        for process in self:
            quiet &= self._look_at(process, asleep)
        if quiet and self._may_have_more:
            # Who has begun another was about to do so when the others were listed, and sleeps by now.
            before = self._identifiers()
            self._list()
            self._may_have_more = self._identifiers() != before
            quiet = not self._may_have_more
        return asleep if quiet else None

    def _identifiers(self) -> list[tuple[int, list[int]]]:
        return [(each.pid, each.threads) for each in self]

    def _look_at(self, process: TimedProcess, asleep: dict[tuple[int, int], int]) -> bool:
        rows = [] if process.native is None else [ThreadWait(*row) for row in process.native.waiting()]
        ended = {row.thread for row in rows if row.kind == "ended"}
        process.waits = rows = [row for row in rows if row.kind != "ended"]
        known = {row.thread for row in rows if row.kind != "kernel"}
        process.lookers.update(row.thread for row in rows if row.kind == "memory")
        quiet = True
        for thread in process.threads:
            if thread in known:
                process.busy.pop(thread, None)
                continue
            state = process.state(thread)
            if state is None:
                self._has_changed = True
                quiet = False
            elif state.sleeps and thread not in ended:
                asleep[process.pid, thread] = state.turns
                process.busy.pop(thread, None)
            else:
                quiet = False
                if not state.sleeps:
                    self._ask(process, thread)
        return quiet

    def _ask(self, process: TimedProcess, thread: int) -> None:
        """Ask a thread that has computed for some time whether it only looks at memory."""
        now_s = time.monotonic()
        patience_s = _LOOKERS_PATIENCE_S if thread in process.lookers else _PATIENCE_S
        busy = process.busy.setdefault(thread, _Busy(now_s, patience_s))
        if process.native is None or now_s - busy.since_s < busy.patience_s:
            return
        busy.since_s = now_s
        answers = process.native.computes(thread)
        if answers != busy.answers:
            busy.answers = answers
            busy.patience_s = min(2 * busy.patience_s, _MOST_PATIENCE_S)
        process.native.ask(thread)

    def wake(self, process: TimedProcess, places: list[int]) -> None:
        """End waits of a process's threads."""
        assert process.native is not None
        for place in places:
            process.native.wake(place)

    @staticmethod
    def alarm(process: TimedProcess) -> None:
        """Give a process SIGALRM, which it has asked for."""
        assert process.native is not None
        process.native.pass_alarm()
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGALRM)

    def ahead_ps(self) -> int:
        """Return how far the process is, or was, that has gone ahead furthest."""
        return max([self._left_ps, *(each.native.ahead_ps for each in self if each.native is not None)])

    def acts(self) -> dict[int, int]:
        """Return how often each process, by identifier, has done something that others may see."""
        return {each.pid: 0 if each.native is None else each.native.acts for each in self}
