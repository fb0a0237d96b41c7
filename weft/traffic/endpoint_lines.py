"""The runner's end of an endpoint process: commands and answers as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from weft.traffic.answers import Ready, RunState
from weft.traffic.commands.base import Command, command_message, read_answer
from weft.traffic.host_config import HostConfig
from weft.traffic.messages import MessageError, as_message, read_message

A = TypeVar("A")

START_TIMEOUT_S = 300.0
"""Until a process has begun: slow machines need minutes for many of them, and one that ends is noticed at once."""


class JsonLines(Protocol):
    """A process that reads one object per line and writes one answer per line; `weft` starts it in a host's namespace.

    read_answer raises if the process is gone or late, or if the answer has `error`. An answer has its command's `id`.
    """

    def send(self, command: dict[str, Any]) -> None:
        """Send an object."""

    def read_answer(self, timeout_s: float, number: int | None = None) -> Mapping[str, Any]:
        """Return the next answer, or the one with `id` number, dropping those before it."""


class LineEndpoint:
    """A `weft.traffic.endpoint_calls.HostEndpoint` behind lines of JSON."""

    def __init__(self, lines: JsonLines) -> None:
        self._lines = lines

    def configure(self, config: HostConfig) -> None:
        """Send the configuration, which the process reads before any command."""
        self._lines.send(as_message(config))

    def await_ready(self, timeout_s: float) -> Ready:
        """Wait until the process is configured. Raises what `JsonLines.read_answer` raises."""
        return read_message(Ready, self._lines.read_answer(timeout_s))

    def send(self, command: Command[Any], number: int) -> None:
        """See HostEndpoint."""
        self._lines.send(command_message(command, number))

    def read_answer(self, command: Command[A], number: int, timeout_s: float) -> A:
        """See HostEndpoint. Raises MessageError for an answer that is none to this command."""
        message = self._lines.read_answer(timeout_s, number)
        try:
            return read_answer(command, message)
        except MessageError as error:
            raise MessageError(f"the answer to {command.name}: {error}") from None

    def run_state(self, run: int) -> RunState | None:
        """See HostEndpoint: a process must be asked."""
        return None


def configured(
    processes: Sequence[JsonLines], configs: Sequence[HostConfig], timeout_s: float = START_TIMEOUT_S
) -> list[LineEndpoint]:
    """Configure all processes at once, and return them when all are ready."""
    endpoints = [LineEndpoint(process) for process in processes]
    for endpoint, config in zip(endpoints, configs, strict=True):
        endpoint.configure(config)
    for endpoint in endpoints:
        endpoint.await_ready(timeout_s)
    return endpoints
