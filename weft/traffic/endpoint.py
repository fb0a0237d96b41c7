"""The host process: `python -m weft.traffic.endpoint`, inside a host's network namespace.

The first line on stdin is the configuration (`HostConfig`), every other one a command; every line gets one
answer, a line of JSON on stdout. An answer with `error` says why a command failed, which changes nothing else;
it comes with `user_error` where a user's code raised.
A `wait` is answered when its run has ended, after answers to later commands. The end of stdin ends the process.
"""

from __future__ import annotations

import gc
import json
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft.traffic.answering_socket import HostSocket
from weft.traffic.answers import Ready, Refused
from weft.traffic.commands.base import numbered, read_command
from weft.traffic.commands.runs import Wait
from weft.traffic.extensions import is_user_error, user_report
from weft.traffic.host import Host, host_of_namespace
from weft.traffic.host_commands import HostCommands
from weft.traffic.host_config import HostConfig
from weft.traffic.host_control import ControlSocket
from weft.traffic.host_metrics import MetricsSocket
from weft.traffic.messages import Message, MessageError, as_message, read_message
from weft.traffic.port_guard import PortGuard
from weft.traffic.verbs.socket import VerbsSocket, listening
from weft.traffic.verbs_counters import CountersSocket


class Endpoint:
    """Carries out commands on a host. Times out `wait`s by the wall clock."""

    def __init__(self, host: Host, answer: Callable[[Message], None]) -> None:
        self._host = host
        self.commands = HostCommands(host)
        self._answer = answer
        self._waits: list[tuple[float, Wait, Message]] = []
        self._user_error: str | None = None

    def execute(self, line: str) -> None:
        """Carry out one line and answer it (a `wait` later)."""
        message: Message = {}
        try:
            parsed = json.loads(line)
            if not isinstance(parsed, dict):
                raise MessageError(f"a command is an object, not {line.strip()!r}")
            message = parsed
            command = read_command(message)
            if isinstance(command, Wait):
                self._wait(command, message)
                return
            self._reply(message, as_message(self.commands.carry_out(command)))
        except Exception as error:
            # Any error that a command raises becomes its answer; the host continues.
            self._refuse(message, Refused(f"{message.get('command', 'command')}: {error}"))

    def _reply(self, message: Message, answer: Message) -> None:
        self._answer(numbered(message, answer))

    def _refuse(self, message: Message, refused: Refused) -> None:
        self._reply(message, refused.as_message())

    def _wait(self, command: Wait, message: Message) -> None:
        deadline = time.monotonic() + command.timeout_s
        self.commands.state(command.run)  # refuses an unknown run
        self._waits.append((deadline, command, message))
        self.serve_waits()

    def _failed(self, failure: str) -> Refused:
        """Return the answer of a host with a stopped engine; with `user_error` if a user's code raised."""
        if self._user_error is None:
            try:
                self._host.engine.stop()  # raises what ended the engine's thread
            except BaseException as error:
                if is_user_error(error):
                    self._user_error = user_report(error, "a class of yours")
                elif not isinstance(error, Exception):
                    raise
        return Refused(f"wait: the engine has stopped: {failure}", self._user_error)

    def serve_waits(self) -> None:
        """Answer waits for runs that have ended, and waits that have timed out."""
        self._host.executor.take_ended()
        waits, self._waits = self._waits, []
        failure = self._host.engine.failure
        for deadline, command, message in waits:
            if failure is not None:
                self._refuse(message, self._failed(failure))
                continue
            try:
                state = self.commands.state(command.run)
            except ValueError as error:  # released meanwhile
                self._refuse(message, Refused(f"wait: {error}"))
                continue
            if state.has_ended or time.monotonic() >= deadline:
                self._reply(message, as_message(state))
            else:
                self._waits.append((deadline, command, message))

    def seconds_to_next_deadline(self) -> float | None:
        """Return how long serve_waits() may be put off; None without a wait."""
        if not self._waits:
            return None
        return max(0.0, min(deadline for deadline, *_ in self._waits) - time.monotonic())


class LineReader:
    """Splits what arrives on a descriptor into lines, without reading further than is there."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._pending = b""
        self.ended = False

    def lines(self) -> list[str]:
        """Read once (which blocks if nothing is there) and return the lines that are complete."""
        data = self.file.read1(1 << 16)
        self.ended = not data
        *complete, self._pending = (self._pending + data).split(b"\n")
        return [line.decode(errors="replace") for line in complete if line.strip()]


def _print_answer(answer: Message) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _serve(
    endpoint: Endpoint,
    host: Host,
    reader: LineReader,
    first: list[str],
    others: Sequence[HostSocket],
) -> None:
    for line in first:
        endpoint.execute(line)
    with selectors.DefaultSelector() as selector:
        selector.register(reader.file, selectors.EVENT_READ)
        selector.register(host.executor, selectors.EVENT_READ)
        selector.register(host.engine.failure_fd, selectors.EVENT_READ)
        for each in others:
            selector.register(each, selectors.EVENT_READ)
        while True:
            turns = [endpoint.seconds_to_next_deadline(), *(each.seconds_to_next_turn() for each in others)]
            timeout_s = min((turn for turn in turns if turn is not None), default=None)
            ready = {key.fileobj for key, _ in selector.select(timeout_s)}
            if host.engine.failure_fd in ready:  # for good: once is enough
                selector.unregister(host.engine.failure_fd)
            if reader.file in ready:
                for line in reader.lines():
                    endpoint.execute(line)
                if reader.ended:
                    return
            endpoint.serve_waits()
            for each in others:
                if each in ready:
                    each.serve()
                each.take_turn()


def main() -> int:
    """Run the endpoint until stdin ends or SIGTERM. Exit codes: 0, or 3 for a bad configuration."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle
    reader = LineReader(sys.stdin.buffer)
    lines: list[str] = []
    while not lines and not reader.ended:
        lines = reader.lines()
    if not lines:
        return 0
    try:
        config = read_message(HostConfig, json.loads(lines[0]))
        guard = PortGuard(*config.transport.kind.udp_ports)
        host = host_of_namespace(config)
        endpoint = Endpoint(host, _print_answer)
        others = _other_sockets(config, host, endpoint.commands)
    except (ValueError, OSError) as error:
        _print_answer(Refused(f"configuration: {error}").as_message())
        return 3
    gc.freeze()
    try:
        _print_answer(as_message(Ready(config.name, config.rank)))
        _serve(endpoint, host, reader, lines[1:], others)
    finally:
        host.close()
        guard.close()
        for each in others:
            each.close()
    return 0


def _other_sockets(config: HostConfig, host: Host, commands: HostCommands) -> list[HostSocket]:
    """Return the sockets for others than the runner."""
    sockets: list[HostSocket] = []
    if config.metrics_socket is not None:
        host.count_hops()
        sockets.append(MetricsSocket(Path(config.metrics_socket), host))
    if config.control_socket is not None:
        sockets.append(ControlSocket(Path(config.control_socket), commands))
    if config.verbs_socket is not None:
        sockets.append(VerbsSocket(listening(Path(config.verbs_socket)), host))
    elif config.verbs_listener is not None:
        sockets.append(VerbsSocket(socket.socket(fileno=config.verbs_listener), host))
    if config.counters_socket is not None and config.verbs_device is not None:
        sockets.append(CountersSocket(Path(config.counters_socket), host, Path(config.verbs_device)))
    return sockets


if __name__ == "__main__":
    sys.exit(main())
