"""The processes of `mpirun`, which serve a virtual run together over MPI (mpi4py)."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.clocks.virtual.processes import ALONE, Processes
from weft.errors import EnvironmentLacksError, WeftError
from weft.system.mpirun import process_count
from weft.system.signals import is_unwinding

T = TypeVar("T")

_WINDOW_TAG, _VALUE_TAG, _FAILURE_TAG = 1, 2, 3
_POLLS_BETWEEN_LOOKS = 64
_LEAVING_S = 10.0
_INSTALL = (
    "install the packages python3-mpi4py and openmpi-bin, and make .venv from /usr/bin/python3 with "
    "--system-site-packages (vagrant/provision.sh does both)"
)


class PeerFailedError(WeftError):
    """Another process of the run has failed; the message is its own."""

    def __init__(self, problem: str, exit_code: int) -> None:
        super().__init__(problem)
        self.exit_code = exit_code


@dataclass(frozen=True)
class _Raised:
    """Stands for the value of what raised an error in the process that was to give it."""

    problem: str
    exit_code: int


def failure_of(error: BaseException) -> tuple[str, int]:
    """Return an error in words, and the exit code for it."""
    if isinstance(error, WeftError):
        return str(error), error.exit_code
    of_machine = isinstance(error, OSError | MemoryError)
    return f"{type(error).__name__}: {error}", EnvironmentLacksError.exit_code if of_machine else 1


class DivergedError(RuntimeError):
    """Processes of a run no longer do the same: a defect, or different files."""


def processes_here() -> Processes:
    """Return the processes that mpirun has started, or this one alone. EnvironmentLacksError: there is no MPI."""
    count = process_count()
    if count == 1:
        return ALONE
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentLacksError(
            f"mpirun started {count} processes, and mpi4py is missing: {_INSTALL}"
        ) from error
    if MPI.COMM_WORLD.Get_size() != count:
        raise EnvironmentLacksError(
            f"mpirun started {count} processes, and mpi4py sees {MPI.COMM_WORLD.Get_size()}: it was built for another "
            f"MPI than mpirun is of; {_INSTALL}"
        )
    return MpiProcesses(MPI)


class MpiProcesses:
    """See Processes. Waiting polls, so that signals and the failures of others end it."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._world = mpi.COMM_WORLD.Dup()
        self.number: int = self._world.Get_rank()
        self.count: int = self._world.Get_size()
        self._others = [each for each in range(self.count) if each != self.number]
        self._status = mpi.Status()
        self._values = 0
        # What is on its way, with the bytes that it must keep.
        self._sending: list[tuple[Any, bytes]] = []

    def of(self, owner: int, what: str, read: Callable[[], T]) -> T:
        """See Processes."""
        self._values += 1
        if owner == self.number:
            try:
                value = read()
            except Exception as error:
                # Here the others stop, too, instead of waiting for what does not come.
                self._give(what, _Raised(*failure_of(error)))
                raise
            self._give(what, value)
            return value
        number, its_what, received = pickle.loads(self._receive(owner, _VALUE_TAG))
        if (number, its_what) != (self._values, what):
            raise DivergedError(
                f"process {owner} gives value {number}, {its_what}, and process {self.number} expects value "
                f"{self._values}, {what}: they no longer do the same"
            )
        if isinstance(received, _Raised):
            raise PeerFailedError(received.problem, received.exit_code)
        value = received
        return value

    def _give(self, what: str, value: object) -> None:
        message = pickle.dumps((self._values, what, value), protocol=5)
        for other in self._others:
            self._send(message, other, _VALUE_TAG)
        self._forget_sent()

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """See Processes."""
        for other in self._others:
            self._send(messages[other], other, _WINDOW_TAG)
        received = [
            b"" if each == self.number else self._receive(each, _WINDOW_TAG) for each in range(self.count)
        ]
        self._forget_sent()
        return received

    def fail(self, error: BaseException) -> None:
        """Let all others know that this process has failed."""
        message = pickle.dumps(failure_of(error))
        for other in self._others:
            self._send(message, other, _FAILURE_TAG)

    def leave(self, exit_code: int) -> None:
        """Wait for all others to come here, too; end all if they do not within some seconds."""
        barrier = self._world.Ibarrier()
        until_s = time.monotonic() + _LEAVING_S
        while not barrier.Test():
            if time.monotonic() > until_s:
                sys.stdout.flush()
                sys.stderr.flush()
                self._mpi.COMM_WORLD.Abort(exit_code)
            time.sleep(0.001)

    def _send(self, message: bytes, other: int, tag: int) -> None:
        self._sending.append((self._world.Isend([message, self._mpi.BYTE], other, tag), message))

    def _forget_sent(self) -> None:
        self._sending = [each for each in self._sending if not each[0].Test()]

    def _receive(self, source: int, tag: int) -> bytes:
        probe, status = self._world.Iprobe, self._status
        polls = 0
        while not probe(source, tag, status):
            polls += 1
            if polls % _POLLS_BETWEEN_LOOKS == 0:
                self._look_for_failures()
                if is_unwinding():
                    raise InterruptedError("the run was interrupted")
                os.sched_yield()
        message = bytearray(status.Get_count(self._mpi.BYTE))
        self._world.Recv([message, self._mpi.BYTE], source, tag)
        return bytes(message)

    def failure_of_another(self) -> PeerFailedError:
        """Wait some seconds for the failure of another process, which is known to have failed, and return it."""
        until_s = time.monotonic() + _LEAVING_S
        try:
            while time.monotonic() < until_s:
                self._look_for_failures()
                time.sleep(0.001)
        except PeerFailedError as failure:
            return failure
        return PeerFailedError("another process has failed", 1)

    def _look_for_failures(self) -> None:
        """Raise the first failure of another process."""
        status = self._mpi.Status()
        if self._world.Iprobe(self._mpi.ANY_SOURCE, _FAILURE_TAG, status):
            source = status.Get_source()
            problem, exit_code = pickle.loads(self._receive(source, _FAILURE_TAG))
            raise PeerFailedError(f"process {source} of {self.count}: {problem}", exit_code)
