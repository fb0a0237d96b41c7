"""The process that holds the fabric of ranks: `python -m weft.ranks.coordinator SOCKET --scenario FILE …`.

It ends when the last rank has left, or when one has gone without leaving.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from weft.errors import BadInputError, WeftError
from weft.ranks import frames
from weft.ranks.calls import Call
from weft.ranks.carrying import Carrier
from weft.ranks.default_fabric import default_scenario
from weft.ranks.errors import RanksError
from weft.ranks.meeting import Meeting, Met
from weft.scenario import Scenario

READY = "ready"
"""The process prints this on its standard output when ranks may connect."""
_Event = tuple[socket.socket, dict[str, Any] | None, bytearray]


@dataclass
class Coordinator:
    """Serves the ranks of a fabric: `rank_count` of them, which have `timeout_s` to meet.

    After a failure it waits until all ranks have left, as long as some do within `grace_s`: those that have yet to
    connect are told, too.
    """

    carrier: Carrier
    rank_count: int
    timeout_s: float
    grace_s: float = 10.0
    now_s: Callable[[], float] = time.monotonic
    _ranks: dict[int, socket.socket] = field(default_factory=dict)
    _readers: dict[socket.socket, threading.Thread] = field(default_factory=dict)
    _events: queue.Queue[_Event] = field(default_factory=queue.Queue)
    _left: set[int] = field(default_factory=set)
    _failure: str = ""

    def __post_init__(self) -> None:
        """Begin with no call."""
        self._meeting = Meeting(self.rank_count)
        self._began_s = self.now_s()

    def serve(self, listener: socket.socket) -> str:
        """Serve until all ranks have left; return what went wrong, "" if nothing did. The listener has ended then."""
        accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        accepting.start()
        try:
            return self._served()
        finally:
            _shut(listener)
            accepting.join()
            for connection, reader in self._readers.items():
                _shut(connection)
                reader.join()
                connection.close()

    def _served(self) -> str:
        while len(self._left) < self.rank_count:
            try:
                connection, header, data = self._events.get(timeout=self._patience_s())
            except queue.Empty:
                self._fail(self._lateness())
                break
            try:
                self._take(connection, header, data)
            except (RanksError, WeftError) as error:
                self._fail(str(error))
                if connection not in self._ranks.values():
                    _send(connection, {"failed": self._failure})
        return self._failure

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            reader = threading.Thread(target=self._read, args=(connection,), daemon=True)
            self._readers[connection] = reader
            reader.start()

    def _read(self, connection: socket.socket) -> None:
        """Pass on what a rank sends, and in the end that it is gone."""
        try:
            while (message := frames.receive(connection)) is not None:
                self._events.put((connection, *message))
        except (OSError, RanksError):
            pass  # what is no message ends the connection
        self._events.put((connection, None, bytearray()))

    def _take(self, connection: socket.socket, header: dict[str, Any] | None, data: bytearray) -> None:
        rank = next((rank for rank, own in self._ranks.items() if own is connection), None)
        if header is None:
            self._readers.pop(connection).join()
            connection.close()
            if rank is not None and rank not in self._left:
                self._left.add(rank)
                raise RanksError(f"rank {rank} has ended without leaving the group")
            return
        if rank is None:
            self._greet(connection, header)
        elif header.get("leave"):
            self._leave(rank)
        else:
            self._call(rank, header, data)

    def _greet(self, connection: socket.socket, header: dict[str, Any]) -> None:
        rank, count = header.get("rank"), header.get("rank_count")
        if count != self.rank_count:
            raise RanksError(
                f"{count} processes are ranks of a fabric of {self.rank_count}", valid=f"{self.rank_count}"
            )
        if not isinstance(rank, int) or not 0 <= rank < self.rank_count or rank in self._ranks:
            raise RanksError(f"a process says that it is rank {rank}", valid=f"0 to {count - 1}, each once")
        self._ranks[rank] = connection
        if self._failure:
            self._tell(rank, {"failed": self._failure})

    def _leave(self, rank: int) -> None:
        self._left.add(rank)
        if met := self._meeting.waiting_for(rank):
            raise RanksError(f"rank {rank} has left; rank {met.first} waits for it: {met}")

    def _call(self, rank: int, header: dict[str, Any], data: bytearray) -> None:
        if self._failure:
            return
        call = Call.of(header.get("call"), rank, self.rank_count)
        issued_ps = header.get("issued_ps")
        if not isinstance(issued_ps, int) or issued_ps < 0:
            raise RanksError(f"rank {rank} calls at {issued_ps}", valid="a number of ps")
        met = self._meeting.add(rank, call, issued_ps, data, self.now_s())
        if gone := self._left.intersection(call.ranks):
            raise RanksError(f"rank {min(gone)} has left; rank {rank} calls {call} with it")
        if met is not None:
            self._answer(met)

    def _answer(self, met: Met) -> None:
        try:
            carried = self.carrier.carry(met, self.timeout_s)
        except WeftError as error:
            raise RanksError(f"{met}: {error}") from error
        for rank, result, ended_ps in zip(met.call.ranks, carried.results, carried.ended_ps, strict=True):
            header = {"stream": met.call.stream, "ranks": list(met.call.ranks), "number": met.number}
            self._tell(rank, header | {"began_ps": carried.began_ps, "ended_ps": ended_ps}, result)

    def _tell(self, rank: int, header: dict[str, Any], result: Any = None) -> None:
        if not _send(self._ranks[rank], header, result):
            self._left.add(rank)  # the reader finds the same

    def _fail(self, why: str) -> None:
        """Have all ranks know, also ranks that connect later; they are told the first reason."""
        if self._failure:
            return
        self._failure = why
        for rank in self._ranks.keys() - self._left:
            self._tell(rank, {"failed": why})

    def _patience_s(self) -> float:
        """Return how long to wait for the next message."""
        if self._failure:
            return self.grace_s
        waiting = self._meeting.waiting()
        if not waiting and len(self._ranks) == self.rank_count:
            return threading.TIMEOUT_MAX
        since_s = waiting[0].since_s if waiting else self._began_s
        return max(0.0, since_s + self.timeout_s - self.now_s())

    def _lateness(self) -> str:
        waiting = self._meeting.waiting()
        if not waiting:
            absent = sorted(set(range(self.rank_count)) - set(self._ranks))
            return f"ranks {absent[:20]} have not connected within {self.timeout_s:g} s"
        return f"ranks {waiting[0].missing[:20]} have not called within {self.timeout_s:g} s: {waiting[0]}"


def _shut(connection: socket.socket) -> None:
    """End a socket, and the wait of a thread at it; closing the socket would not end the wait."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _send(connection: socket.socket, header: dict[str, Any], result: Any = None) -> bool:
    """Send a message; return whether the other end was still there."""
    try:
        frames.send(connection, header, memoryview(result).cast("B") if result is not None else b"")
    except OSError:
        return False
    return True


