"""The processes of `mpirun`, which serve a virtual run together over MPI (mpi4py)."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from weft.clocks.virtual.processes import ALONE, Processes
from weft.command_errors import PREFIX
from weft.errors import EnvironmentLacksError, WeftError
from weft.system.mpirun import process_count, require_known_launcher
from weft.system.signals import is_unwinding

T = TypeVar("T")

_WINDOW_TAG, _VALUE_TAG, _FAILURE_TAG = 1, 2, 3
_POLLS_BETWEEN_LOOKS = 64
_LEAVING_S = 10.0
_MOST_PIECE_BYTES = 1 << 30  # MPI counts the bytes of a message in 31 bits
_INSTALL = (
    "install the packages python3-mpi4py and openmpi-bin, and make .venv from /usr/bin/python3 with "
    "--system-site-packages (`make setup PARTS=mpi` does both)"
)


class PeerFailedError(WeftError):
    """Another process of the run has failed; the message is its own."""

    def __init__(self, problem: str, exit_code: int) -> None:
        super().__init__(problem)
        self.exit_code = exit_code


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
        require_known_launcher()
        return ALONE
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentLacksError(f"mpirun started {count} processes, and mpi4py is missing: {_INSTALL}") from error
    if MPI.COMM_WORLD.Get_size() != count:
        raise EnvironmentLacksError(
            f"mpirun started {count} processes, and mpi4py sees {MPI.COMM_WORLD.Get_size()}: it was built for another "
            f"MPI than mpirun is of; {_INSTALL}"
        )
    return MpiProcesses(MPI)


class MpiProcesses:
    """See Processes. Waiting polls, so that signals and the failures of others end it.

    After the first failure, of this process or another, nothing is exchanged: whatever would wait raises that failure.
    """

    def __init__(self, mpi: Any, piece_bytes: int = _MOST_PIECE_BYTES) -> None:
        self._mpi = mpi
        self._world = mpi.COMM_WORLD.Dup()
        self.number: int = self._world.Get_rank()
        self.count: int = self._world.Get_size()
        self._others = [each for each in range(self.count) if each != self.number]
        self._status = mpi.Status()
        self._values = 0
        self._piece_bytes = piece_bytes
        self._failure: BaseException | None = None
        # What is on its way, with the bytes that it must keep.
        self._sending: list[tuple[Any, memoryview]] = []

    def of(self, owner: int, what: str, read: Callable[[], T]) -> T:
        """See Processes."""
        self._require_no_failure()
        try:
            return self._of(owner, what, read)
        except Exception as error:
            # At once: others wait for what does not come, and closing the fabric would wait for them.
            self.fail(error)
            raise

    def _of(self, owner: int, what: str, read: Callable[[], T]) -> T:
        self._values += 1
        if owner == self.number:
            value = read()
            message = pickle.dumps((self._values, what, value), protocol=5)
            for other in self._others:
                self._send(message, other, _VALUE_TAG)
            self._forget_sent()
            return value
        number, its_what, value = pickle.loads(self._receive(owner, _VALUE_TAG))
        if (number, its_what) != (self._values, what):
            raise DivergedError(
                f"process {owner} gives value {number}, {its_what}, and process {self.number} expects value "
                f"{self._values}, {what}: they no longer do the same"
            )
        return value

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """See Processes."""
        self._require_no_failure()
        for other in self._others:
            self._send(messages[other], other, _WINDOW_TAG)
        received = [b"" if each == self.number else self._receive(each, _WINDOW_TAG) for each in range(self.count)]
        self._forget_sent()
        return received

    def fail(self, error: BaseException) -> BaseException:
        """See Processes."""
        if self._failure is None and isinstance(error, Exception):
            self._failure = error
            message = pickle.dumps(failure_of(error))
            if not _is_of_another(error):
                for other in self._others:
                    self._send(message, other, _FAILURE_TAG)
        return self._failure or error

    def leave(self, exit_code: int, problem: str = "") -> None:
        """Wait for all others to come here, too; with a problem, say it and end all if that takes some seconds."""
        barrier = self._world.Ibarrier()
        until_s = time.monotonic() + _LEAVING_S
        while not barrier.Test():
            if problem and time.monotonic() > until_s:
                self._abort(exit_code, problem)
            time.sleep(0.001)

    def _abort(self, exit_code: int, problem: str) -> None:
        if self.number != 0:  # which has said it already, or hangs
            print(f"{PREFIX}process {self.number} of {self.count}: {problem}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(exit_code)

    def _require_no_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send(self, message: bytes, other: int, tag: int) -> None:
        """Send it in pieces, the last of which is shorter than the others, if only by being empty."""
        view = memoryview(message)
        for begin in range(0, len(view) + 1, self._piece_bytes):
            piece = view[begin : begin + self._piece_bytes]
            self._sending.append((self._world.Isend([piece, self._mpi.BYTE], other, tag), piece))

    def _forget_sent(self) -> None:
        self._sending = [each for each in self._sending if not each[0].Test()]

    def _receive(self, source: int, tag: int) -> bytes:
        pieces = [self._receive_piece(source, tag)]
        while len(pieces[-1]) == self._piece_bytes:
            pieces.append(self._receive_piece(source, tag))
        return b"".join(pieces)

    def _receive_piece(self, source: int, tag: int) -> bytearray:
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
        return message

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
            failure = PeerFailedError(f"process {source} of {self.count}: {problem}", exit_code)
            self._failure = self._failure or failure
            raise failure


def _is_of_another(error: BaseException) -> bool:
    from weft.engine import OtherProcessFailed

    return isinstance(error, PeerFailedError | OtherProcessFailed)
