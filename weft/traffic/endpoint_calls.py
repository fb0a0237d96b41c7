"""Commands to endpoints and their answers: to all first, then from all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol, TypeVar

from weft.traffic.answers import RunState
from weft.traffic.commands import Command

A = TypeVar("A")


class HostEndpoint(Protocol):
    """A host that carries out commands: a process in its own namespace, or an object of this process."""

    def send(self, command: Command[Any], number: int) -> None:
        """Send a command; `number` is that of its answer."""

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        """Return the answer to a command that was sent, dropping those before it.

        Raises if the endpoint is gone or late, or has refused the command.
        """

    def run_state(self, run: int) -> RunState | None:
        """Return how far a run is, from any thread; None where it takes a command to learn that."""


class EndpointCalls:
    """Calls of endpoints, by rank. Errors of `HostEndpoint.read_answer` pass through."""

    def __init__(self, endpoints: Sequence[HostEndpoint], answer_timeout_s: float) -> None:
        self.answer_timeout_s = answer_timeout_s
        self._endpoints = list(endpoints)
        self._numbers = count(1)

    def run_state(self, rank: int, run: int) -> RunState | None:
        """See `HostEndpoint.run_state`."""
        return self._endpoints[rank].run_state(run)

    def each(self, command: Command[A]) -> dict[int, A]:
        """Send a command to every rank and return the answers."""
        return self.all(dict.fromkeys(range(len(self._endpoints)), command))

    def all(self, commands: Mapping[int, Command[A]], timeout_s: float | None = None) -> dict[int, A]:
        """Send to the ranks named, then read all answers, so that one refusal leaves no answer unread.

        Answers that an interrupted call has left unread are dropped by the next call.
        """
        number = next(self._numbers)
        for rank, command in commands.items():
            self._endpoints[rank].send(command, number)
        answers: dict[int, A] = {}
        first_error: Exception | None = None
        for rank, command in commands.items():
            try:
                answers[rank] = self._endpoints[rank].read_answer(
                    command, number, timeout_s or self.answer_timeout_s
                )
            except Exception as error:  # kept, and raised when all answers are read
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return answers
