"""Commands to endpoints and their answers: to all first, then from all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol, TypeVar

from weft.traffic.answers import RunState
from weft.traffic.commands.base import Command

A = TypeVar("A")


class HostEndpoint(Protocol):
    """A host that carries out commands: a process in its own namespace, or an object of this process."""

    def send(self, command: Command[Any], number: int) -> None:
        """Send a command; its answer will have this `number`."""

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        """Return the answer to a command that was sent, dropping those before it.

        Raises if the endpoint is gone or late, or has refused the command.
        """

    def run_state(self, run: int) -> RunState | None:
        """Return how far a run is, from any thread; None where it takes a command to learn that."""


class EndpointCalls:
    """Calls of endpoints, by rank. Errors of `HostEndpoint.read_answer` pass through.

    Ranks are numbered as the endpoints are until some have exchanged theirs; spares' ranks come last.
    """

    def __init__(self, endpoints: Sequence[HostEndpoint], answer_timeout_s: float) -> None:
        self.answer_timeout_s = answer_timeout_s
        self._endpoints = list(endpoints)
        self._numbers = count(1)
        self._hosts = list(range(len(self._endpoints)))

    def host_of(self, rank: int) -> int:
        """Return the endpoint that has a rank."""
        return self._hosts[rank]

    def exchange_ranks(self, rank: int, other: int) -> None:
        """Have two endpoints exchange their ranks."""
        self._hosts[rank], self._hosts[other] = self._hosts[other], self._hosts[rank]

    def run_state(self, rank: int, run: int) -> RunState | None:
        """See `HostEndpoint.run_state`."""
        return self._endpoints[self._hosts[rank]].run_state(run)

    def each(self, command: Command[A]) -> dict[int, A]:
        """Send a command to every endpoint and return the answers, in order of the endpoints."""
        return self.of_hosts(dict.fromkeys(range(len(self._endpoints)), command))

    def all(self, commands: Mapping[int, Command[A]], timeout_s: float | None = None) -> dict[int, A]:
        """Send to the ranks named and return their answers; see `of_hosts`."""
        answers = self.of_hosts({self._hosts[rank]: command for rank, command in commands.items()}, timeout_s)
        return {rank: answers[self._hosts[rank]] for rank in commands}

    def of_hosts(self, commands: Mapping[int, Command[A]], timeout_s: float | None = None) -> dict[int, A]:
        """Send to the endpoints named, then read all answers, so that one refusal leaves no answer unread.

        Answers that an interrupted call has left unread are dropped by the next call.
        """
        number = next(self._numbers)
        for host, command in commands.items():
            self._endpoints[host].send(command, number)
        answers: dict[int, A] = {}
        first_error: Exception | None = None
        for host, command in commands.items():
            try:
                answers[host] = self._endpoints[host].read_answer(command, number, timeout_s or self.answer_timeout_s)
            except Exception as error:  # kept, and raised when all answers are read
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return answers
