"""A rank's end of the coordinator: calls, their results, and the rank's clock."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.ranks import frames
from weft.ranks.calls import Call
from weft.ranks.coordinator import READY
from weft.ranks.errors import RanksError
from weft.system.scratch import scratch_directory
from weft.traffic.data_types import DataType, elements_of

SOCKET = "coordinator"


@dataclass
class RankClock:
    """A rank's emulated time: what it has computed, and what it has waited for others and for the fabric."""

    now_ps: int = 0
    waited_ps: int = 0
    calls: int = 0

    def compute(self, duration_ps: int) -> None:
        """Let the rank have computed so long."""
        self.now_ps += duration_ps

    def wait_until(self, ended_ps: int) -> None:
        """Let the rank have waited until then; nothing where that is past."""
        if ended_ps > self.now_ps:
            self.waited_ps += ended_ps - self.now_ps
            self.now_ps = ended_ps


@dataclass
class Pending:
    """A collective that a rank has called: its result and its end, once `done` is set, or why there are none."""

    call: Call
    done: threading.Event = field(default_factory=threading.Event)
    result: NDArray[Any] | None = None
    ended_ps: int = 0
    failure: str = ""
    _then: list[Callable[[Pending], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def then(self, callback: Callable[[Pending], None]) -> None:
        """Call back when it is done, from whichever thread finds that; at once if it is."""
        with self._lock:
            if not self.done.is_set():
                self._then.append(callback)
                return
        callback(self)

    def finish(self, result: NDArray[Any] | None, ended_ps: int, failure: str) -> None:
        """Note the end and call back."""
        self.result, self.ended_ps, self.failure = result, ended_ps, failure
        with self._lock:
            self.done.set()
        for callback in self._then:
            callback(self)

    def wait(self, timeout_s: float | None = None) -> NDArray[Any]:
        """Return the result. Raises RanksError if it failed or took longer."""
        if not self.done.wait(timeout_s):
            raise RanksError(f"{self.call}: no result within {timeout_s:g} s")
        if self.failure:
            raise RanksError(self.failure)
        assert self.result is not None, "without a failure there is one"
        return self.result


class RankClient:
    """A rank of the fabric that the coordinator at a socket holds.

    Raises RanksError if it cannot be reached, or has the rank already.
    """

    def __init__(self, place: Path, rank: int, rank_count: int) -> None:
        self.rank, self.rank_count, self.clock = rank, rank_count, RankClock()
        self._pending: dict[tuple[str, tuple[int, ...], int], Pending] = {}
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
        self._lock = threading.Lock()
        self._failure = ""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(place))
            frames.send(self._socket, {"rank": rank, "rank_count": rank_count})
        except OSError as error:
            self._socket.close()
            raise RanksError(f"rank {rank}: the fabric's process cannot be reached: {error}") from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, call: Call, data: NDArray[Any]) -> Pending:
        """Call a collective at the rank's present time; `data` is this rank's input, flat, rounded to the call's type.

        Arrays of uint16 hold the bits of bfloat16, here and in the result.
        Ranks of a group must make the same calls of a stream in the same order. Several may be under way.
        """
        own = _as_elements(data, call) if call.has_input(call.ranks.index(self.rank)) else None
        pending = Pending(call)
        with self._lock:
            number = self._numbers[call.stream, call.ranks]
            self._numbers[call.stream, call.ranks] += 1
            self._pending[call.stream, call.ranks, number] = pending
            failure = self._failure
            self.clock.calls += 1
            if not failure:
                header = {"call": call.as_dict(), "issued_ps": self.clock.now_ps}
                try:
                    frames.send(self._socket, header, b"" if own is None else own.tobytes())
                except OSError as error:
                    failure = f"rank {self.rank}: the fabric's process has ended: {error}"
        if failure:
            self._fail(failure)
        return pending

    def leave(self) -> None:
        """Leave the group: this rank calls nothing any more."""
        self._fail(f"rank {self.rank} has left")
        with self._lock, contextlib.suppress(OSError):
            frames.send(self._socket, {"leave": True})
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._reader:
            self._reader.join()

    def _read(self) -> None:
        failure = "the fabric's process has ended"
        try:
            while (message := frames.receive(self._socket)) is not None:
                header, data = message
                if "failed" in header:
                    failure = str(header["failed"])
                    break
                self._take(header, data)
        except (OSError, RanksError) as error:
            failure = f"{failure}: {error}"
        self._fail(failure)
        with self._lock:
            self._socket.close()

    def _take(self, header: dict[str, Any], data: bytearray) -> None:
        key = header["stream"], tuple(header["ranks"]), header["number"]
        with self._lock:
            pending = self._pending.pop(key)
        pending.finish(np.frombuffer(data, pending.call.storage), header["ended_ps"], "")

    def _fail(self, why: str) -> None:
        """End all calls, and all later ones; they report the first reason."""
        with self._lock:
            self._failure = self._failure or why
            ended, self._pending = list(self._pending.values()), {}
        for each in ended:
            each.finish(None, 0, self._failure)


def _as_elements(data: NDArray[Any], call: Call) -> NDArray[Any]:
    return data if data.dtype == call.storage else elements_of(data, DataType(call.dtype))


class CoordinatorProcess:
    """The coordinator as a child of this process. It ends by itself when all ranks have left or gone.

    Args:
        scenario: the process holds this scenario's fabric; None for the default one (`default_fabric`).
        algorithm: used by the collectives that have it.
        timeout_s: how long ranks have to meet.
        out: where results.json of the fabric goes.
        rank_count: hosts of the default fabric.

    Raises RanksError if there is no such fabric; the message says why.
    """

    def __init__(
        self, scenario: Path | None, algorithm: str, timeout_s: float, out: Path | None = None, rank_count: int = 1
    ) -> None:
        # Of this user alone; the socket in it, too. `weft clean` finds it where this process is killed.
        self._directory = contextlib.ExitStack()
        self.place = self._directory.enter_context(scratch_directory()) / SOCKET
        command = [sys.executable, "-m", "weft.ranks.coordinator", str(self.place)]
        command += ["--ranks", str(rank_count)] if scenario is None else ["--scenario", str(scenario)]
        command += ["--algorithm", algorithm, "--timeout", str(timeout_s)]
        command += ["--out", str(out)] if out is not None else []
        # A session of its own: an interruption ends the ranks, and their ends end it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != READY:
            self.end()
            raise RanksError(said or "the fabric's process ended before it was up")

    def end(self) -> int:
        """Wait until it has ended, as it does when all ranks have left; return its exit code."""
        code = self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._directory.close()
        return code