def hold(scenario: Scenario, place: Path, algorithm: str, timeout_s: float, out: Path | None) -> str:
    """Build a scenario's fabric and serve its ranks at a socket; return what went wrong, "" if nothing did.

    Raises WeftError for a fabric that cannot be built.
    """
    from weft.run.fabric import Fabric
    from weft.run.spec import run_spec

    spec = run_spec(scenario)
    known = sorted(_algorithms())
    if algorithm not in known:
        raise BadInputError(f"unknown algorithm '{algorithm}'", valid=known)
    with socket.socket(socket.AF_UNIX) as listener, Fabric(spec) as fabric:
        listener.bind(str(place))
        listener.listen(spec.fabric.rank_count)
        print(READY, flush=True)
        carrier = Carrier(fabric, algorithm)
        failure = Coordinator(carrier, spec.fabric.rank_count, timeout_s).serve(listener)
        if out is not None:
            fabric.summary().save(out)
    return failure


def _algorithms() -> set[str]:
    from weft.traffic.collectives.registry import AUTO, algorithm_names

    return {AUTO, *algorithm_names()}


@click.command()
@click.argument("place", type=click.Path(path_type=Path))
@click.option("--scenario", type=click.Path(path_type=Path), help="Without one: the default fabric.")
@click.option("--ranks", type=click.IntRange(1), default=1, help="Hosts of the default fabric.")
@click.option("--algorithm", default="ring")
@click.option("--timeout", "timeout_s", type=float, default=300.0)
@click.option("--out", type=click.Path(path_type=Path))
def main(place: Path, scenario: Path | None, ranks: int, algorithm: str, timeout_s: float, out: Path | None) -> None:
    """Hold a fabric for ranks that connect to the socket PLACE."""
    from weft.scenario import load_scenario

    try:
        loaded = default_scenario(ranks) if scenario is None else load_scenario(scenario)
        failure = hold(loaded, place, algorithm, timeout_s, out)
    except WeftError as error:
        # Instead of `READY`.
        print(" ".join(str(error).split()), flush=True)
        sys.exit(error.exit_code)
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
